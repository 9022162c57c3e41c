"""An order from its reservation to its receipt, as a workflow that no crash interrupts."""
