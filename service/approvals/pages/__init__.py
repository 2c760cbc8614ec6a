"""Pages for decisions."""
