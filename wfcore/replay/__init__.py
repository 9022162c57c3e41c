"""Deterministic replay: recorded history in, commands out."""
