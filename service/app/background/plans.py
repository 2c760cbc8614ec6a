"""Searches for plans, a piece at a time by whichever process is free; the last piece asks for the ranking."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from service.estimates.service import NoSoundAnswer, answer
from service.evidence.snapshot import store_of
from service.kit.jobs.kinds import Done, Job, Kind
from service.kit.jobs.schedules import Nothing, Schedule
from service.plans import stored
from service.plans.jobs import LEASE, RANK, SEARCH, PieceToSearch, PlanToRank
from service.plans.service import pieces_of, pin_of, rank, search_piece
from service.plans.stored import Wanted
from service.resolve.catalog import CatalogView
from service.schemas.plans import PlanQuestion

_Found = TypeVar("_Found")


def _search(job: Job[PieceToSearch]) -> Done:
    with job.database.reading() as session:
        plan = stored.wanted(session, job.tenant_id, job.arguments)
        piece = stored.piece(session, job.tenant_id, job.arguments) if plan else None
    if plan is None or piece is None:
        return Done()
    outcome = _found(job, plan, partial(search_piece, piece=piece))
    if outcome is not None:
        with job.writing() as session:
            stored.keep(session, job.tenant_id, job.arguments, outcome)
    return Done()


def _rank(job: Job[PlanToRank]) -> Done:
    with job.database.reading() as session:
        plan = stored.wanted(session, job.tenant_id, job.arguments)
        outcomes = stored.outcomes(session, job.tenant_id, job.arguments.plan_id)
    if plan is None:
        return Done()
    ranked = _found(job, plan, partial(rank, outcomes=outcomes))
    if ranked is not None:
        with job.writing() as session:
            stored.finish(session, job.tenant_id, job.arguments, ranked)
    return Done()


def _found(job: Job[Any], plan: Wanted, find: Callable[[PlanQuestion, CatalogView], _Found]) -> _Found | None:
    """What is found under the pin of a plan; None where the plan fails or is begun anew instead."""
    catalog = _catalog(job)
    try:
        if plan.pin == pin_of(catalog):
            found = answer(find, plan.question, catalog)
            if plan.pin == pin_of(catalog):  # no day has ended meanwhile
                return found
        prepared = answer(pieces_of, plan.question, catalog)
    except NoSoundAnswer as refused:
        # What its question lacks is no fault of the job.
        with job.writing() as session:
            stored.fail(session, job.tenant_id, job.arguments, refused.errors[0])
    else:
        with job.writing() as session:
            stored.begin_again(session, job.tenant_id, job.arguments, prepared)
    return None


def _catalog(job: Job[Any]) -> CatalogView:
    """What the tenant sees now; in a process without requests nobody else keeps it fresh."""
    store = store_of(job.database)
    store.refresh()
    return store.current(job.tenant_id)


_LONGEST_BACKOFF = timedelta(seconds=10)
SEARCHING = Kind(
    name=SEARCH.name, arguments=SEARCH.arguments, run=_search, lease=LEASE, longest_backoff=_LONGEST_BACKOFF
)
RANKING = Kind(
    name=RANK.name, arguments=RANK.arguments, run=_rank, lease=LEASE, longest_backoff=_LONGEST_BACKOFF
)


def _sweep(job: Job[Nothing]) -> Done:
    with job.writing() as session:
        return Done({"plans": stored.fail_stuck(session)})


SWEEPING = Schedule(
    name="plans.sweep",
    every=timedelta(minutes=1),
    job=Kind(name="plans.sweep", arguments=Nothing, run=_sweep, concurrency=1, retention=timedelta(hours=1)),
)
