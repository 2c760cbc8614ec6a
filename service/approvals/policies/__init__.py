"""Approval policies, which define the approvers of quotes."""
