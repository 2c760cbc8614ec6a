"""The catalog: models, accelerators, links, offers, grids and sites, each row with its sources."""
