"""Links between accelerators and between nodes."""
