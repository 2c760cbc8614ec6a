"""Waiting times between attempts."""

import random

BASE_SECONDS = 1.0
MOST_SECONDS = 60.0


class Backoff:
    """Waits that grow with every failure, drawn at random over their whole length.

    Full jitter: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """

    def __init__(self, base_seconds: float = BASE_SECONDS, most_seconds: float = MOST_SECONDS) -> None:
        self._base_seconds = base_seconds
        self._most_seconds = most_seconds
        self._failures = 0

    def compute_wait_seconds(self, retry_after_seconds: float = 0.0) -> float:
        """Returns the seconds to wait after another failure, no less than the service asked for."""
        longest = min(self._most_seconds, self._base_seconds * 2 ** min(self._failures, 30))
        self._failures += 1
        return retry_after_seconds + random.uniform(0.0, longest)  # noqa: S311  # spreads load, hides nothing

    def reset_failures(self) -> None:
        """Resets the count of failures."""
        self._failures = 0
