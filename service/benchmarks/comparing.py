"""The job that compares results with earlier ones, enqueued when they are validated."""

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import enqueue_job


class RunToCompare(BaseModel):
    """Arguments of the job that compares results."""

    run_id: str


COMPARE = JobType(name="benchmarks.compare", arguments=RunToCompare)


def enqueue_comparison(session: Writer, tenant_id: str, run_id: str, *, because: str) -> None:
    """Enqueues the comparison of a run's results, once for each reason."""
    arguments = RunToCompare(run_id=run_id)
    enqueue_job(session, COMPARE, arguments, tenant_id=tenant_id, effect_key=f"{run_id} {because}")
