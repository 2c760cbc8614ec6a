"""Sections of a utility bill: energy, emissions and cost at the meter."""
