"""Waits for what other threads and processes do."""

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What ``condition`` answers once that is true; a test that waits in vain fails."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)
    return found
