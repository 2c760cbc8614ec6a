"""Webhooks: events, delivered."""
