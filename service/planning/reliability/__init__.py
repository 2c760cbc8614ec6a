"""Failures of devices, checkpoints, and the time that both cost."""
