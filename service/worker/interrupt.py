"""Interruption of running work with a reason, and waits that it wakes."""

import threading
from collections.abc import Callable


class Interrupted(Exception):
    """The running work has to end; ``reason`` is a code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class InterruptSignal:
    """Signal that ends running work, at once or at its next step; set by any thread, it wakes others."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reason: str | None = None
        self._next_step: str | None = None

    @property
    def reason(self) -> str | None:
        """Reason to end; None if there is none."""
        return self._reason

    def set(self, reason: str) -> None:
        """Ends the running work at once; the first reason stays."""
        with self._changed:
            self._reason = self._reason or reason
            self._changed.notify_all()

    def end_soon(self, reason: str) -> None:
        """Ends the running work at its next step."""
        self._next_step = self._next_step or reason

    def check(self) -> None:
        """Checks for an interruption between two steps.

        Raises:
            Interrupted: There is a reason to end.
        """
        reason = self._reason or self._next_step
        if reason is not None:
            raise Interrupted(reason)

    def wake(self) -> None:
        """Makes waiting threads check their condition again."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Waits until a condition holds or the time is over; returns true if it holds.

        Raises:
            Interrupted: There is a reason to end.
        """
        with self._changed:
            holds = self._changed.wait_for(lambda: self._reason is not None or until(), max(seconds, 0.0))
            if self._reason is not None:
                raise Interrupted(self._reason)
            return holds
