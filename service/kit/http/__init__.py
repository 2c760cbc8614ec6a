"""Requests and responses, whatever they are about."""
