"""Searches for plans and fleets: any free process searches a piece; the last one requests the ranking."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from service.estimates.service import NoSoundEstimate, answer_question
from service.evidence.snapshot import get_store
from service.kit.jobs.kinds import CompletedJob, JobArguments, JobChunk, JobType, RunnableJobType
from service.kit.jobs.schedules import JobSchedule, NoArguments
from service.plans import stored
from service.plans.jobs import JOBS, LEASE, PieceToSearch, PlanToRank
from service.plans.service import FLEET_STEPS, PLAN_STEPS, SearchSteps, build_pin
from service.plans.stored import RunningPlan
from service.plans.tables import CONFIGURATION, FLEET
from service.resolve.catalog import CatalogView
from service.schemas.fleet_plans import FleetPlanRequest
from service.schemas.plans import PlanRequest

_Question = TypeVar("_Question", PlanRequest, FleetPlanRequest)
_Result = TypeVar("_Result")


def _search_piece(job: JobChunk[PieceToSearch], *, steps: SearchSteps[_Question]) -> CompletedJob:
    with job.database.open_reader() as session:
        plan = stored.find_active_plan(session, job.tenant_id, job.arguments, steps.question)
        piece = stored.get_piece(session, job.tenant_id, job.arguments) if plan else None
    if plan is None or piece is None:
        return CompletedJob()
    outcome = _find_under_pin(
        job, plan, steps, lambda question, catalog: steps.search(question, catalog, piece)
    )
    if outcome is not None:
        with job.open_writer() as session:
            stored.record_outcome(session, job.tenant_id, job.arguments, outcome)
    return CompletedJob()


def _finish_search(job: JobChunk[PlanToRank], *, steps: SearchSteps[_Question]) -> CompletedJob:
    with job.database.open_reader() as session:
        plan = stored.find_active_plan(session, job.tenant_id, job.arguments, steps.question)
        outcomes = stored.list_outcomes(session, job.tenant_id, job.arguments.plan_id)
    if plan is None:
        return CompletedJob()
    answer = _find_under_pin(
        job, plan, steps, lambda question, catalog: steps.finish(question, catalog, outcomes)
    )
    if answer is not None:
        with job.open_writer() as session:
            stored.record_answer(session, job.tenant_id, job.arguments, answer)
    return CompletedJob()


def _find_under_pin(
    job: JobChunk[Any],
    plan: RunningPlan[_Question],
    steps: SearchSteps[_Question],
    find: Callable[[_Question, CatalogView], _Result],
) -> _Result | None:
    """Runs ``find`` under the pin of a plan; returns None if the plan fails or is restarted instead."""
    catalog = _load_catalog(job)
    try:
        if plan.pin == build_pin(catalog):
            found = answer_question(find, plan.question, catalog)
            if plan.pin == build_pin(catalog):  # the date has not changed meanwhile
                return found
        prepared = answer_question(steps.prepare, plan.question, catalog)
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


def _build_kind(
    job: JobType[JobArguments], run: Callable[[JobChunk[JobArguments]], CompletedJob]
) -> RunnableJobType[JobArguments]:
    return RunnableJobType(
        name=job.name,
        arguments=job.arguments,
        run=run,
        is_heavy=True,
        lease=LEASE,
        longest_backoff=_LONGEST_BACKOFF,
    )


SEARCHING = _build_kind(JOBS[CONFIGURATION].search, partial(_search_piece, steps=PLAN_STEPS))
RANKING = _build_kind(JOBS[CONFIGURATION].finish, partial(_finish_search, steps=PLAN_STEPS))
FLEET_SEARCHING = _build_kind(JOBS[FLEET].search, partial(_search_piece, steps=FLEET_STEPS))
FLEET_SCHEDULING = _build_kind(JOBS[FLEET].finish, partial(_finish_search, steps=FLEET_STEPS))


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
