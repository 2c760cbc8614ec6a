"""Budgets of cost centres, what approvals commit of them, and what bills have spent."""
