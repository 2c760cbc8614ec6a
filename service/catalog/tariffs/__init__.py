"""Electricity tariffs."""
