"""Cost centres: who pays."""
