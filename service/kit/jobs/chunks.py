"""One chunk of a job: run under its lease, and what comes of it written with the token."""

import logging
import random
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from service.kit.database.engine import Database, Writer
from service.kit.http.problems import Problem
from service.kit.jobs import leases
from service.kit.jobs.kinds import Continue, Done, Hold, Job, JobError, Kind
from service.kit.jobs.leases import LeaseLost
from service.kit.jobs.tables import CANCELLED, DEAD, DONE, JobRow

_SUMMARY_CHARACTERS = 500
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failed:
    """The chunk failed."""

    code: str
    summary: str
    is_final: bool = False


Outcome = Continue | Done | Failed

ABANDONED = Failed(
    "ABANDONED", "No attempt came to an end: its process was killed or lost its lease.", is_final=True
)
UNWRITABLE = Failed("OUTCOME_UNWRITABLE", "The database does not take what the job returned.")


class Claimed(NamedTuple):
    """A row that this process has claimed."""

    kind: Kind[Any]
    row: JobRow
    hold: Hold


def run(database: Database, claimed: Claimed) -> Outcome:
    """Run one chunk; :class:`LeaseLost` passes through, any other error is an outcome."""
    kind, row, hold = claimed
    if row.cancel_requested:
        return Continue(row.progress)
    if row.attempt > kind.attempts:
        return ABANDONED
    try:
        job = Job(
            database=database,
            id=row.id,
            tenant_id=row.tenant_id,
            arguments=_arguments(kind, row),
            progress=row.progress,
            attempt=row.attempt,
            hold=hold,
        )
        return kind.run(job)
    except LeaseLost:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a kind raises is an attempt that failed
        return _failed(claimed, error)


def _arguments(kind: Kind[Any], row: JobRow) -> BaseModel:
    try:
        arguments: BaseModel = kind.arguments.model_validate(row.arguments)
    except ValidationError as error:
        faults = (f"/{'/'.join(map(str, fault['loc']))}: {fault['type']}" for fault in error.errors())
        raise JobError("ARGUMENTS_INVALID", "; ".join(faults), is_final=True) from None
    return arguments


def _failed(claimed: Claimed, error: Exception) -> Failed:
    # Messages of errors can repeat what was sent; only those made for callers are kept or logged.
    match error:
        case JobError():
            failed = Failed(error.code, error.summary, error.is_final)
        case Problem():
            failed = Failed(error.code, error.detail)
        case _:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            failed = Failed("UNEXPECTED", f"{type(error).__qualname__} at {place}")
    frames = "".join(traceback.format_tb(error.__traceback__))
    told = (claimed.row.id, claimed.kind.name, failed.code, failed.summary, frames)
    _logger.warning("job %s of kind %s failed: %s, %s\n%s", *told)
    return failed


def settle(session: Writer, claimed: Claimed, outcome: Outcome) -> None:
    """Write what came of a chunk, if the lease still stands."""
    match outcome:
        case Done():
            values = {"result": dict(outcome.result), "finished_at": leases.now()}
            leases.finish(session, JobRow, claimed.hold.lease, DONE, **values)
        case Continue():
            values = {"progress": dict(outcome.progress), "attempt": 0}
            delay = outcome.delay.total_seconds()
            _go_on(session, claimed, delay, **values)
        case Failed():
            values = {"error_code": outcome.code, "error_summary": outcome.summary[:_SUMMARY_CHARACTERS]}
            is_dead = outcome.is_final or claimed.row.attempt >= claimed.kind.attempts
            _go_on(session, claimed, None if is_dead else _backoff(claimed), **values)


def _go_on(session: Writer, claimed: Claimed, delay: float | None, **values: Any) -> None:  # noqa: ANN401
    """Let the job wait for its next chunk, unless it is cancelled or, without a delay, dead."""
    lease = claimed.hold.lease
    row = leases.write(session, JobRow, lease, **values)
    if row.cancel_requested:
        leases.finish(session, JobRow, lease, CANCELLED, finished_at=leases.now())
    elif delay is None:
        leases.finish(session, JobRow, lease, DEAD, finished_at=leases.now())
    else:
        leases.release(session, JobRow, lease, delay=delay)


def _backoff(claimed: Claimed) -> float:
    """Full jitter: anything up to a bound that doubles, so that what failed together comes back apart."""
    kind, attempt = claimed.kind, claimed.row.attempt
    doubled = kind.backoff.total_seconds() * 2.0 ** min(attempt - 1, 60)
    return random.uniform(0.0, min(doubled, kind.longest_backoff.total_seconds()))  # noqa: S311  # no secret


def give_back(session: Writer, claimed: Claimed) -> None:
    """Give back what this process will not finish; the attempt does not count."""
    leases.release(session, JobRow, claimed.hold.lease, delay=0.0, attempt=JobRow.attempt - 1)
