"""Whether somebody waits for what a thread works on."""

import contextvars
import threading


class NoLongerWantedError(BaseException):
    """Ends work that nobody waits for any more; no `except Exception` on the way keeps it."""


unwanted: contextvars.ContextVar[threading.Event | None] = contextvars.ContextVar("unwanted", default=None)
"""Set once nobody waits for the work of a context; None where nobody can leave."""


def check_cancelled() -> None:
    """Between two pieces of long work: end it here if nobody waits for it any more."""
    left = unwanted.get()
    if left is not None and left.is_set():
        raise NoLongerWantedError
