"""Electricity grids."""
