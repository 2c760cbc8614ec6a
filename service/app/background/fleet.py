"""What nodes leave undone: leases that nobody renews or claims."""

from datetime import timedelta

from service.kit.jobs.kinds import Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.nodes.service import settle_abandoned


def _settle(job: Job[Nothing]) -> Done:
    with job.writing() as session:
        return Done(settle_abandoned(session))


SETTLING = Schedule(
    name="leases.settle",
    every=timedelta(minutes=1),
    job=Kind(
        name="leases.settle", arguments=Nothing, run=_settle, concurrency=1, retention=timedelta(hours=1)
    ),
)
