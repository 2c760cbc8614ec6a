"""Buildings."""
