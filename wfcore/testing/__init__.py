"""Ports in memory, the contracts that every set of ports keeps, a simulator of the whole system."""
