"""Measurements that were made elsewhere, imported as evidence of a tenant."""
