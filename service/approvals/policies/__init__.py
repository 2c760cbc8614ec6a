"""Approval policies: who has to agree to what, as data."""
