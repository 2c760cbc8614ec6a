"""Webhooks and the delivery of events to them."""
