"""Approvals: who has to agree to a quote, who did, and what it takes from which budget."""
