"""Exchange rates of currencies."""
