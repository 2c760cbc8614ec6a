"""Power, facilities, carbon and water."""
