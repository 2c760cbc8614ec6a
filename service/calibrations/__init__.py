"""Calibrations: immutable sets of figures drawn from accepted results, each with its sources."""
