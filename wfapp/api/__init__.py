"""Temporal's HTTP API over the service: its paths, its JSON, its errors."""
