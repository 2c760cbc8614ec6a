"""Approvals of quotes: submissions, decisions, delegations, links and pages."""
