"""Database failures that operation must expect: answered with 503 and logged as a warning; callers try again.

Any other database error is a defect of ours and stays a 500.
"""

import logging
import sqlite3

from fastapi import FastAPI, Request, Response
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from service.kit.http.problems import Unavailable
from service.kit.http.web import problem_response

log = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 1

_SQLITE = {
    sqlite3.SQLITE_BUSY: "the database is locked by another writer",
    sqlite3.SQLITE_LOCKED: "the database is locked by another writer",
    sqlite3.SQLITE_INTERRUPT: "a statement took too long",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
}
_PRIMARY_CODE = 0xFF
"""Mask of the part of a SQLite result code that its extended codes share."""

# Keyed by SQLSTATE or its class: https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRESQL = {
    "08": "the database cannot be reached",
    "25P03": "a transaction was idle for too long",
    "25P04": "a transaction took too long",
    "40": "concurrent transactions conflicted",
    "53": "the database is out of disk, memory or connections",
    "55P03": "a lock was not available in time",
    "57014": "a statement took too long",
    "57P": "the database is stopping or starting",
}


def describe_expected_failure(error: Exception) -> str | None:
    """Returns a description of a failure that operation must expect, or None for a defect."""
    if isinstance(error, PoolTimeoutError):
        return "every connection is in use"
    if not isinstance(error, DBAPIError):
        return None
    if isinstance(error.orig, sqlite3.Error):
        return _SQLITE.get(getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY_CODE)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:
        # The server gave no code: it was not reached, or the connection was lost.
        is_lost = error.connection_invalidated or isinstance(error, OperationalError)
        return _POSTGRESQL["08"] if is_lost else None
    return next((words for code, words in _POSTGRESQL.items() if state.startswith(code)), None)


async def _on_database_error(request: Request, error: Exception) -> Response:
    failure = describe_expected_failure(error)
    if failure is None:
        raise error
    request_id = request.scope.get("state", {}).get("request_id", "")
    log.warning("request %s was not answered: %s", request_id, failure)
    problem = Unavailable(headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
    return problem_response(problem, request.scope)


def install_database_errors(app: FastAPI) -> None:
    """Makes ``app`` answer expected failures of the database with 503."""
    app.add_exception_handler(SQLAlchemyError, _on_database_error)
