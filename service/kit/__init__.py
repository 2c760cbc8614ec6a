"""Helpers that know nothing of the domain; each module can be imported alone."""
