"""Deadlines of approvals: each at its time, and a sweep for those that a job has missed."""

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from service.approvals import deadlines
from service.approvals.deadlines import SETTLE, ApprovalToSettle
from service.approvals.repository import Due
from service.kit.database.engine import Database, Writer
from service.kit.http.problems import Problem
from service.kit.jobs.kinds import Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule

if TYPE_CHECKING:
    from service.audit.service import Writes

_logger = logging.getLogger(__name__)


def settling(writes: "Writes") -> Kind[ApprovalToSettle]:
    """What is done when a deadline of an approval passes."""

    def run(job: Job[ApprovalToSettle]) -> Done:
        with job.writing() as session:
            return Done({"done": settled(session, writes, job.tenant_id, job.arguments.approval_id)})

    return Kind(name=SETTLE.name, arguments=SETTLE.arguments, run=run)


def sweeping(writes: "Writes") -> Schedule:
    """Acts on deadlines that no job has acted on: one was cancelled, or the clock was set."""

    def run(job: Job[Nothing]) -> Done:
        acted, last = 0, None
        while found := _due(job.database, last):
            for last in found:
                # Each by itself: the head of a chain is locked after the approval, never before another one,
                # and one that somebody has broken beside the service does not hold up those behind it.
                try:
                    with job.writing() as session:
                        acted += len(settled(session, writes, last.tenant_id, last.approval_id))
                except Problem as refused:
                    _logger.warning("a deadline of approval %s: %s", last.approval_id, refused.code)
        return Done({"approvals": acted})

    kind = Kind(
        name="approvals.sweep", arguments=Nothing, run=run, concurrency=1, retention=timedelta(hours=1)
    )
    return Schedule(name=kind.name, every=timedelta(minutes=1), job=kind)


def _due(database: Database, after: Due | None) -> list[Due]:
    with database.reading() as session:
        return deadlines.due(session, after)


def settled(session: Writer, writes: "Writes", tenant_id: str, approval_id: str) -> list[str]:
    """Act on every deadline of an approval that has passed, and record what was done."""
    done = []
    while acted := deadlines.settle(session, tenant_id, approval_id):
        writes.note(session, tenant_id, *acted)
        done.append(acted[0])
    return done
