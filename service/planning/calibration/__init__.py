"""Achieved shares of physical limits as named constants, drawn from measured rows."""
