"""Waits for what other threads and processes do."""

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 60.0, *, every: float = 0.01) -> Any:
    """What ``condition`` answers once that is true; a test that waits in vain fails.

    It is asked again ``every`` so many seconds: what takes a process some milliseconds, seldom.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(every)
    return found


def until_done(left: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until nothing is left of some work: a count, or counts of which the first matters most.

    It is waited for in vain once less has not been left for so long, however long all of it takes.
    """
    least, deadline = None, time.monotonic() + seconds
    while any(now) if isinstance(now := left(), tuple) else now:
        if least is None or now < least:
            least, deadline = now, time.monotonic() + seconds
        assert time.monotonic() < deadline, f"{now} are left, and {least} were"
        time.sleep(0.05)
