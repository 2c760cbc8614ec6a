"""Answers to failures of the database that operation must expect: 503 with a code; callers try again.

Any other database error is a defect of ours and stays a 500.
"""

import logging

from fastapi import FastAPI, Request, Response
from sqlalchemy.exc import SQLAlchemyError

from service.kit.database.failures import DatabaseFailure, FailureKind, describe_failure, warn_of_failure
from service.kit.http.problems import Unavailable
from service.kit.http.web import problem_response

log = logging.getLogger(__name__)

SOON_SECONDS = 1
LATER_SECONDS = 30
"""`Retry-After` of a failure that waits for an operator."""


class DatabaseAway(Unavailable):
    """The database cannot be reached, or it stops or starts."""

    code, title = "DATABASE_UNAVAILABLE", "The database cannot be reached"


class DatabaseBusy(Unavailable):
    """Too many writers wait for the database, or a lock or statement took too long."""

    code, title = "DATABASE_BUSY", "The database is busy"


class DatabaseFull(Unavailable):
    """The disk of the database is full. Nothing was stored; reads go on."""

    code, title = "DATABASE_FULL", "The disk of the database is full"


class DatabaseReadOnly(Unavailable):
    """The database takes no writes: its file is read-only, or its server is a replica."""

    code, title = "DATABASE_READ_ONLY", "The database takes no writes"


class DatabaseFailing(Unavailable):
    """The disk of the database fails to read or write."""

    code, title = "DATABASE_IO_ERROR", "The disk of the database fails"


class DatabaseDamaged(Unavailable):
    """Data of the database is damaged, or its file is no database. An operator restores a backup."""

    code, title = "DATABASE_DAMAGED", "The database is damaged"


class OutcomeUnknown(Unavailable):
    """The connection was lost while the write was committed. Its Idempotency-Key makes a retry safe."""

    code, title = "OUTCOME_UNKNOWN", "The write may have been stored or not: send it again with the same key"


_PROBLEMS: dict[FailureKind, tuple[type[Unavailable], int]] = {
    FailureKind.AWAY: (DatabaseAway, SOON_SECONDS),
    FailureKind.BUSY: (DatabaseBusy, SOON_SECONDS),
    FailureKind.FULL: (DatabaseFull, LATER_SECONDS),
    FailureKind.READ_ONLY: (DatabaseReadOnly, SOON_SECONDS),
    FailureKind.IO_ERROR: (DatabaseFailing, LATER_SECONDS),
    FailureKind.DAMAGED: (DatabaseDamaged, LATER_SECONDS),
    FailureKind.OUTCOME_UNKNOWN: (OutcomeUnknown, SOON_SECONDS),
}


def build_database_problem(failure: DatabaseFailure) -> Unavailable:
    """Returns the answer to a request that met ``failure``."""
    problem, seconds = _PROBLEMS[failure.kind]
    return problem(headers={"Retry-After": str(seconds)})


async def _on_database_error(request: Request, error: Exception) -> Response:
    failure = describe_failure(error)
    if failure is None:
        raise error
    warn_of_failure(log, "a request was not answered", failure)
    return problem_response(build_database_problem(failure), request.scope)


def install_database_errors(app: FastAPI) -> None:
    """Makes ``app`` answer expected failures of the database with 503."""
    app.add_exception_handler(SQLAlchemyError, _on_database_error)
