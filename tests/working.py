"""Background jobs that a test does itself, one after the other, without threads."""

import threading
import time
from math import inf
from typing import Any

from service.kit.database.engine import Database
from service.kit.jobs import chunks, repository
from service.kit.jobs.chunks import Claimed, Failed
from service.kit.jobs.kinds import Hold, Kind
from service.kit.jobs.tables import JobRow

_NEVER = threading.Event()


def do_all(database: Database, *kinds: Kind[Any], most: float = inf) -> int:
    """Do the jobs of these kinds that are due, or so many; how many. One that fails is an error."""
    done = 0
    while done < most and (row := _claimed(database, kinds)) is not None:
        kind = next(kind for kind in kinds if kind.name == row.kind)
        hold = Hold(lease=row.lease, ends_at=time.monotonic() + 60, is_cancelled=False, stopping=_NEVER)
        claimed = Claimed(kind, row, hold)
        outcome = chunks.run(database, claimed)
        assert not isinstance(outcome, Failed), outcome
        with database.writing() as session:
            chunks.settle(session, claimed, outcome)
        done += 1
    return done


def _claimed(database: Database, kinds: tuple[Kind[Any], ...]) -> JobRow | None:
    with database.writing() as session:
        found = (repository.claim(session, kind) for kind in kinds)
        return next((row for row in found if row is not None), None)
