"""Quotes: frozen estimates and candidates of plans."""
