"""Queries of the background jobs."""

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
from service.kit.jobs.kinds import JobArguments, JobType, RunnableJobType
from service.kit.jobs.leases import RUNNING, WAITING
from service.kit.jobs.notifier import notify_after_commit
from service.kit.jobs.tables import CANCELLED, DEAD, DONE, JobRow
from service.kit.tracing import get_traceparent

_TURNS = 0x1A0B  # class of the advisory locks that serialize the claims of a kind


def enqueue_job(
    session: Writer,
    kind: JobType[JobArguments],
    arguments: JobArguments,
    *,
    tenant_id: str,
    effect_key: str,
    due_at: datetime | None = None,
) -> str:
    """Enqueues a job in the caller's transaction, due at once or at a date, and returns its id.

    If a job for the same effect exists already, finished or not, its id is returned.
    """
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    inserting = postgresql.insert(JobRow) if is_postgresql else sqlite.insert(JobRow)
    unique = {"tenant_id": tenant_id, "kind": kind.name, "effect_key": effect_key}
    statement = (
        inserting.values(
            **unique,
            id=uuid4().hex,
            arguments=arguments.model_dump(mode="json"),
            due_at=due_at or leases.get_database_time(),
            span_seconds=None if due_at else 0.0,
            traceparent=get_traceparent(),
            created_at=leases.get_database_time(),
        )
        .on_conflict_do_update(index_elements=list(unique), set_={"effect_key": effect_key})
        .returning(JobRow.id)
    )
    if due_at is None:
        notify_after_commit(session)
    return session.execute(statement).scalar_one()


class JobQueueState(NamedTuple):
    """State of the queue of a kind: the time now, the time of its next claim, and its running jobs."""

    kind: str
    now: datetime
    due_at: datetime | None
    running: int


def _count_running(kind: str) -> Select[int]:
    held = and_(JobRow.state == RUNNING, JobRow.due_at > leases.get_database_time())
    return select(func.count()).select_from(JobRow).where(JobRow.kind == kind, held).correlate(None)


@cache
def _select_queues(kinds: tuple[str, ...]) -> CompoundSelect[Any]:
    # Cached: building it costs more than running it, every second of an idle process.
    def select_queue(kind: str) -> Select[Any]:
        due = select(JobRow.due_at).where(JobRow.kind == kind, JobRow.due_at.is_not(None))
        first = due.order_by(JobRow.due_at).limit(1).scalar_subquery()
        return select(
            literal(kind), leases.get_database_time(), first, _count_running(kind).scalar_subquery()
        )

    return union_all(*map(select_queue, kinds))


def list_queues(session: Reader, kinds: Iterable[str]) -> list[JobQueueState]:
    """Returns the state of each queue of ``kinds``."""
    return [JobQueueState(*row) for row in session.execute(_select_queues(tuple(kinds)))]


def claim_job(session: Writer, kind: RunnableJobType[Any]) -> JobRow | None:
    """Claims the next job of ``kind``, unless its limit of running jobs is reached.

    Tenants with due jobs take turns, in the order of their ids. In its turn a tenant has its most overdue job
    claimed, so that between two of them every other tenant has one at most.
    """
    conditions = [JobRow.kind == kind.name]
    if session.get_bind().dialect.name == "postgresql":
        turn = func.pg_advisory_xact_lock(_TURNS, func.hashtext(kind.name))
        session.execute(select(turn))
    if kind.concurrency is not None:
        conditions.append(_count_running(kind.name).scalar_subquery() < kind.concurrency)
    last = _get_last_turn(session, kind.name)
    for behind in (JobRow.tenant_id > last.tenant_id, JobRow.tenant_id <= last.tenant_id):
        row = leases.claim_row(
            session,
            JobRow,
            *conditions,
            behind,
            seconds=kind.lease.total_seconds(),
            order=[JobRow.tenant_id],
            turn=last.number + 1,
        )
        if row is not None:
            return row
    return None


class JobTurn(NamedTuple):
    """A claim of a job of some kind: its number and its tenant."""

    number: int
    tenant_id: str


def _get_last_turn(session: Writer, kind: str) -> JobTurn:
    claimed = select(JobRow.turn, JobRow.tenant_id).where(JobRow.kind == kind, JobRow.turn.is_not(None))
    last = session.execute(claimed.order_by(JobRow.turn.desc()).limit(1)).one_or_none()
    number, tenant_id = last or (None, "")
    return JobTurn(number or 0, tenant_id)


def get_job(session: Session, tenant_id: str, job_id: str) -> JobRow:
    """Returns a job of the tenant."""
    return _require_job(session, select(JobRow).where(JobRow.tenant_id == tenant_id, JobRow.id == job_id))


