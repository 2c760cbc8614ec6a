"""Clocks of a node: durations, and the offset to the service's clock."""

import time
from collections import deque
from datetime import datetime
from typing import NamedTuple

_REMEMBERED = 8


def read_ticks() -> float:
    """Returns the seconds of a clock that is never set and continues while the host is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class _ClockReading(NamedTuple):
    round_trip_seconds: float
    offset_seconds: float


class ClockOffset:
    """Offset of the service's clock from this host's, from answers with a time (Cristian, 1989).

    The service read its clock at some moment of the round trip; the estimate is its middle, so half of the
    round trip bounds the error. The quickest of the last answers is used.
    """

    def __init__(self) -> None:
        self._readings: deque[_ClockReading] = deque(maxlen=_REMEMBERED)

    def record_answer(self, server_time: datetime, sent_at: float, answered_at: float) -> None:
        """Records an answer to a request, with both Unix times of this host."""
        middle = (sent_at + answered_at) / 2
        self._readings.append(_ClockReading(answered_at - sent_at, server_time.timestamp() - middle))

    @property
    def seconds(self) -> float | None:
        """The estimated offset in seconds; None before the first answer."""
        return min(self._readings).offset_seconds if self._readings else None
