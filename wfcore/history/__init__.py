"""The workflow state machine: pure transitions from a request to events, state and effects."""
