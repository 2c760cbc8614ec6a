"""Databases and their transactions, on SQLite and PostgreSQL."""
