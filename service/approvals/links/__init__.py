"""Links by which somebody without credentials decides once."""
