"""Application of policy and budget changes whose delay is over, so that their events are sent."""

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from service.budgets.service import APPLIERS
from service.evidence.snapshot import get_store
from service.kit.http.problems import Problem
from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.policies.changes import service as changes

if TYPE_CHECKING:
    from service.audit.service import Writes

_logger = logging.getLogger(__name__)


def build_policy_application(writes: "Writes") -> JobSchedule:
    """Builds the schedule that applies due changes that no request has applied."""

    def apply_due_changes(job: JobChunk[NoArguments]) -> CompletedJob:
        applied, store = 0, get_store(job.database)
        with job.database.open_reader() as session:
            tenants = changes.list_due_tenants(session)
        if tenants:
            store.refresh()
        for tenant_id in tenants:
            try:
                applied += changes.settle_due_changes(
                    job.database,
                    writes,
                    tenant_id,
                    lambda name: store.load(name).exchange_rates,
                    APPLIERS,
                )
            except Problem as refused:
                _logger.warning("changes of policies of tenant %s: %s", tenant_id, refused.code)
        return CompletedJob({"policy_changes": applied})

    kind = RunnableJobType(
        name="policy_changes.sweep",
        arguments=NoArguments,
        run=apply_due_changes,
        concurrency=1,
        retention=timedelta(hours=1),
    )
    return JobSchedule(name=kind.name, every=timedelta(minutes=1), job=kind)
