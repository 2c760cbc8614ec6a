"""Measured rows, and what is drawn from them."""
