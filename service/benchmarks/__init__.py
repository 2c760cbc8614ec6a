"""Benchmark runs, and the results that nodes report: stored as sent, recomputed, compared and exported."""
