"""Measurements of a tenant, the reference set, and the snapshot of both that estimates read."""
