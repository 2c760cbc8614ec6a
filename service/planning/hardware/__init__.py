"""Devices, links and clusters, and what was measured of them."""
