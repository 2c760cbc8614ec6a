"""Offline comparison of estimates with measured rows, and the fit of constants to them."""
