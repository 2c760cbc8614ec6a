"""Benchmark runs, and the results that nodes report: kept as sent, recomputed, compared and exported."""
