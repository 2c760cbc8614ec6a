"""Changes of policies and budgets whose delay is over: they need no job to be used, but to be told."""

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from service.approvals.changes import service as changes
from service.evidence.snapshot import store_of
from service.kit.http.problems import Problem
from service.kit.jobs.kinds import Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule

if TYPE_CHECKING:
    from service.audit.service import Writes

_logger = logging.getLogger(__name__)


def applying(writes: "Writes") -> Schedule:
    """Lets changes take effect that are due and that nobody has used since."""

    def run(job: Job[Nothing]) -> Done:
        applied, store = 0, store_of(job.database)
        with job.database.reading() as session:
            tenants = changes.tenants_due(session)
        if tenants:
            store.refresh()
        for tenant_id in tenants:
            try:
                applied += changes.settle(
                    job.database, writes, tenant_id, lambda name: store.current(name).exchange_rates
                )
            except Problem as refused:
                _logger.warning("changes of policies of tenant %s: %s", tenant_id, refused.code)
        return Done({"policy_changes": applied})

    kind = Kind(
        name="policy_changes.sweep", arguments=Nothing, run=run, concurrency=1, retention=timedelta(hours=1)
    )
    return Schedule(name=kind.name, every=timedelta(minutes=1), job=kind)
