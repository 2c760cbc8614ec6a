"""Searches for plans, a piece at a time by whichever process is free; the last piece asks for the ranking."""

from datetime import timedelta
from functools import partial
from typing import Any

from service.estimates.service import NoSoundAnswer, answer
from service.kit.jobs.kinds import Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.plans import stored
from service.plans.jobs import LEASE, RANK, SEARCH, PieceToSearch, PlanToRank
from service.plans.service import pieces_of, pin_of, rank, search_piece
from service.plans.stored import Wanted
from service.questions.catalog import Catalog
from service.snapshot.service import store_of


def _search(job: Job[PieceToSearch]) -> Done:
    with job.database.reading() as session:
        plan = stored.wanted(session, job.tenant_id, job.arguments)
        piece = stored.piece(session, job.tenant_id, job.arguments) if plan else None
    if plan is None or piece is None:
        return Done()
    catalog = _catalog(job)
    if plan.pin != pin_of(catalog):
        return _begin_again(job, plan, catalog)
    try:
        outcome = answer(partial(search_piece, piece=piece), plan.question, catalog)
    except NoSoundAnswer as refused:
        return _fail(job, refused)
    with job.writing() as session:
        stored.keep(session, job.tenant_id, job.arguments, outcome)
    return Done({"candidates": piece.candidates})


def _rank(job: Job[PlanToRank]) -> Done:
    with job.database.reading() as session:
        plan = stored.wanted(session, job.tenant_id, job.arguments)
        outcomes = stored.outcomes(session, job.tenant_id, job.arguments.plan_id)
    if plan is None:
        return Done()
    catalog = _catalog(job)
    if plan.pin != pin_of(catalog):
        return _begin_again(job, plan, catalog)
    try:
        ranked = answer(partial(rank, outcomes=outcomes), plan.question, catalog)
    except NoSoundAnswer as refused:
        return _fail(job, refused)
    with job.writing() as session:
        stored.finish(session, job.tenant_id, job.arguments, ranked)
    return Done()


def _catalog(job: Job[Any]) -> Catalog:
    """What the tenant sees now; in a process without requests nobody else keeps it fresh."""
    store = store_of(job.database)
    store.refresh()
    return store.current(job.tenant_id)


def _begin_again(job: Job[Any], plan: Wanted, catalog: Catalog) -> Done:
    try:
        prepared = answer(pieces_of, plan.question, catalog)
    except NoSoundAnswer as refused:
        return _fail(job, refused)
    with job.writing() as session:
        stored.begin_again(session, job.tenant_id, job.arguments, prepared)
    return Done()


def _fail(job: Job[Any], refused: NoSoundAnswer) -> Done:
    """End the plan: what its question lacks is no fault of the job."""
    with job.writing() as session:
        stored.fail(session, job.tenant_id, job.arguments, refused.errors[0])
    return Done()


SEARCHING = Kind(name=SEARCH.name, arguments=SEARCH.arguments, run=_search, lease=LEASE)
RANKING = Kind(name=RANK.name, arguments=RANK.arguments, run=_rank, lease=LEASE)


def _sweep(job: Job[Nothing]) -> Done:
    with job.writing() as session:
        return Done({"plans": stored.fail_stuck(session)})


SWEEPING = Schedule(
    name="plans.sweep",
    every=timedelta(minutes=1),
    job=Kind(name="plans.sweep", arguments=Nothing, run=_sweep, concurrency=1, retention=timedelta(hours=1)),
)
