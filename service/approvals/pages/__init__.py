"""Pages on which people decide."""
