"""Execution of one chunk of a job under its lease. The outcome is written with the fencing token."""

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
from service.kit.jobs.kinds import CompletedJob, ContinueJob, JobChunk, JobError, JobLease, RunnableJobType
from service.kit.jobs.leases import LeaseLost
from service.kit.jobs.tables import CANCELLED, DEAD, DONE, JobRow

_SUMMARY_CHARACTERS = 500
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """The chunk failed."""

    code: str
    summary: str
    is_final: bool = False


ChunkOutcome = ContinueJob | CompletedJob | FailedChunk

ABANDONED = FailedChunk(
    "ABANDONED", "No attempt came to an end: its process was killed or lost its lease.", is_final=True
)
UNWRITABLE = FailedChunk("OUTCOME_UNWRITABLE", "The result of the job cannot be stored in the database.")


class ClaimedJob(NamedTuple):
    """A row that this process has claimed."""

    kind: RunnableJobType[Any]
    row: JobRow
    hold: JobLease


def run_chunk(database: Database, claimed: ClaimedJob) -> ChunkOutcome:
    """Run one chunk; :class:`LeaseLost` passes through, any other error is an outcome."""
    kind, row, hold = claimed
    if row.cancel_requested:
        return ContinueJob(row.progress)
    if row.attempt > kind.attempts:
        return ABANDONED
    try:
        job = JobChunk(
            database=database,
            id=row.id,
            tenant_id=row.tenant_id,
            arguments=_parse_arguments(kind, row),
            progress=row.progress,
            attempt=row.attempt,
            hold=hold,
        )
        return kind.run(job)
    except LeaseLost:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a kind raises is an attempt that failed
        return _to_failure(claimed, error)


def _parse_arguments(kind: RunnableJobType[Any], row: JobRow) -> BaseModel:
    try:
        arguments: BaseModel = kind.arguments.model_validate(row.arguments)
    except ValidationError as error:
        faults = (f"/{'/'.join(map(str, fault['loc']))}: {fault['type']}" for fault in error.errors())
        raise JobError("ARGUMENTS_INVALID", "; ".join(faults), is_final=True) from None
    return arguments


def _to_failure(claimed: ClaimedJob, error: Exception) -> FailedChunk:
    # Messages of errors may repeat the input; only those written for callers are stored or logged.
    match error:
        case JobError():
            failed = FailedChunk(error.code, error.summary, error.is_final)
        case Problem():
            failed = FailedChunk(error.code, error.detail)
        case _:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            failed = FailedChunk("UNEXPECTED", f"{type(error).__qualname__} at {place}")
    frames = "".join(traceback.format_tb(error.__traceback__))
    told = (claimed.row.id, claimed.kind.name, failed.code, failed.summary, frames)
    _logger.warning("job %s of kind %s failed: %s, %s\n%s", *told)
    return failed


def record_outcome(session: Writer, claimed: ClaimedJob, outcome: ChunkOutcome) -> None:
    """Writes the outcome of a chunk if the lease still stands."""
    match outcome:
        case CompletedJob():
            values = {"result": dict(outcome.result), "finished_at": leases.get_database_time()}
            leases.finish_row(session, JobRow, claimed.hold.lease, DONE, **values)
        case ContinueJob():
            values = {"progress": dict(outcome.progress), "attempt": 0}
            delay = outcome.delay.total_seconds()
            _continue_job(session, claimed, delay, **values)
        case FailedChunk():
            values = {"error_code": outcome.code, "error_summary": outcome.summary[:_SUMMARY_CHARACTERS]}
            is_dead = outcome.is_final or claimed.row.attempt >= claimed.kind.attempts
            _continue_job(session, claimed, None if is_dead else _compute_backoff(claimed), **values)


def _continue_job(session: Writer, claimed: ClaimedJob, delay: float | None, **values: Any) -> None:  # noqa: ANN401
    """Schedules the next chunk of the job, unless it is cancelled or, without a delay, dead."""
    lease = claimed.hold.lease
    row = leases.write_row(session, JobRow, lease, **values)
    if row.cancel_requested:
        leases.finish_row(session, JobRow, lease, CANCELLED, finished_at=leases.get_database_time())
    elif delay is None:
        leases.finish_row(session, JobRow, lease, DEAD, finished_at=leases.get_database_time())
    else:
        leases.release_row(session, JobRow, lease, delay=delay)


def _compute_backoff(claimed: ClaimedJob) -> float:
    """Returns a delay with full jitter, up to a bound that doubles.

    Jobs that failed together are so retried apart.
    """
    kind, attempt = claimed.kind, claimed.row.attempt
    doubled = kind.backoff.total_seconds() * 2.0 ** min(attempt - 1, 60)
    return random.uniform(0.0, min(doubled, kind.longest_backoff.total_seconds()))  # noqa: S311  # no secret


def release_job(session: Writer, claimed: ClaimedJob) -> None:
    """Releases a job that this process will not finish; the attempt does not count."""
    leases.release_row(session, JobRow, claimed.hold.lease, delay=0.0, attempt=JobRow.attempt - 1)
