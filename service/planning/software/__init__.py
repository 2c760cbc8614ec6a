"""What is known of inference engines and training frameworks."""
