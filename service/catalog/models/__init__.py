"""Architectures with a name."""
