"""Pages of quotes that begin at other resources."""
