"""Properties of inference engines and training frameworks."""
