"""Who may call: tenants, API keys and tokens."""
