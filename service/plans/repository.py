"""Queries of plans."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import String, Text, and_, cast, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session, undefer

from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.jobs.tables import CANCELLED, DEAD, JobRow
from service.plans.tables import RUNNING, PlanPieceRow, PlanRow

_SEARCHES = 0x1A0C
"""Class of the advisory locks that serialize the creation of searches of a tenant."""
PageCursor = tuple[datetime, str]
"""Time and id of the row before a page."""


def get_plan(session: Session, tenant_id: str, plan_id: str) -> PlanRow | None:
    """Returns a plan of a tenant with its question and its answer, or None."""
    whole = (undefer(PlanRow.question), undefer(PlanRow.answer))
    return session.scalars(_select_own(tenant_id, plan_id).options(*whole)).one_or_none()


class PlanTexts(NamedTuple):
    """A plan without question and answer, and these as the JSON that is stored."""

    row: PlanRow
    question: str
    answer: str | None


def get_plan_texts(session: Reader, tenant_id: str, plan_id: str) -> PlanTexts | None:
    """Returns a plan of a tenant with its question and its answer as they are stored, or None."""
    texts = (cast(PlanRow.question, Text), PlanRow.answer)
    found = session.execute(_select_own(tenant_id, plan_id).add_columns(*texts)).one_or_none()
    return None if found is None else PlanTexts(*found)


def lock_plan(session: Writer, tenant_id: str, plan_id: str) -> PlanRow | None:
    """Returns a plan, locked until the transaction ends, or None."""
    fresh = {"populate_existing": True}
    own = _select_own(tenant_id, plan_id).with_for_update()
    return session.scalars(own, execution_options=fresh).one_or_none()


def _select_own(tenant_id: str, plan_id: str) -> Any:  # noqa: ANN401
    return select(PlanRow).where(PlanRow.tenant_id == tenant_id, PlanRow.id == plan_id)


def list_page(
    session: Reader,
    tenant_id: str,
    *,
    states: Collection[str],
    goals: Collection[str],
    after: PageCursor | None,
    limit: int,
) -> Sequence[PlanRow]:
    """Returns plans of a tenant, the newest first, without question and answer."""
    statement = select(PlanRow).where(PlanRow.tenant_id == tenant_id)
    if states:
        statement = statement.where(PlanRow.state.in_(states))
    if goals:
        statement = statement.where(PlanRow.goal.in_(goals))
    if after is not None:
        created_at, plan_id = after
        earlier = and_(PlanRow.created_at == created_at, PlanRow.id < plan_id)
        statement = statement.where(or_(PlanRow.created_at < created_at, earlier))
    ordered = statement.order_by(PlanRow.created_at.desc(), PlanRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def load_short_plans(session: Reader, tenant_id: str, plan_ids: Collection[str], most: int) -> set[str]:
    """Loads question and answer of those plans where both have ``most`` characters at most.

    Returns their ids.
    """
    size = func.length(cast(PlanRow.question, Text)) + func.coalesce(func.length(PlanRow.answer), 0)
    short = select(PlanRow).where(PlanRow.tenant_id == tenant_id, PlanRow.id.in_(plan_ids), size <= most)
    whole = short.options(undefer(PlanRow.question), undefer(PlanRow.answer))
    return {row.id for row in session.scalars(whole)}


def lock_searches(session: Writer, tenant_id: str) -> None:
    """Holds the number of searches of a tenant until the transaction ends. SQLite has one writer anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_SEARCHES, func.hashtext(tenant_id))))


def count_running(session: Session, tenant_id: str) -> int:
    """Returns the number of running searches of a tenant."""
    own = select(func.count()).where(PlanRow.tenant_id == tenant_id, PlanRow.state == RUNNING)
    return session.scalars(own).one()


def _match_pieces(tenant_id: str, plan_id: str) -> Any:  # noqa: ANN401
    return and_(PlanPieceRow.tenant_id == tenant_id, PlanPieceRow.plan_id == plan_id)


def get_piece(session: Session, tenant_id: str, plan_id: str, number: int) -> PlanPieceRow:
    """Returns a piece of a running search."""
    return session.get_one(PlanPieceRow, (tenant_id, plan_id, number))


def list_outcomes(session: Reader, tenant_id: str, plan_id: str) -> list[str]:
    """Returns the outcomes of the pieces that are searched, in order."""
    known = select(PlanPieceRow.outcome).where(
        _match_pieces(tenant_id, plan_id), PlanPieceRow.outcome.is_not(None)
    )
    return [text for text in session.scalars(known.order_by(PlanPieceRow.number)) if text is not None]


def insert_pieces(session: Writer, pieces: Iterable[dict[str, Any]]) -> None:
    """Inserts pieces that are not yet searched."""
    session.execute(insert(PlanPieceRow), list(pieces))


def record_outcome(session: Writer, tenant_id: str, plan_id: str, number: int, outcome: str) -> int | None:
    """Stores the outcome of a piece. Returns its candidates, or None if the outcome is already known."""
    unknown = (
        _match_pieces(tenant_id, plan_id),
        PlanPieceRow.number == number,
        PlanPieceRow.outcome.is_(None),
    )
    statement = update(PlanPieceRow).where(*unknown).values(outcome=outcome)
    return session.scalars(statement.returning(PlanPieceRow.candidates)).one_or_none()


def delete_pieces(session: Writer, tenant_id: str, plan_id: str) -> None:
    """Deletes the pieces of a search."""
    session.execute(delete(PlanPieceRow).where(_match_pieces(tenant_id, plan_id)))


class StuckPlan(NamedTuple):
    """A running plan with a job that has ended without searching its piece."""

    tenant_id: str
    plan_id: str
    beginning: int
    job_state: str
    error_code: str | None
    error_summary: str | None


def list_stuck(session: Session, kinds: Collection[str], *, limit: int) -> list[StuckPlan]:
    """Returns running plans with a dead or cancelled job."""
    key = PlanRow.id + " " + cast(PlanRow.beginning, String) + " %"
    ended = and_(
        JobRow.tenant_id == PlanRow.tenant_id,
        JobRow.kind.in_(kinds),
        JobRow.effect_key.like(key),
        JobRow.state.in_((DEAD, CANCELLED)),
    )
    told = (JobRow.state, JobRow.error_code, JobRow.error_summary)
    found = (
        select(PlanRow.tenant_id, PlanRow.id, PlanRow.beginning, *told)
        .join(JobRow, ended)
        .where(PlanRow.state == RUNNING)
        .order_by(PlanRow.tenant_id, PlanRow.id, JobRow.effect_key)
        .limit(limit)
    )
    return [StuckPlan(*row) for row in session.execute(found)]


def delete_expired_plans(session: Writer, kept: timedelta, *, limit: int) -> int:
    """Deletes plans that ended long enough ago. Returns their number."""
    old = (
        select(PlanRow.tenant_id, PlanRow.id)
        .where(PlanRow.state != RUNNING, PlanRow.finished_at <= now() - kept)
        .limit(limit)
    )
    rows = session.execute(old).all()
    for tenant_id, plan_id in rows:
        session.execute(delete(PlanRow).where(PlanRow.tenant_id == tenant_id, PlanRow.id == plan_id))
    return len(rows)


def count_plans(session: Reader) -> list[tuple[str, int]]:
    """Returns the number of plans by state, over all tenants."""
    statement = select(PlanRow.state, func.count()).group_by(PlanRow.state)
    return [(state, number) for state, number in session.execute(statement)]
