"""The parts of the simulator: actors, faults, ports that fail, and what is looked at."""
