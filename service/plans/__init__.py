"""Plans: from a goal to the best configuration."""
