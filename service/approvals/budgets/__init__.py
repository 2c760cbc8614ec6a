"""Budgets of cost centres, with their commitments and spending."""
