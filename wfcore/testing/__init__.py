"""Ports in memory, a simulator of the whole system, and a time-skipping environment."""
