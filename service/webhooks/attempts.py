"""Attempts to deliver an event: the message that is sent, and the consequences of the answer."""

import logging
import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from service.audit.service import WriteOutcome, Writes
from service.kit.database.engine import Writer
from service.kit.jobs import events, leases
from service.kit.jobs.leases import RowLease
from service.schemas.events import WebhookEventType
from service.webhooks import reading, repository, service
from service.webhooks.records import WEBHOOKS
from service.webhooks.service import Webhooks
from service.webhooks.tables import CANCELLED, DELIVERED, FAILED, AttemptRow, DeliveryRow, WebhookRow

LEASE_SECONDS: Final = 60.0
"""Twice the time of the longest attempt. After it, the delivery of a killed process is sent again."""
WAITS_SECONDS: Final = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""Waits after each failure but the last one (Standard Webhooks 1.0, section on retries)."""
JITTER: Final = 0.1
"""Share by which a wait is longer or shorter, so that deliveries that failed together are spread out."""
FAILING_FOR: Final = timedelta(days=5)
"""Time of failures without a success after which a webhook is disabled."""
SLOW_DOWN: Final = frozenset({429, 502, 504})
GONE: Final = 410
PAUSE_SECONDS: Final = 60.0
LONGEST_WAIT_SECONDS: Final = 86_400.0
SUCCESSES: Final = range(200, 300)
log = logging.getLogger(__name__)


class OutboundMessage(NamedTuple):
    """Message that is to be sent to a webhook, under a lease."""

    lease: RowLease
    tenant_id: str
    webhook_id: str
    url: str
    signature_scheme: str
    secrets: list[bytes]
    event_id: str
    event_type: str
    traceparent: str | None
    body: bytes


class AttemptResult(NamedTuple):
    """Result of an attempt: a status, or a code for the reason that there is none."""

    started_at: datetime
    milliseconds: int
    status_code: int | None = None
    error_code: str | None = None
    answer_excerpt: str | None = None
    retry_after_seconds: float | None = None

    @property
    def outcome(self) -> str:
        """Label of the result in metrics."""
        if self.is_success:
            return "delivered"
        return "unreachable" if self.status_code is None else "refused"

    @property
    def is_success(self) -> bool:
        """True if the receiver has taken the message."""
        return self.status_code in SUCCESSES


def claim_delivery(
    session: Writer, webhooks: Webhooks, tenant_id: str, webhook_id: str
) -> OutboundMessage | None:
    """Claims the most overdue delivery that a webhook may be told, and returns it ready to be sent."""
    while (row := repository.claim_due_delivery(session, tenant_id, webhook_id, LEASE_SECONDS)) is not None:
        webhook = repository.get_webhook(session, row.tenant_id, row.webhook_id)
        event = events.get_event(session, row.tenant_id, row.event_id)
        time = leases.read_database_time(session)
        if event is None or webhook is None:  # the event is no longer kept
            leases.finish_row(session, DeliveryRow, row.lease, FAILED, finished_at=leases.get_database_time())
        elif not reading.is_subject_allowed(session, webhook, event.type, time):
            leases.finish_row(
                session, DeliveryRow, row.lease, CANCELLED, finished_at=leases.get_database_time()
            )
        else:
            return OutboundMessage(
                lease=row.lease,
                tenant_id=row.tenant_id,
                webhook_id=row.webhook_id,
                url=webhook.url,
                signature_scheme=webhook.signature_scheme,
                secrets=webhooks.decrypt_live_secrets(webhook, time),
                event_id=row.event_id,
                event_type=event.type,
                traceparent=event.traceparent,
                body=to_json(_build_body(event, webhooks.public_url)),
            )
    return None


def _build_body(event: events.EventRow, public_url: str) -> dict[str, Any]:
    data = dict(sorted(event.data.items()))
    if public_url and "approval_id" in data and event.type.startswith("approval."):
        data["page_url"] = f"{public_url}/approvals/{data['approval_id']}"
    return {"type": event.type, "timestamp": event.occurred_at.astimezone(UTC), "data": data}


def record_attempt(session: Writer, writes: Writes, message: OutboundMessage, result: AttemptResult) -> None:
    """Stores an attempt and its consequences. Raises :class:`LeaseLost` if another has begun the next."""
    # The webhook is locked before the delivery, as everywhere.
    webhook = repository.lock_webhook(session, message.tenant_id, message.webhook_id)
    if webhook is None:
        return
    _store_attempt(session, message, result)
    row = leases.write_row(session, DeliveryRow, message.lease)
    if result.is_success:
        webhook.succeeded_at, webhook.failing_since = leases.read_database_time(session), None
        leases.finish_row(
            session, DeliveryRow, message.lease, DELIVERED, finished_at=leases.get_database_time()
        )
        return
    _record_failure(session, writes, webhook, result)
    failures = row.failures + 1
    if webhook.disabled_at is not None or failures > len(WAITS_SECONDS):
        is_over = failures > len(WAITS_SECONDS) or result.status_code == GONE
        state = FAILED if is_over else CANCELLED
        ended = {"failures": failures, "finished_at": leases.get_database_time()}
        leases.finish_row(session, DeliveryRow, message.lease, state, **ended)
    else:
        delay = max(_add_jitter(WAITS_SECONDS[row.failures]), _get_retry_after(result))
        leases.release_row(session, DeliveryRow, message.lease, delay=delay, failures=failures)


def _store_attempt(session: Writer, message: OutboundMessage, result: AttemptResult) -> None:
    session.add(
        AttemptRow(
            tenant_id=message.tenant_id,
            delivery_id=message.lease.id,
            number=message.lease.token,
            started_at=result.started_at,
            milliseconds=result.milliseconds,
            status_code=result.status_code,
            error_code=result.error_code,
            answer_excerpt=result.answer_excerpt,
        )
    )


def _record_failure(session: Writer, writes: Writes, webhook: WebhookRow, result: AttemptResult) -> None:
    """Pauses or disables the webhook after a failure."""
    time = leases.read_database_time(session)
    webhook.failing_since = webhook.failing_since or time
    pause = _get_retry_after(result) or (PAUSE_SECONDS if result.status_code in SLOW_DOWN else 0.0)
    if pause:
        webhook.paused_until = time + timedelta(seconds=pause)
    if webhook.disabled_at is not None:
        return
    if result.status_code == GONE:
        _disable_webhook(session, writes, webhook, "GONE")
    elif time - webhook.failing_since >= FAILING_FOR:
        _disable_webhook(session, writes, webhook, "FAILING")


def _disable_webhook(session: Writer, writes: Writes, webhook: WebhookRow, reason: str) -> None:
    before = service.webhook_to_response(webhook)
    service.disable_webhook(session, webhook, reason)
    webhook.version += 1
    session.flush()
    after = service.webhook_to_response(webhook)
    resource = f"webhooks/{webhook.id}"
    state = WEBHOOKS.build_state(session, webhook)
    change = WriteOutcome(resource=resource, before=before, after=after, state=state)
    writes.record_own_change(session, webhook.tenant_id, "disable_webhook", change)
    told = {"webhook_id": webhook.id, "description": webhook.description, "reason": reason}
    data = {name: value for name, value in told.items() if value is not None}
    once = f"{webhook.id} {webhook.version}"
    events.emit_event(session, webhook.tenant_id, WebhookEventType.WEBHOOK_DISABLED, data, once_for=once)
    log.warning("webhook %s of tenant %s is disabled: %s", webhook.id, webhook.tenant_id, reason)


def _get_retry_after(result: AttemptResult) -> float:
    return min(result.retry_after_seconds or 0.0, LONGEST_WAIT_SECONDS)


def _add_jitter(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  # no secret
