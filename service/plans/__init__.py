"""Plans: searches for the best configuration of a workload."""
