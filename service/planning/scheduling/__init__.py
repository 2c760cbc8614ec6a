"""When runs start: by device, by price and by carbon."""
