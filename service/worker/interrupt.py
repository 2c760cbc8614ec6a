"""Why what is under way has to end, and a way to wait that hears of it."""

import threading
from collections.abc import Callable


class Interrupted(Exception):
    """What was under way has to end; ``reason`` is a code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InterruptSignal:
    """Set by any thread, to end what is under way at once or at its next step; whoever waits here wakes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reason: str | None = None
        self._next_step: str | None = None

    @property
    def reason(self) -> str | None:
        """Why to end; None while nothing says so."""
        return self._reason

    def set(self, reason: str) -> None:
        """End what is under way; the first reason stays."""
        with self._changed:
            self._reason = self._reason or reason
            self._changed.notify_all()

    def end_soon(self, reason: str) -> None:
        """End at the next step."""
        self._next_step = self._next_step or reason

    def check(self) -> None:
        """Between two steps.

        Raises:
            Interrupted: there is a reason to end.
        """
        reason = self._reason or self._next_step
        if reason is not None:
            raise Interrupted(reason)

    def wake(self) -> None:
        """Let those who wait look again at what they wait for."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Wait until something holds or the time is over; whether it holds.

        Raises:
            Interrupted: there is a reason to end.
        """
        with self._changed:
            holds = self._changed.wait_for(lambda: self._reason is not None or until(), max(seconds, 0.0))
            if self._reason is not None:
                raise Interrupted(self._reason)
            return holds
