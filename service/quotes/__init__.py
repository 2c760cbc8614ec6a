"""Quotes: estimates and candidates of plans, computed here and frozen."""
