"""Start times of runs: by device, by price and by carbon."""
