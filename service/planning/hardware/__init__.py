"""Devices, links and clusters, and measurements of them."""
