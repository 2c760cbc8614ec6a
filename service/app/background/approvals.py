"""Deadlines of approvals: a job for each, and a sweep for those that a job has missed."""

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from service.approvals import deadlines
from service.approvals.deadlines import SETTLE, ApprovalToSettle
from service.approvals.repository import DueApproval
from service.kit.database.engine import Database, Writer
from service.kit.http.problems import Problem
from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments

if TYPE_CHECKING:
    from service.audit.service import Writes

_logger = logging.getLogger(__name__)


def build_settlement_kind(writes: "Writes") -> RunnableJobType[ApprovalToSettle]:
    """Builds the kind of job that acts on a passed deadline of an approval."""

    def settle_approval(job: JobChunk[ApprovalToSettle]) -> CompletedJob:
        with job.open_writer() as session:
            return CompletedJob(
                {"done": settle_deadlines(session, writes, job.tenant_id, job.arguments.approval_id)}
            )

    return RunnableJobType(name=SETTLE.name, arguments=SETTLE.arguments, run=settle_approval)


def build_deadline_sweep(writes: "Writes") -> JobSchedule:
    """Builds the schedule that acts on deadlines without a job, which was cancelled or missed the time."""

    def sweep_deadlines(job: JobChunk[NoArguments]) -> CompletedJob:
        acted, last = 0, None
        while found := _list_due(job.database, last):
            for last in found:
                # Each in its own transaction: the head of a chain is locked after the approval, never before
                # another one, and an approval that was corrupted outside the service does not block those
                # behind it.
                try:
                    with job.open_writer() as session:
                        acted += len(settle_deadlines(session, writes, last.tenant_id, last.approval_id))
                except Problem as refused:
                    _logger.warning("a deadline of approval %s: %s", last.approval_id, refused.code)
        return CompletedJob({"approvals": acted})

    kind = RunnableJobType(
        name="approvals.sweep",
        arguments=NoArguments,
        run=sweep_deadlines,
        concurrency=1,
        retention=timedelta(hours=1),
    )
    return JobSchedule(name=kind.name, every=timedelta(minutes=1), job=kind)


def _list_due(database: Database, after: DueApproval | None) -> list[DueApproval]:
    with database.open_reader() as session:
        return deadlines.list_due_approvals(session, after)


def settle_deadlines(session: Writer, writes: "Writes", tenant_id: str, approval_id: str) -> list[str]:
    """Acts on every deadline of an approval that has passed, and records each change."""
    done = []
    while acted := deadlines.settle_deadline(session, tenant_id, approval_id):
        writes.record_own_change(session, tenant_id, *acted)
        done.append(acted[0])
    return done
