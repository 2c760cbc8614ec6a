"""Delegations: for a time somebody may decide in an approver's place."""
