"""Measured rows as questions of the API."""
