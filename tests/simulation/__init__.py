"""Runs of the simulator: by pytest in blocks of seeds, and by hand as many as wanted."""