def _require_job(session: Session, statement: Select[JobRow]) -> JobRow:
    row = session.scalars(statement).one_or_none()
    if row is None:
        raise NotFound("There is no such job")
    return row


def list_page(
    session: Reader,
    tenant_id: str,
    *,
    kinds: Sequence[str] = (),
    states: Sequence[str] = (),
    after: tuple[datetime, str] | None = None,
    limit: int,
) -> Sequence[JobRow]:
    """Returns jobs of the tenant, newest first, behind the creation time and id ``after``."""
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


def _update_row(session: Writer, row: JobRow, **values: object) -> JobRow:
    for name, value in values.items():
        setattr(row, name, value)
    session.flush()
    session.refresh(row)
    return row


def _lock_job(session: Writer, tenant_id: str, job_id: str) -> JobRow:
    own = select(JobRow).where(JobRow.tenant_id == tenant_id, JobRow.id == job_id)
    return _require_job(session, own.with_for_update())


def cancel_job(session: Writer, tenant_id: str, job_id: str) -> JobRow:
    """Cancels a job: a running one at the end of its chunk, any other at once."""
    row = _lock_job(session, tenant_id, job_id)
    if row.state == DONE:
        raise Conflict("The job is done")
    if row.state == CANCELLED:
        return row
    if row.state == RUNNING:
        return _update_row(session, row, cancel_requested=True)
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    return _update_row(session, row, cancel_requested=True, state=CANCELLED, **ended)


def cancel_waiting_jobs(session: Writer, tenant_id: str, kinds: Iterable[str], effects: str) -> None:
    """Cancels the waiting jobs of some kinds whose effect key begins with ``effects``.

    Running jobs are left alone: their holders may be waiting for rows that the caller has locked.
    """
    of_them = (
        JobRow.tenant_id == tenant_id,
        JobRow.kind.in_(tuple(kinds)),
        JobRow.effect_key.startswith(effects, autoescape=True),
        JobRow.state == WAITING,
    )
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    cancelled = update(JobRow).where(*of_them)
    session.execute(cancelled.values(cancel_requested=True, state=CANCELLED, **ended))


def retry_job(session: Writer, tenant_id: str, job_id: str) -> JobRow:
    """Requeues a dead job from its last progress, with all its attempts."""
    row = _lock_job(session, tenant_id, job_id)
    if row.state != DEAD:
        raise Conflict("The job is not dead")
    notify_after_commit(session)
    due = {"due_at": leases.get_database_time(), "span_seconds": 0.0}
    return _update_row(session, row, state=WAITING, attempt=0, finished_at=None, **due)


def delete_expired_jobs(session: Writer, kind: RunnableJobType[Any], *, limit: int) -> int:
    """Deletes jobs of ``kind`` that have been kept long enough, and returns their number."""

    def match_finished(state: str, seconds: float) -> Any:  # noqa: ANN401
        return and_(JobRow.state == state, JobRow.finished_at <= leases.get_time_after(-seconds))

    retention, dead_retention = kind.retention.total_seconds(), kind.dead_retention.total_seconds()
    kept = or_(
        match_finished(DONE, retention),
        match_finished(CANCELLED, retention),
        match_finished(DEAD, dead_retention),
    )
    old = select(JobRow.id).where(JobRow.kind == kind.name, kept).limit(limit).correlate(None)
    return len(session.scalars(delete(JobRow).where(JobRow.id.in_(old)).returning(JobRow.id)).all())


def get_last_done(session: Reader, kind: str) -> JobRow | None:
    """Returns the job of a kind that was done last, as long as it is kept."""
    done = select(JobRow).where(JobRow.kind == kind, JobRow.state == DONE)
    return session.scalars(done.order_by(JobRow.finished_at.desc()).limit(1)).first()


class JobCount(NamedTuple):
    """Number of jobs of a kind in a state, and the seconds that the first of them is overdue."""

    kind: str
    state: str
    jobs: int
    overdue_seconds: float


def count_jobs(session: Reader) -> list[JobCount]:
    """Counts the jobs of every kind and state, unknown kinds included."""
    statement = select(
        JobRow.kind, JobRow.state, func.count(), func.min(JobRow.due_at), leases.get_database_time()
    ).group_by(JobRow.kind, JobRow.state)
    return [
        JobCount(kind, state, jobs, max(0.0, (now - due_at).total_seconds()) if due_at else 0.0)
        for kind, state, jobs, due_at, now in session.execute(statement)
    ]
