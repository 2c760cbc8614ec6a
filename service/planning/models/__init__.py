"""Architectures, their layers, and the work and memory of a pass through them."""
