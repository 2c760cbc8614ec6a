"""Approval policies, the people behind their names, and changes that wait."""
