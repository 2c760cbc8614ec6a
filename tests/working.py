"""Background jobs that a test does itself, one after the other, without threads."""

import threading
import time
from math import inf
from typing import Any

from service.kit.database.engine import Database
from service.kit.jobs import chunks, repository
from service.kit.jobs.chunks import ClaimedJob, FailedChunk
from service.kit.jobs.kinds import JobLease, RunnableJobType
from service.kit.jobs.tables import JobRow

_NEVER = threading.Event()


def do_all(database: Database, *kinds: RunnableJobType[Any], most: float = inf) -> int:
    """Do the jobs of these kinds that are due, or so many; how many. One that fails is an error."""
    done = 0
    while done < most and (row := _claimed(database, kinds)) is not None:
        kind = next(kind for kind in kinds if kind.name == row.kind)
        hold = JobLease(lease=row.lease, ends_at=time.monotonic() + 60, is_cancelled=False, stopping=_NEVER)
        claimed = ClaimedJob(kind, row, hold)
        outcome = chunks.run_chunk(database, claimed)
        assert not isinstance(outcome, FailedChunk), outcome
        with database.open_writer() as session:
            chunks.record_outcome(session, claimed, outcome)
        done += 1
    return done


def _claimed(database: Database, kinds: tuple[RunnableJobType[Any], ...]) -> JobRow | None:
    with database.open_writer() as session:
        found = (repository.claim_job(session, kind) for kind in kinds)
        return next((row for row in found if row is not None), None)
