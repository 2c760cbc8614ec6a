"""Failures of a database that operation must expect. Any other error of a database is a defect of ours."""

import logging
import sqlite3
import threading
from collections.abc import Callable
from enum import StrEnum
from time import monotonic
from typing import Final, NamedTuple

from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_log = logging.getLogger(__name__)


class FailureKind(StrEnum):
    """Kinds of failures, by what a caller or an operator can do about them."""

    AWAY = "away"
    BUSY = "busy"
    FULL = "full"
    READ_ONLY = "read_only"
    IO_ERROR = "io_error"
    DAMAGED = "damaged"
    OUTCOME_UNKNOWN = "outcome_unknown"


class DatabaseFailure(NamedTuple):
    """An expected failure and its description for the log."""

    kind: FailureKind
    words: str


class WriteTurnError(PoolTimeoutError):
    """A writer did not get its turn, because too many wait or because its time is over."""


class OutcomeUnknownError(OperationalError):
    """The connection was lost while a transaction was committed, which may have happened or not."""


class ReadOnlyError(SQLAlchemyError):
    """The server accepts no writes: it is a replica, or set to read-only."""


_LOCKED = DatabaseFailure(FailureKind.BUSY, "the database is locked by another writer")
_SLOW = DatabaseFailure(FailureKind.BUSY, "a statement took too long")
_AWAY = DatabaseFailure(FailureKind.AWAY, "the database cannot be reached")
_SQLITE = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_INTERRUPT: _SLOW,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: DatabaseFailure(FailureKind.FULL, "the disk is full"),
    sqlite3.SQLITE_CANTOPEN: DatabaseFailure(FailureKind.AWAY, "the database file cannot be opened"),
    sqlite3.SQLITE_READONLY: DatabaseFailure(FailureKind.READ_ONLY, "the database file is read-only"),
    sqlite3.SQLITE_PERM: DatabaseFailure(FailureKind.READ_ONLY, "the database file is read-only"),
    sqlite3.SQLITE_IOERR: DatabaseFailure(FailureKind.IO_ERROR, "the disk fails to read or write"),
    # The system's error for a read is reported as a damaged file too.
    sqlite3.SQLITE_CORRUPT: DatabaseFailure(FailureKind.DAMAGED, "the database file cannot be read"),
    sqlite3.SQLITE_NOTADB: DatabaseFailure(FailureKind.DAMAGED, "the file is not a database"),
}
_PRIMARY_CODE = 0xFF
"""Mask of the part of a SQLite result code that its extended codes share."""

# Keyed by SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    "08": _AWAY,
    "25006": DatabaseFailure(FailureKind.READ_ONLY, "the database is a replica or set to read-only"),
    "25P03": DatabaseFailure(FailureKind.BUSY, "a transaction was idle for too long"),
    "25P04": DatabaseFailure(FailureKind.BUSY, "a transaction took too long"),
    "40003": DatabaseFailure(FailureKind.OUTCOME_UNKNOWN, "whether a write was committed is unknown"),
    "40": DatabaseFailure(FailureKind.BUSY, "concurrent transactions conflicted"),
    "53100": DatabaseFailure(FailureKind.FULL, "the disk of the database is full"),
    "53": DatabaseFailure(FailureKind.BUSY, "the database is out of memory or connections"),
    "55P03": DatabaseFailure(FailureKind.BUSY, "a lock was not available in time"),
    "57014": _SLOW,
    "57P": DatabaseFailure(FailureKind.AWAY, "the database is stopping or starting"),
    "58": DatabaseFailure(FailureKind.IO_ERROR, "the disk of the database fails to read or write"),
    "XX001": DatabaseFailure(FailureKind.DAMAGED, "data of the database is damaged"),
    "XX002": DatabaseFailure(FailureKind.DAMAGED, "an index of the database is damaged"),
}
READ_ONLY_STATE = "25006"
_UNKNOWN_IN_SQLITE = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)
"""The log is written whole, and what the disk has of it shows after a crash."""
STOPS_WRITES = (FailureKind.READ_ONLY, FailureKind.IO_ERROR, FailureKind.OUTCOME_UNKNOWN)
"""Kinds of failures of a write after which the next write is expected to fail too."""


def describe_failure(error: Exception) -> DatabaseFailure | None:
    """Returns the failure that operation must expect, or None for a defect."""
    if isinstance(error, WriteTurnError):
        return DatabaseFailure(FailureKind.BUSY, str(error))
    if isinstance(error, PoolTimeoutError):
        return DatabaseFailure(FailureKind.BUSY, "every connection is in use")
    if isinstance(error, OutcomeUnknownError):
        return _POSTGRESQL["40003"]
    if isinstance(error, ReadOnlyError):
        return _POSTGRESQL[READ_ONLY_STATE]
    return _describe_driver_error(error) if isinstance(error, DBAPIError) else None


def _describe_driver_error(error: DBAPIError) -> DatabaseFailure | None:
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY_CODE)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        # The server gave no code: it was not reached, or the connection was lost.
        is_lost = error.connection_invalidated or isinstance(error, OperationalError)
        return _AWAY if is_lost else None
    return next((failure for code, failure in _POSTGRESQL.items() if state.startswith(code)), None)


def is_outcome_unknown(error: DBAPIError) -> bool:
    """Returns true if a transaction whose commit raised ``error`` may have been committed nevertheless."""
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) in _UNKNOWN_IN_SQLITE
    failure = describe_failure(error)
    return failure is not None and failure.kind in (FailureKind.AWAY, FailureKind.OUTCOME_UNKNOWN)


QUIET_SECONDS: Final = 30.0
"""Shortest time between two warnings of the same failure."""
_warned_at: dict[str, float] = {}
_unsaid: dict[str, int] = {}
_warning = threading.Lock()


def warn_of_failure(log: logging.Logger, doing: str, failure: DatabaseFailure) -> None:
    """Warns of a failure once in a while, whoever meets it, and says how often it was met since."""
    with _warning:
        unsaid = _unsaid.pop(failure.words, 0)
        if monotonic() < _warned_at.get(failure.words, -QUIET_SECONDS) + QUIET_SECONDS:
            _unsaid[failure.words] = unsaid + 1
            return
        _warned_at[failure.words] = monotonic()
    log.warning("%s: %s (%d times more since the last warning)", doing, failure.words, unsaid)


def warn_of_error(log: logging.Logger, doing: str, error: Exception) -> None:
    """Warns of an error of work that is tried again; of a failure of the database only once in a while."""
    if failure := describe_failure(error):
        warn_of_failure(log, doing, failure)
    else:
        log.warning("%s: %s", doing, type(error).__name__)


def follow_commit(refresh: Callable[[], None]) -> None:
    """Refreshes what a process has read once a write is stored; a failure of the database is logged.

    The write is not refused for it: it is stored, and the process refreshes by itself every second.
    """
    try:
        refresh()
    except Exception as error:
        failure = describe_failure(error)
        if failure is None:
            raise
        warn_of_failure(_log, "a write is stored, but not read yet", failure)
