"""Failures of devices, checkpoints and what both cost in time."""
