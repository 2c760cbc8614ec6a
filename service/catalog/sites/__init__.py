"""Buildings that house devices."""
