"""Models: architectures with a name."""
