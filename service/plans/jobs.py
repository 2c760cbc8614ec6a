"""What a search asks of the background: a job for each piece, and one that ranks what they found."""

from datetime import timedelta
from typing import Final

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import cancel_waiting_jobs, enqueue_job


class PlanToRank(BaseModel):
    """Which plan; of an earlier beginning of its search, the job is not wanted any more."""

    plan_id: str
    beginning: int


class PieceToSearch(PlanToRank):
    """Which piece of which plan."""

    number: int


SEARCH: Final = JobType(name="plans.search", arguments=PieceToSearch)
RANK: Final = JobType(name="plans.rank", arguments=PlanToRank)
KINDS: Final = (SEARCH.name, RANK.name)
LEASE: Final = timedelta(seconds=10)
"""A piece takes seconds, and so long a killed process holds it up."""


def enqueue_search(session: Writer, tenant_id: str, plan_id: str, beginning: int, number: int) -> None:
    """Ask for a piece to be searched."""
    arguments = PieceToSearch(plan_id=plan_id, beginning=beginning, number=number)
    key = f"{plan_id} {beginning} {number}"
    enqueue_job(session, SEARCH, arguments, tenant_id=tenant_id, effect_key=key)


def enqueue_ranking(session: Writer, tenant_id: str, plan_id: str, beginning: int) -> None:
    """Ask for what the pieces found to be ranked."""
    arguments = PlanToRank(plan_id=plan_id, beginning=beginning)
    key = f"{plan_id} {beginning} rank"
    enqueue_job(session, RANK, arguments, tenant_id=tenant_id, effect_key=key)


def cancel_jobs(session: Writer, tenant_id: str, plan_id: str) -> None:
    """Let no job of a plan begin any more; one that runs finds that its plan does not want it."""
    cancel_waiting_jobs(session, tenant_id, KINDS, f"{plan_id} ")
