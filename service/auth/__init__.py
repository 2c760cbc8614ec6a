"""Authentication of callers: tenants, API keys, tokens and sessions."""
