"""The immutable view of the catalog that estimates read."""
