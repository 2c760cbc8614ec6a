"""Audit: every stored write, recorded once in a tamper-evident chain."""
