"""Searches for plans: pieces are searched by whichever process is free; the last requests the ranking."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from service.estimates.service import NoSoundEstimate, answer_question
from service.evidence.snapshot import get_store
from service.kit.jobs.kinds import CompletedJob, JobChunk, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.plans import stored
from service.plans.jobs import LEASE, RANK, SEARCH, PieceToSearch, PlanToRank
from service.plans.service import build_pin, prepare_pieces, rank_plan, search_plan_piece
from service.plans.stored import RunningPlan
from service.resolve.catalog import CatalogView
from service.schemas.plans import PlanRequest

_Result = TypeVar("_Result")


def _search_plan(job: JobChunk[PieceToSearch]) -> CompletedJob:
    with job.database.open_reader() as session:
        plan = stored.find_active_plan(session, job.tenant_id, job.arguments)
        piece = stored.get_piece(session, job.tenant_id, job.arguments) if plan else None
    if plan is None or piece is None:
        return CompletedJob()
    outcome = _find_under_pin(job, plan, partial(search_plan_piece, piece=piece))
    if outcome is not None:
        with job.open_writer() as session:
            stored.record_outcome(session, job.tenant_id, job.arguments, outcome)
    return CompletedJob()


def _rank_plan(job: JobChunk[PlanToRank]) -> CompletedJob:
    with job.database.open_reader() as session:
        plan = stored.find_active_plan(session, job.tenant_id, job.arguments)
        outcomes = stored.list_outcomes(session, job.tenant_id, job.arguments.plan_id)
    if plan is None:
        return CompletedJob()
    ranked = _find_under_pin(job, plan, partial(rank_plan, outcomes=outcomes))
    if ranked is not None:
        with job.open_writer() as session:
            stored.record_answer(session, job.tenant_id, job.arguments, ranked)
    return CompletedJob()


def _find_under_pin(
    job: JobChunk[Any], plan: RunningPlan, find: Callable[[PlanRequest, CatalogView], _Result]
) -> _Result | None:
    """Runs ``find`` under the pin of a plan; returns None if the plan fails or is restarted instead."""
    catalog = _load_catalog(job)
    try:
        if plan.pin == build_pin(catalog):
            found = answer_question(find, plan.question, catalog)
            if plan.pin == build_pin(catalog):  # the date has not changed meanwhile
                return found
        prepared = answer_question(prepare_pieces, plan.question, catalog)
    except NoSoundEstimate as refused:
        # A question that lacks data is not a failure of the job.
        with job.open_writer() as session:
            stored.fail_plan(session, job.tenant_id, job.arguments, refused.errors[0])
    else:
        with job.open_writer() as session:
            stored.restart_search(session, job.tenant_id, job.arguments, prepared)
    return None


def _load_catalog(job: JobChunk[Any]) -> CatalogView:
    """Loads the tenant's current catalog, which only requests keep fresh otherwise."""
    store = get_store(job.database)
    store.refresh()
    return store.load(job.tenant_id)


_LONGEST_BACKOFF = timedelta(seconds=10)
SEARCHING = RunnableJobType(
    name=SEARCH.name,
    arguments=SEARCH.arguments,
    run=_search_plan,
    is_heavy=True,
    lease=LEASE,
    longest_backoff=_LONGEST_BACKOFF,
)
RANKING = RunnableJobType(
    name=RANK.name,
    arguments=RANK.arguments,
    run=_rank_plan,
    is_heavy=True,
    lease=LEASE,
    longest_backoff=_LONGEST_BACKOFF,
)


def _fail_stuck_plans(job: JobChunk[NoArguments]) -> CompletedJob:
    with job.open_writer() as session:
        return CompletedJob({"plans": stored.fail_stuck_plans(session)})


SWEEPING = JobSchedule(
    name="plans.sweep",
    every=timedelta(minutes=1),
    job=RunnableJobType(
        name="plans.sweep",
        arguments=NoArguments,
        run=_fail_stuck_plans,
        concurrency=1,
        retention=timedelta(hours=1),
    ),
)
