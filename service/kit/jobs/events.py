"""Events of tenants: rows written in the transaction of their cause, each published by a job.

A feature that causes an event writes it here and does not know its listeners.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

from pydantic import BaseModel
from sqlalchemy import Index, String, delete, select, tuple_
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.kit.clock import now
from service.kit.database.engine import Base, Json, UtcDateTime, Writer, insert_new
from service.kit.jobs.kinds import JobType
from service.kit.jobs.repository import enqueue_job
from service.kit.tracing import TRACEPARENT_CHARACTERS, get_traceparent


class EventRow(Base):
    """Something that happened to a tenant. It never changes."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_listed", "tenant_id", "occurred_at", "id"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    type: Mapped[str] = mapped_column(String(100))
    data: Mapped[dict[str, Any]] = mapped_column(Json)
    occurred_at: Mapped[datetime] = mapped_column(UtcDateTime)
    traceparent: Mapped[str | None] = mapped_column(String(TRACEPARENT_CHARACTERS))
    """Span of its cause, if that is traced."""


class EventToPublish(BaseModel):
    """Arguments of the job that publishes an event."""

    event_id: str


KEPT: Final = timedelta(days=90)
_EXPIRED_AT_ONCE: Final = 1000
PUBLISH: Final = JobType(name="events.publish", arguments=EventToPublish)


def emit_event(
    session: Writer, tenant_id: str, type_: str, data: Mapping[str, Any], *, once_for: str = ""
) -> str:
    """Writes an event, enqueues the job that publishes it and returns its id.

    A second event with the same ``once_for`` is not written again.
    """
    event_id = sha256(f"{type_} {once_for}".encode()).hexdigest()[:32] if once_for else uuid4().hex
    if write_event(session, tenant_id, type_, data, event_id=event_id):
        enqueue_job(
            session, PUBLISH, EventToPublish(event_id=event_id), tenant_id=tenant_id, effect_key=event_id
        )
    return event_id


def write_event(
    session: Writer, tenant_id: str, type_: str, data: Mapping[str, Any], *, event_id: str
) -> bool:
    """Writes an event that need not be published, unless it exists already. Returns true if it was new."""
    values = {"type": type_, "data": dict(data), "occurred_at": now(), "traceparent": get_traceparent()}
    return insert_new(session, EventRow, tenant_id=tenant_id, id=event_id, **values)


def get_event(session: Session, tenant_id: str, event_id: str) -> EventRow | None:
    """Returns an event of a tenant."""
    return session.get(EventRow, (tenant_id, event_id))


def delete_expired_events(session: Writer) -> int:
    """Deletes expired events and returns their number."""
    key = (EventRow.tenant_id, EventRow.id)
    old = select(*key).where(EventRow.occurred_at <= now() - KEPT).limit(_EXPIRED_AT_ONCE)
    return len(session.execute(delete(EventRow).where(tuple_(*key).in_(old)).returning(EventRow.id)).all())
