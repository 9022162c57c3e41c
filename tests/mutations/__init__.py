"""Faults planted in the engine, each of which the simulator must find."""
