"""Cost centres, which pay for quotes."""
