"""Delegations: temporary permission to decide on an approver's behalf."""
