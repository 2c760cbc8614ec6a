"""What currencies were worth in others."""
