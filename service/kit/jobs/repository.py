"""Every query of the background jobs."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import CompoundSelect, Select, and_, delete, func, literal, or_, select, union_all, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import Conflict, NotFound
from service.kit.jobs import leases
from service.kit.jobs.bell import ring_after_commit
from service.kit.jobs.kinds import Arguments, Asked, Kind
from service.kit.jobs.leases import RUNNING, WAITING
from service.kit.jobs.tables import CANCELLED, DEAD, DONE, JobRow

_TURNS = 0x1A0B  # class of the advisory locks under which claims of a limited kind take turns


def enqueue(
    session: Writer,
    kind: Asked[Arguments],
    arguments: Arguments,
    *,
    tenant_id: str,
    effect_key: str,
    due_at: datetime | None = None,
) -> str:
    """Ask for a job in the caller's transaction, due at once or at a date; its id.

    Asked again for the same effect, it is the job that is there already, finished or not.
    """
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    inserting = postgresql.insert(JobRow) if is_postgresql else sqlite.insert(JobRow)
    unique = {"tenant_id": tenant_id, "kind": kind.name, "effect_key": effect_key}
    statement = (
        inserting.values(
            **unique,
            id=uuid4().hex,
            arguments=arguments.model_dump(mode="json"),
            due_at=due_at or leases.now(),
            span_seconds=None if due_at else 0.0,
            created_at=leases.now(),
        )
        .on_conflict_do_update(index_elements=list(unique), set_={"effect_key": effect_key})
        .returning(JobRow.id)
    )
    if due_at is None:
        ring_after_commit(session)
    return session.execute(statement).scalar_one()


class Queue(NamedTuple):
    """How a kind stands: the time now, when its next row may be claimed, and how many run."""

    kind: str
    now: datetime
    due_at: datetime | None
    running: int


def _running(kind: str) -> Select[int]:
    held = and_(JobRow.state == RUNNING, JobRow.due_at > leases.now())
    return select(func.count()).select_from(JobRow).where(JobRow.kind == kind, held).correlate(None)


@cache
def _queues(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    # Made once: making it costs more than running it, every second of an idle process.
    def queue(kind: str) -> Select[Any]:
        due = select(JobRow.due_at).where(JobRow.kind == kind, JobRow.due_at.is_not(None))
        first = due.order_by(JobRow.due_at).limit(1).scalar_subquery()
        return select(literal(kind), leases.now(), first, _running(kind).scalar_subquery())

    return union_all(*map(queue, kinds))


def queues(session: Reader, kinds: Iterable[str]) -> list[Queue]:
    """How each of ``kinds`` stands."""
    return [Queue(*row) for row in session.execute(_queues(tuple(kinds)))]


def claim(session: Writer, kind: Kind[Any]) -> JobRow | None:
    """Claim the most overdue job of ``kind``, unless as many run as may."""
    conditions = [JobRow.kind == kind.name]
    if kind.concurrency is not None:
        if session.get_bind().dialect.name == "postgresql":
            turn = func.pg_advisory_xact_lock(_TURNS, func.hashtext(kind.name))
            session.execute(select(turn))
        conditions.append(_running(kind.name).scalar_subquery() < kind.concurrency)
    return leases.claim(session, JobRow, *conditions, seconds=kind.lease.total_seconds())


def get(session: Session, tenant_id: str, job_id: str) -> JobRow:
    """A job of the tenant."""
    return _found(session, select(JobRow).where(JobRow.tenant_id == tenant_id, JobRow.id == job_id))


def _found(session: Session, statement: Select[JobRow]) -> JobRow:
    row = session.scalars(statement).one_or_none()
    if row is None:
        raise NotFound("There is no such job")
    return row


def page(
    session: Reader,
    tenant_id: str,
    *,
    kinds: Sequence[str] = (),
    states: Sequence[str] = (),
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> Sequence[JobRow]:
    """Jobs of the tenant, the newest first, behind the creation time and id ``after``."""
    statement = select(JobRow).where(JobRow.tenant_id == tenant_id)
    if kinds:
        statement = statement.where(JobRow.kind.in_(kinds))
    if states:
        statement = statement.where(JobRow.state.in_(states))
    if after is not None:
        created_at, job_id = after
        tied = and_(JobRow.created_at == created_at, JobRow.id < job_id)
        statement = statement.where(or_(JobRow.created_at < created_at, tied))
    ordered = statement.order_by(JobRow.created_at.desc(), JobRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def _changed(session: Writer, row: JobRow, **values: object) -> JobRow:
    for name, value in values.items():
        setattr(row, name, value)
    session.flush()
    session.refresh(row)
    return row


def _locked(session: Writer, tenant_id: str, job_id: str) -> JobRow:
    own = select(JobRow).where(JobRow.tenant_id == tenant_id, JobRow.id == job_id)
    return _found(session, own.with_for_update())


def cancel(session: Writer, tenant_id: str, job_id: str) -> JobRow:
    """Cancel a job: one that runs at the end of its chunk, any other at once."""
    row = _locked(session, tenant_id, job_id)
    if row.state == DONE:
        raise Conflict("The job is done")
    if row.state == CANCELLED:
        return row
    if row.state == RUNNING:
        return _changed(session, row, cancel_requested=True)
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.now()}
    return _changed(session, row, cancel_requested=True, state=CANCELLED, **ended)


def cancel_waiting(session: Writer, tenant_id: str, kinds: Iterable[str], effects: str) -> None:
    """Cancel the jobs of some kinds that wait and whose effect key begins with ``effects``.

    Those that run are left alone: their holders may be waiting for what the caller has locked.
    """
    of_them = (
        JobRow.tenant_id == tenant_id,
        JobRow.kind.in_(tuple(kinds)),
        JobRow.effect_key.startswith(effects, autoescape=True),
        JobRow.state == WAITING,
    )
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.now()}
    cancelled = update(JobRow).where(*of_them)
    session.execute(cancelled.values(cancel_requested=True, state=CANCELLED, **ended))


def retry(session: Writer, tenant_id: str, job_id: str) -> JobRow:
    """Let a dead job run again, from where it stands, with all its attempts."""
    row = _locked(session, tenant_id, job_id)
    if row.state != DEAD:
        raise Conflict("The job is not dead")
    ring_after_commit(session)
    due = {"due_at": leases.now(), "span_seconds": 0.0}
    return _changed(session, row, state=WAITING, attempt=0, finished_at=None, **due)


def expire(session: Writer, kind: Kind[Any], *, limit: int) -> int:
    """Delete jobs of ``kind`` that have been kept long enough; how many."""

    def before(state: str, seconds: float) -> Any:  # noqa: ANN401
        return and_(JobRow.state == state, JobRow.finished_at <= leases.after(-seconds))

    retention, dead_retention = kind.retention.total_seconds(), kind.dead_retention.total_seconds()
    kept = or_(before(DONE, retention), before(CANCELLED, retention), before(DEAD, dead_retention))
    old = select(JobRow.id).where(JobRow.kind == kind.name, kept).limit(limit).correlate(None)
    return len(session.scalars(delete(JobRow).where(JobRow.id.in_(old)).returning(JobRow.id)).all())


def last_done(session: Reader, kind: str) -> JobRow | None:
    """The job of a kind that was last done, as long as it is kept."""
    done = select(JobRow).where(JobRow.kind == kind, JobRow.state == DONE)
    return session.scalars(done.order_by(JobRow.finished_at.desc()).limit(1)).first()


class Count(NamedTuple):
    """How many jobs of a kind are in a state, and for how long the first of them has been due."""

    kind: str
    state: str
    jobs: int
    overdue_seconds: float


def counts(session: Reader) -> list[Count]:
    """Every kind and state that has jobs, those of unknown kinds too."""
    statement = select(
        JobRow.kind, JobRow.state, func.count(), func.min(JobRow.due_at), leases.now()
    ).group_by(JobRow.kind, JobRow.state)
    return [
        Count(kind, state, jobs, max(0.0, (now - due_at).total_seconds()) if due_at else 0.0)
        for kind, state, jobs, due_at, now in session.execute(statement)
    ]
