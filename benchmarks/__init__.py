"""Measured, not tested: the same workloads on the engine and on plain Celery."""
