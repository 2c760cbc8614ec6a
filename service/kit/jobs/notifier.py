"""Notification of the threads that look for work: an event in this process and, on PostgreSQL, to others.

A notification only saves waiting: a process that misses it finds the work at its next poll.
"""

import logging
import threading
from typing import Any
from weakref import WeakSet

from sqlalchemy import event, func, select

from service.kit.database.engine import Database, Writer
from service.kit.database.failures import warn_of_error

_CHANNEL = "ironlaw_jobs"
_LISTEN_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_logger = logging.getLogger(__name__)


class JobNotifier(threading.Event):
    """Is set when a transaction of this process has enqueued work."""

    def __init__(self) -> None:
        super().__init__()
        with _changing:
            _bells.add(self)


_changing = threading.Lock()
_bells: WeakSet[JobNotifier] = WeakSet()


def notify_after_commit(session: Writer) -> None:
    """Sets every notifier once the transaction of ``session`` is committed."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_notify(_CHANNEL, "")))
    session.info[_CHANNEL] = True


@event.listens_for(Writer, "after_commit")
def _notify_on_commit(session: Writer) -> None:
    if session.info.pop(_CHANNEL, False):
        _notify_all()


def _notify_all() -> None:
    with _changing:
        for bell in _bells:
            bell.set()


def listen_for_jobs(database: Database, closed: threading.Event) -> None:
    """Sets every notifier at each notification of PostgreSQL, across restarts, until ``closed``.

    A notification also makes it notice that it is closed.
    """
    while not closed.is_set():
        try:
            _listen_once(database, closed)
        except Exception as error:  # noqa: BLE001  # any error ends the connection; the next one is tried
            warn_of_error(_logger, "not listening for jobs", error)
            closed.wait(_PAUSE_SECONDS)


def _listen_once(database: Database, closed: threading.Event) -> None:
    pooled = database.engine.raw_connection()
    pooled.detach()
    connection: Any = pooled.dbapi_connection
    with connection:
        connection.autocommit = True
        connection.execute(f"LISTEN {_CHANNEL}")
        _notify_all()
        while not closed.is_set():
            for _ in connection.notifies(timeout=_LISTEN_SECONDS, stop_after=1):
                _notify_all()
