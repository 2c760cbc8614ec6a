"""Architectures, their layers, and what a pass through them computes and stores."""
