"""Background jobs of a search: one for each piece, and one that ranks or schedules the outcomes."""

from datetime import timedelta
from typing import Final, NamedTuple

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import cancel_waiting_jobs, enqueue_job
from service.plans.tables import CONFIGURATION, FLEET, PlanRow


class PlanToRank(BaseModel):
    """Arguments of a job that ends a search. A job of an earlier ``beginning`` is obsolete."""

    plan_id: str
    beginning: int


class PieceToSearch(PlanToRank):
    """Arguments of a search job."""

    number: int


class SearchJobs(NamedTuple):
    """Jobs of the searches of one kind of plan."""

    search: JobType[PieceToSearch]
    finish: JobType[PlanToRank]


# Jobs of fleets have names of their own: a process of an older version would take them for those of plans.
JOBS: Final = {
    CONFIGURATION: SearchJobs(
        JobType(name="plans.search", arguments=PieceToSearch),
        JobType(name="plans.rank", arguments=PlanToRank),
    ),
    FLEET: SearchJobs(
        JobType(name="plans.search_fleet", arguments=PieceToSearch),
        JobType(name="plans.schedule_fleet", arguments=PlanToRank),
    ),
}
KINDS: Final = tuple(job.name for jobs in JOBS.values() for job in jobs)
LEASE: Final = timedelta(seconds=10)
"""Time that a killed process delays a piece. A piece takes seconds."""


def enqueue_search(session: Writer, plan: PlanRow, number: int) -> None:
    """Enqueues the search of a piece."""
    arguments = PieceToSearch(plan_id=plan.id, beginning=plan.beginning, number=number)
    key = f"{plan.id} {plan.beginning} {number}"
    enqueue_job(session, JOBS[plan.kind].search, arguments, tenant_id=plan.tenant_id, effect_key=key)


def enqueue_ranking(session: Writer, plan: PlanRow) -> None:
    """Enqueues the ranking of the outcomes, or the schedule of a fleet."""
    arguments = PlanToRank(plan_id=plan.id, beginning=plan.beginning)
    key = f"{plan.id} {plan.beginning} rank"
    enqueue_job(session, JOBS[plan.kind].finish, arguments, tenant_id=plan.tenant_id, effect_key=key)


def cancel_jobs(session: Writer, tenant_id: str, plan_id: str) -> None:
    """Cancels the waiting jobs of a plan. A running job finds that its plan has ended."""
    cancel_waiting_jobs(session, tenant_id, KINDS, f"{plan_id} ")
