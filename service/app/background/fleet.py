"""Settlement of benchmark runs that nodes have abandoned: leases that are not renewed or claimed."""

from datetime import timedelta

from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.nodes.service import expire_abandoned


def _settle_abandoned_runs(job: JobChunk[NoArguments]) -> CompletedJob:
    with job.open_writer() as session:
        return CompletedJob(expire_abandoned(session))


SETTLING = JobSchedule(
    name="leases.settle",
    every=timedelta(minutes=1),
    job=RunnableJobType(
        name="leases.settle",
        arguments=NoArguments,
        run=_settle_abandoned_runs,
        concurrency=1,
        retention=timedelta(hours=1),
    ),
)
