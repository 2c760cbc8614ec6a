"""Measurements of others as evidence of a tenant."""
