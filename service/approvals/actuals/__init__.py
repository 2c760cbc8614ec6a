"""What was billed, beside what was quoted."""
