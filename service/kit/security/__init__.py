"""Credentials, secrets and files that are their owner's alone."""
