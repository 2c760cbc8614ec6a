"""Background jobs of a search: one for each piece, and one that ranks the outcomes."""

from datetime import timedelta
from typing import Final

from pydantic import BaseModel

from service.kit.database.engine import Writer
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import cancel_waiting_jobs, enqueue_job


class PlanToRank(BaseModel):
    """Arguments of a ranking job. A job of an earlier ``beginning`` is obsolete."""

    plan_id: str
    beginning: int


class PieceToSearch(PlanToRank):
    """Arguments of a search job."""

    number: int


SEARCH: Final = JobType(name="plans.search", arguments=PieceToSearch)
RANK: Final = JobType(name="plans.rank", arguments=PlanToRank)
KINDS: Final = (SEARCH.name, RANK.name)
LEASE: Final = timedelta(seconds=10)
"""Time that a killed process delays a piece. A piece takes seconds."""


def enqueue_search(session: Writer, tenant_id: str, plan_id: str, beginning: int, number: int) -> None:
    """Enqueues the search of a piece."""
    arguments = PieceToSearch(plan_id=plan_id, beginning=beginning, number=number)
    key = f"{plan_id} {beginning} {number}"
    enqueue_job(session, SEARCH, arguments, tenant_id=tenant_id, effect_key=key)


def enqueue_ranking(session: Writer, tenant_id: str, plan_id: str, beginning: int) -> None:
    """Enqueues the ranking of the outcomes."""
    arguments = PlanToRank(plan_id=plan_id, beginning=beginning)
    key = f"{plan_id} {beginning} rank"
    enqueue_job(session, RANK, arguments, tenant_id=tenant_id, effect_key=key)


def cancel_jobs(session: Writer, tenant_id: str, plan_id: str) -> None:
    """Cancels the waiting jobs of a plan. A running job finds that its plan has ended."""
    cancel_waiting_jobs(session, tenant_id, KINDS, f"{plan_id} ")
