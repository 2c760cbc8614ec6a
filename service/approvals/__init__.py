"""Approvals of quotes: policies, decisions and commitments to budgets."""
