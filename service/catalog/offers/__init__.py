"""Dated prices."""
