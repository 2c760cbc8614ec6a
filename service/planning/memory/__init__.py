"""Memory of one device: of a training step and of a served model."""
