"""Migrations: named, and never edited once released."""
