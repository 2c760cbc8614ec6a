"""GPU nodes: how they join, what they are, and what they may run."""
