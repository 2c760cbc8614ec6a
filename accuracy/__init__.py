"""Offline: measured rows beside the estimates, what they teach, and how far off the estimates are."""
