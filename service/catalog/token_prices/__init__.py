"""List prices of tokens."""
