"""Validation: whether a result is a measurement of its device, by rules of physics, conditions and peers."""
