"""Cancellation of long work in threads, once its caller has gone."""

import contextvars
import threading


class NoLongerWantedError(BaseException):
    """Ends work whose caller has gone. It derives from ``BaseException`` to pass every `except Exception`."""


unwanted: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("unwanted", default=None)
"""Event that is set once the caller has gone. Defaults to None, where the work cannot be cancelled."""


def check_cancelled() -> None:
    """Raises :class:`NoLongerWantedError` if the caller has gone. Long work calls it between two pieces."""
    left = unwanted.get()
    if left is not None and left.is_set():
        raise NoLongerWantedError
