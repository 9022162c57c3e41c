"""Builders and waits that several test folders share."""
