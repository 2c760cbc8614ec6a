"""Every query of webhooks and their deliveries."""

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
    """A webhook of a tenant."""
    return session.get(WebhookRow, (tenant_id, webhook_id))


def lock_webhook(session: Writer, tenant_id: str, webhook_id: str) -> WebhookRow | None:
    """A webhook that nobody else changes until the transaction ends."""
    own = (WebhookRow.tenant_id == tenant_id, WebhookRow.id == webhook_id)
    return session.scalars(select(WebhookRow).where(*own).with_for_update()).one_or_none()


def count_webhooks(session: Session, tenant_id: str) -> int:
    """How many webhooks a tenant has."""
    return session.scalars(select(func.count()).where(WebhookRow.tenant_id == tenant_id)).one()


def list_page(session: Reader, tenant_id: str, after: PageCursor | None, limit: int) -> Sequence[WebhookRow]:
    """Webhooks of a tenant, the newest first."""
    statement = select(WebhookRow).where(WebhookRow.tenant_id == tenant_id)
    if after is not None:
        statement = statement.where(tuple_(WebhookRow.created_at, WebhookRow.id) < after)
    ordered = statement.order_by(WebhookRow.created_at.desc(), WebhookRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def lock_enabled_webhooks(session: Writer, tenant_id: str) -> Sequence[WebhookRow]:
    """The webhooks of a tenant that are told something; none is disabled until the transaction ends."""
    own = (WebhookRow.tenant_id == tenant_id, WebhookRow.disabled_at.is_(None))
    return session.scalars(select(WebhookRow).where(*own).with_for_update(read=True)).all()


def list_subscriptions(session: Reader) -> list[tuple[str, list[str]]]:
    """Of every tenant what its webhooks are told of, without those that are disabled."""
    enabled = select(WebhookRow.tenant_id, WebhookRow.event_types).where(WebhookRow.disabled_at.is_(None))
    return [(tenant_id, types) for tenant_id, types in session.execute(enabled)]


def delete_webhook(session: Writer, row: WebhookRow) -> None:
    """Delete a webhook with its deliveries; one that is being sent ends in nothing."""
    own = (DeliveryRow.tenant_id == row.tenant_id, DeliveryRow.webhook_id == row.id)
    ids = select(DeliveryRow.id).where(*own)
    of_them = (AttemptRow.tenant_id == row.tenant_id, AttemptRow.delivery_id.in_(ids))
    session.execute(delete(AttemptRow).where(*of_them))
    session.execute(delete(DeliveryRow).where(*own))
    session.delete(row)


def add_delivery(
    session: Writer, webhook: WebhookRow, *, delivery_id: str, event_id: str, event_type: str
) -> None:
    """Have an event delivered to a webhook, once."""
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
    """Deliveries to a webhook, as they are now."""
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
    """Deliveries to a webhook, the newest first."""
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
    """The last attempts of deliveries, in their order."""
    own = (AttemptRow.tenant_id == tenant_id, AttemptRow.delivery_id.in_(delivery_ids))
    found: dict[str, list[AttemptRow]] = {each: [] for each in delivery_ids}
    for row in session.scalars(select(AttemptRow).where(*own).order_by(AttemptRow.number)):
        found[row.delivery_id].append(row)
    return {each: rows[-_ATTEMPTS_SHOWN:] for each, rows in found.items()}


def requeue_deliveries(session: Writer, tenant_id: str, webhook_id: str, ids: Collection[str]) -> None:
    """Let deliveries wait for their first attempt again; those that are being sent are left alone."""
    of_them = (
        DeliveryRow.tenant_id == tenant_id,
        DeliveryRow.webhook_id == webhook_id,
        DeliveryRow.id.in_(ids),
        DeliveryRow.state != RUNNING,
    )
    session.execute(update(DeliveryRow).where(*of_them).values(_build_reset_values()))
    notify_after_commit(session)


def requeue_failed(session: Writer, tenant_id: str, webhook_id: str, since: datetime) -> int:
    """Let everything that was given up wait for its first attempt again; how much it is."""
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
    """Give up what waits for a webhook."""
    of_it = (
        DeliveryRow.tenant_id == webhook.tenant_id,
        DeliveryRow.webhook_id == webhook.id,
        DeliveryRow.state == WAITING,
    )
    ended = {"due_at": None, "span_seconds": None, "finished_at": leases.get_database_time()}
    session.execute(update(DeliveryRow).where(*of_it).values(state=CANCELLED, **ended))


def _build_enabled_conditions() -> list[ColumnElement[bool]]:
    """What holds of a webhook that may be sent something now."""
    return [
        WebhookRow.disabled_at.is_(None),
        or_(WebhookRow.paused_until.is_(None), WebhookRow.paused_until <= leases.get_database_time()),
        WebhookRow.tenant_id.not_in(select_disabled_tenants()),
    ]


class DeliveryQueueState(NamedTuple):
    """How deliveries stand: the time now, for which webhooks something is due, and when that may change."""

    now: datetime
    ready: list[ReadyWebhook]
    next_at: datetime | None


def read_queue(session: Reader) -> DeliveryQueueState:
    """How the deliveries of every tenant stand."""
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
    """The webhooks that something is due for, those that have waited longest first.

    Each is asked for its first delivery alone: how many wait behind that one makes no difference.
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
    """Claim the most overdue delivery to a webhook, if this may be told anything."""
    own = (WebhookRow.tenant_id == tenant_id, WebhookRow.id == webhook_id)
    of_it = (DeliveryRow.tenant_id == tenant_id, DeliveryRow.webhook_id == webhook_id)
    return leases.claim_row(
        session, DeliveryRow, *of_it, exists().where(*own, *_build_enabled_conditions()), seconds=seconds
    )


def delete_expired_deliveries(session: Writer, before: datetime, limit: int) -> int:
    """Delete deliveries that ended before a time, or still wait since then; their number."""
    # Such as those of a tenant that is disabled: the event of which they would tell is gone as well.
    stale = and_(DeliveryRow.state == WAITING, DeliveryRow.created_at <= before)
    old = select(DeliveryRow.id).where(or_(DeliveryRow.finished_at <= before, stale)).limit(limit)
    ids = session.scalars(old).all()
    session.execute(delete(AttemptRow).where(AttemptRow.delivery_id.in_(ids)))
    session.execute(delete(DeliveryRow).where(DeliveryRow.id.in_(ids)))
    return len(ids)


class DeliveryCount(NamedTuple):
    """How many deliveries are in a state, and how long the first of them has been due."""

    state: str
    deliveries: int
    overdue_seconds: float


def count_deliveries(session: Reader) -> list[DeliveryCount]:
    """How the deliveries of every tenant stand."""
    due = func.min(DeliveryRow.due_at)
    statement = select(DeliveryRow.state, func.count(), due, leases.get_database_time()).group_by(
        DeliveryRow.state
    )
    return [
        DeliveryCount(state, number, max(0.0, (now - due_at).total_seconds()) if due_at else 0.0)
        for state, number, due_at, now in session.execute(statement)
    ]


def count_webhooks_by_reason(session: Reader) -> list[tuple[str | None, int]]:
    """How many webhooks of every tenant there are by the reason for which they are disabled, if they are."""
    statement = select(WebhookRow.disabled_reason, func.count()).group_by(WebhookRow.disabled_reason)
    return [(reason, number) for reason, number in session.execute(statement)]
