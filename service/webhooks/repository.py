"""Queries of webhooks and their deliveries."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from service.auth.service import select_disabled_tenants
from service.kit.database.engine import Reader, Writer, insert_new
from service.kit.jobs import leases
from service.kit.jobs.leases import RUNNING, WAITING
from service.kit.jobs.notifier import notify_after_commit
from service.webhooks.fair_scheduling import ReadyWebhook
from service.webhooks.tables import CANCELLED, FAILED, AttemptRow, DeliveryRow, WebhookRow

PageCursor = tuple[datetime, str]
"""Time and id of the row that a page follows."""
_ATTEMPTS_SHOWN = 50


def get_webhook(session: Session, tenant_id: str, webhook_id: str) -> WebhookRow | None:
    """Returns a webhook of a tenant, or None."""
    return session.get(WebhookRow, (tenant_id, webhook_id))


def lock_webhook(session: Writer, tenant_id: str, webhook_id: str) -> WebhookRow | None:
    """Returns a webhook, locked until the transaction ends, or None."""
    own = (WebhookRow.tenant_id == tenant_id, WebhookRow.id == webhook_id)
    return session.scalars(select(WebhookRow).where(*own).with_for_update()).one_or_none()


def count_webhooks(session: Session, tenant_id: str) -> int:
    """Returns the number of webhooks of a tenant."""
    return session.scalars(select(func.count()).where(WebhookRow.tenant_id == tenant_id)).one()


def list_page(session: Reader, tenant_id: str, after: PageCursor | None, limit: int) -> Sequence[WebhookRow]:
    """Returns a page of the webhooks of a tenant, the newest first."""
    statement = select(WebhookRow).where(WebhookRow.tenant_id == tenant_id)
    if after is not None:
        statement = statement.where(tuple_(WebhookRow.created_at, WebhookRow.id) < after)
    ordered = statement.order_by(WebhookRow.created_at.desc(), WebhookRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def lock_enabled_webhooks(session: Writer, tenant_id: str) -> Sequence[WebhookRow]:
    """Returns the enabled webhooks of a tenant. None is disabled until the transaction ends."""
    own = (WebhookRow.tenant_id == tenant_id, WebhookRow.disabled_at.is_(None))
    return session.scalars(select(WebhookRow).where(*own).with_for_update(read=True)).all()


def list_subscriptions(session: Reader) -> list[tuple[str, list[str]]]:
    """Returns the tenant and the event types of every enabled webhook."""
    enabled = select(WebhookRow.tenant_id, WebhookRow.event_types).where(WebhookRow.disabled_at.is_(None))
    return [(tenant_id, types) for tenant_id, types in session.execute(enabled)]


def delete_webhook(session: Writer, row: WebhookRow) -> None:
    """Deletes a webhook with its deliveries. The outcome of one that is being sent is dropped."""
    own = (DeliveryRow.tenant_id == row.tenant_id, DeliveryRow.webhook_id == row.id)
    ids = select(DeliveryRow.id).where(*own)
    of_them = (AttemptRow.tenant_id == row.tenant_id, AttemptRow.delivery_id.in_(ids))
    session.execute(delete(AttemptRow).where(*of_them))
    session.execute(delete(DeliveryRow).where(*own))
    session.delete(row)


def add_delivery(
    session: Writer, webhook: WebhookRow, *, delivery_id: str, event_id: str, event_type: str
) -> None:
    """Adds the delivery of an event to a webhook, unless it is there already."""
    insert_new(
        session,
        DeliveryRow,
        tenant_id=webhook.tenant_id,
        id=delivery_id,
        webhook_id=webhook.id,
        event_id=event_id,
        event_type=event_type,
        due_at=leases.get_database_time(),
        span_seconds=0.0,
        created_at=leases.get_database_time(),
    )
    notify_after_commit(session)


def get_deliveries(
    session: Session, tenant_id: str, webhook_id: str, ids: Collection[str]
) -> dict[str, DeliveryRow]:
    """Returns deliveries to a webhook by id, read anew from the database."""
    own = (DeliveryRow.tenant_id == tenant_id, DeliveryRow.webhook_id == webhook_id, DeliveryRow.id.in_(ids))
    found = session.scalars(select(DeliveryRow).where(*own), execution_options={"populate_existing": True})
    return {row.id: row for row in found}


def list_deliveries_page(
    session: Reader,
    tenant_id: str,
    webhook_id: str,
    *,
    states: Collection[str],
    event_types: Collection[str],
    after: PageCursor | None,
    limit: int,
) -> Sequence[DeliveryRow]:
    """Returns a page of the deliveries to a webhook, the newest first."""
    own = (DeliveryRow.tenant_id == tenant_id, DeliveryRow.webhook_id == webhook_id)
    statement = select(DeliveryRow).where(*own)
    if states:
        statement = statement.where(DeliveryRow.state.in_(states))
    if event_types:
        statement = statement.where(DeliveryRow.event_type.in_(event_types))
    if after is not None:
        statement = statement.where(tuple_(DeliveryRow.created_at, DeliveryRow.id) < after)
    ordered = statement.order_by(DeliveryRow.created_at.desc(), DeliveryRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def list_attempts(
    session: Session, tenant_id: str, delivery_ids: Collection[str]
) -> dict[str, list[AttemptRow]]:
    """Returns the last fifty attempts of each delivery, in their order."""
    own = (AttemptRow.tenant_id == tenant_id, AttemptRow.delivery_id.in_(delivery_ids))
    found: dict[str, list[AttemptRow]] = {each: [] for each in delivery_ids}
    for row in session.scalars(select(AttemptRow).where(*own).order_by(AttemptRow.number)):
        found[row.delivery_id].append(row)
    return {each: rows[-_ATTEMPTS_SHOWN:] for each, rows in found.items()}


def requeue_deliveries(session: Writer, tenant_id: str, webhook_id: str, ids: Collection[str]) -> None:
    """Lets deliveries wait for their first attempt again, except for those that are being sent."""
    of_them = (
        DeliveryRow.tenant_id == tenant_id,
        DeliveryRow.webhook_id == webhook_id,
        DeliveryRow.id.in_(ids),
        DeliveryRow.state != RUNNING,
    )
    session.execute(update(DeliveryRow).where(*of_them).values(_build_reset_values()))
    notify_after_commit(session)


def requeue_failed(session: Writer, tenant_id: str, webhook_id: str, since: datetime) -> int:
    """Lets failed and cancelled deliveries wait for their first attempt again, and returns their number."""
    given_up = (
        DeliveryRow.tenant_id == tenant_id,
        DeliveryRow.webhook_id == webhook_id,
        DeliveryRow.created_at >= since,
        DeliveryRow.state.in_((FAILED, CANCELLED)),
    )
    statement = update(DeliveryRow).where(*given_up).values(_build_reset_values()).returning(DeliveryRow.id)
    number = len(session.scalars(statement).all())
    notify_after_commit(session)
    return number


def _build_reset_values() -> dict[str, Any]:
    now = leases.get_database_time()
    return {"state": WAITING, "failures": 0, "due_at": now, "span_seconds": 0.0, "finished_at": None}


def cancel_waiting_deliveries(session: Writer, webhook: WebhookRow) -> None:
    """Cancels the waiting deliveries to a webhook."""
    of_it = (
        DeliveryRow.tenant_id == webhook.tenant_id,
        DeliveryRow.webhook_id == webhook.id,
        DeliveryRow.state == WAITING,
    )
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    session.execute(update(DeliveryRow).where(*of_it).values(state=CANCELLED, **ended))


def _build_enabled_conditions() -> list[ColumnElement[bool]]:
    """Returns the conditions on a webhook that messages may be sent to now."""
    return [
        WebhookRow.disabled_at.is_(None),
        or_(WebhookRow.paused_until.is_(None), WebhookRow.paused_until <= leases.get_database_time()),
        WebhookRow.tenant_id.not_in(select_disabled_tenants()),
    ]


class DeliveryQueueState(NamedTuple):
    """State of the queue: the time now, webhooks with a delivery that is due, and the next change."""

    now: datetime
    ready: list[ReadyWebhook]
    next_at: datetime | None


def read_queue(session: Reader) -> DeliveryQueueState:
    """Returns the state of the queue of every tenant."""
    later = (
        select(func.min(DeliveryRow.due_at))
        .where(DeliveryRow.due_at > leases.get_database_time())
        .scalar_subquery()
    )
    paused = WebhookRow.paused_until > leases.get_database_time()
    resumed = select(func.min(WebhookRow.paused_until)).where(paused).scalar_subquery()
    now, *times = session.execute(select(leases.get_database_time(), later, resumed)).one()
    next_at = min((time for time in times if time is not None), default=None)
    return DeliveryQueueState(now, _list_ready_webhooks(session), next_at)


def _list_ready_webhooks(session: Reader) -> list[ReadyWebhook]:
    """Returns the webhooks with a delivery that is due, the most overdue first.

    Only the first delivery of each is read, so that the number behind it makes no difference.
    """
    of_it = DeliveryRow.webhook_id == WebhookRow.id
    due_at = select(func.min(DeliveryRow.due_at)).where(of_it).scalar_subquery()
    is_sent = (DeliveryRow.state == RUNNING, DeliveryRow.due_at > leases.get_database_time())
    sent = (
        select(DeliveryRow.webhook_id, func.count().label("under_way"))
        .where(*is_sent)
        .group_by(DeliveryRow.webhook_id)
        .subquery()
    )
    statement = (
        select(WebhookRow.tenant_id, WebhookRow.id, func.coalesce(sent.c.under_way, 0))
        .outerjoin(sent, sent.c.webhook_id == WebhookRow.id)
        .where(due_at <= leases.get_database_time(), *_build_enabled_conditions())
        .order_by(due_at)
    )
    return [ReadyWebhook(*row) for row in session.execute(statement)]


def claim_due_delivery(
    session: Writer, tenant_id: str, webhook_id: str, seconds: float
) -> DeliveryRow | None:
    """Claims the most overdue delivery to a webhook, if messages may be sent to the webhook now."""
    own = (WebhookRow.tenant_id == tenant_id, WebhookRow.id == webhook_id)
    of_it = (DeliveryRow.tenant_id == tenant_id, DeliveryRow.webhook_id == webhook_id)
    return leases.claim_row(
        session, DeliveryRow, *of_it, exists().where(*own, *_build_enabled_conditions()), seconds=seconds
    )


def delete_expired_deliveries(session: Writer, before: datetime, limit: int) -> int:
    """Deletes deliveries that ended before a time or wait since before it, and returns their number."""
    # A disabled tenant has such deliveries: their events are deleted as well.
    stale = and_(DeliveryRow.state == WAITING, DeliveryRow.created_at <= before)
    old = select(DeliveryRow.id).where(or_(DeliveryRow.finished_at <= before, stale)).limit(limit)
    ids = session.scalars(old).all()
    session.execute(delete(AttemptRow).where(AttemptRow.delivery_id.in_(ids)))
    session.execute(delete(DeliveryRow).where(DeliveryRow.id.in_(ids)))
    return len(ids)


class DeliveryCount(NamedTuple):
    """Number of deliveries in a state, and the seconds for which the first of them has been due."""

    state: str
    deliveries: int
    overdue_seconds: float


def count_deliveries(session: Reader) -> list[DeliveryCount]:
    """Returns the number of deliveries of all tenants by state."""
    due = func.min(DeliveryRow.due_at)
    statement = select(DeliveryRow.state, func.count(), due, leases.get_database_time()).group_by(
        DeliveryRow.state
    )
    return [
        DeliveryCount(state, number, max(0.0, (now - due_at).total_seconds()) if due_at else 0.0)
        for state, number, due_at, now in session.execute(statement)
    ]


def count_webhooks_by_reason(session: Reader) -> list[tuple[str | None, int]]:
    """Returns the number of webhooks of all tenants by the reason that they are disabled, None if enabled."""
    statement = select(WebhookRow.disabled_reason, func.count()).group_by(WebhookRow.disabled_reason)
    return [(reason, number) for reason, number in session.execute(statement)]
