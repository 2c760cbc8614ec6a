"""Ironlaw: capacity planning for machine learning, served over HTTP."""

__version__ = "0.1.0"
