"""Rules of webhooks: their subjects, their secrets, and the deliveries of events to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from pydantic import MISSING

from service.audit.service import WriteOutcome
from service.kit.database.engine import Reader, Writer
from service.kit.http.outbound import OutboundClient, OutboundRefused
from service.kit.http.pages import Page
from service.kit.http.problems import FieldError
from service.kit.http.versions import build_etag, check_version_match
from service.kit.jobs import events, leases
from service.kit.jobs.leases import WAITING
from service.kit.security.encryption import Cipher
from service.kit.security.keyring import Keyring
from service.kit.security.principals import Principal
from service.schemas.events import WebhookEventType
from service.webhooks import reading, repository, signing
from service.webhooks.errors import (
    AddressNotAllowed,
    DeliveryNotFound,
    TooManyWebhooks,
    WebhookDisabled,
    WebhookNotFound,
)
from service.webhooks.records import WEBHOOKS
from service.webhooks.schemas import WebhookDeliveryQuery, WebhookPatch, WebhookRequest
from service.webhooks.signing import WebhookSignatureScheme
from service.webhooks.tables import AttemptRow, DeliveryRow, WebhookRow

MOST_WEBHOOKS: Final = 100
"""Webhooks of a tenant at most, because each event is delivered to every one of them."""
DELIVERIES_KEPT: Final = events.KEPT
_EXPIRED_AT_ONCE: Final = 1000
_SECRETS = "webhook secrets"


def webhook_to_response(row: WebhookRow) -> dict[str, Any]:
    """Returns a webhook as callers see it."""
    members: dict[str, Any] = {
        "id": row.id,
        "url": row.url,
        "event_types": row.event_types or None,
        "description": row.description,
        "signature_scheme": row.signature_scheme,
        "public_key": row.public_key,
        "state": "enabled" if row.disabled_at is None else "disabled",
        "disabled_at": row.disabled_at,
        "disabled_reason": row.disabled_reason,
        "succeeded_at": row.succeeded_at,
        "failing_since": row.failing_since,
        "paused_until": row.paused_until,
        "rotation_ends_at": row.rotation_ends_at,
        "version": row.version,
        "created_at": row.created_at,
        "created_by": row.created_by,
        "on_behalf_of": row.on_behalf_of,
    }
    return {name: value for name, value in members.items() if value is not None}


def delivery_to_response(row: DeliveryRow, attempts: Sequence[AttemptRow]) -> dict[str, Any]:
    """Returns a delivery as callers see it."""
    members: dict[str, Any] = {
        "id": row.id,
        "webhook_id": row.webhook_id,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "state": row.state,
        "attempts": [_attempt_to_response(attempt) for attempt in attempts],
        "next_attempt_at": row.due_at if row.state == WAITING else None,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }
    return {name: value for name, value in members.items() if value is not None}


def _attempt_to_response(row: AttemptRow) -> dict[str, Any]:
    names = ("started_at", "milliseconds", "status_code", "error_code", "answer_excerpt")
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def get_webhook(session: Reader | Writer, tenant_id: str, webhook_id: str) -> WebhookRow:
    """Returns a webhook of a tenant. Raises :class:`WebhookNotFound` if there is none."""
    row = repository.get_webhook(session, tenant_id, webhook_id)
    if row is None:
        raise WebhookNotFound
    return row


def lock_webhook(session: Writer, tenant_id: str, webhook_id: str) -> WebhookRow:
    """Returns a webhook of a tenant, locked until the transaction ends. Raises :class:`WebhookNotFound`."""
    row = repository.lock_webhook(session, tenant_id, webhook_id)
    if row is None:
        raise WebhookNotFound
    return row


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Rules of webhooks with the cipher of their secrets and the client that calls receivers."""

    cipher: Cipher
    outbound: OutboundClient
    public_url: str = ""
    """URL of the pages of the service. Empty if the service does not know its own address."""

    @classmethod
    def from_keyring(cls, keyring: Keyring, outbound: OutboundClient, public_url: str = "") -> "Webhooks":
        """Returns the rules with the cipher that the keyring of a service derives."""
        return cls(Cipher(keyring.derive_key(_SECRETS)), outbound, public_url.rstrip("/"))

    def create(self, session: Writer, subject: Principal, body: WebhookRequest) -> WriteOutcome:
        """Stores a new webhook."""
        types = [] if body.event_types is MISSING else sorted(set(body.event_types))
        reading.check_readable(subject, types, "/event_types")
        self._check_url(body.url)
        if repository.count_webhooks(session, subject.tenant_id) >= MOST_WEBHOOKS:
            raise TooManyWebhooks(f"A tenant has {MOST_WEBHOOKS} webhooks at most.")
        webhook_id, secret = uuid4().hex, signing.generate_secret()
        row = WebhookRow(
            tenant_id=subject.tenant_id,
            id=webhook_id,
            url=body.url,
            description=None if body.description is MISSING else body.description,
            event_types=types,
            signature_scheme=body.signature_scheme,
            public_key=_build_public_key(body.signature_scheme, secret),
            secret=self.cipher.encrypt(secret, webhook_id),
            created_at=leases.read_database_time(session),
            created_by=subject.name,
            version=1,
        )
        reading.assign_subject(row, subject)
        session.add(row)
        session.flush()
        location = {"Location": f"/v1/webhooks/{webhook_id}"}
        return _build_change(session, row, None, status=201, headers=location, secret=secret)

    def change(
        self, session: Writer, subject: Principal, webhook_id: str, body: WebhookPatch, if_match: str
    ) -> WriteOutcome:
        """Changes members of a webhook.

        If the URL or the event types change, the webhook is told on behalf of ``subject`` from then on.
        """
        row = _lock_matching_row(session, subject.tenant_id, webhook_id, if_match)
        before = webhook_to_response(row)
        if body.event_types is not MISSING:
            row.event_types = sorted(set(body.event_types or []))
            reading.check_readable(subject, row.event_types, "/event_types")
        if body.url is not MISSING:
            reading.check_readable(subject, row.event_types, "/url")
            self._check_url(body.url)
            row.url = body.url
        if body.url is not MISSING or body.event_types is not MISSING:
            reading.assign_subject(row, subject)
        if body.description is not MISSING:
            row.description = body.description
        if body.enabled is True and row.disabled_at is not None:
            row.disabled_at = row.disabled_reason = row.failing_since = row.paused_until = None
        if body.enabled is False and row.disabled_at is None:
            disable_webhook(session, row, "BY_OWNER")
        row.version += 1
        session.flush()
        return _build_change(session, row, before)

    def rotate(
        self, session: Writer, subject: Principal, webhook_id: str, overlap: timedelta
    ) -> WriteOutcome:
        """Creates the next secret of a webhook. The previous one signs messages too for ``overlap``.

        A second rotation within the overlap replaces the next secret and keeps the previous one, so that a
        lost answer costs nothing.
        """
        row = lock_webhook(session, subject.tenant_id, webhook_id)
        reading.check_readable(subject, row.event_types)
        before = webhook_to_response(row)
        time = leases.read_database_time(session)
        if row.rotation_ends_at is None or row.rotation_ends_at <= time:
            row.previous_secret = row.secret
        secret = signing.generate_secret()
        row.secret = self.cipher.encrypt(secret, webhook_id)
        row.public_key = _build_public_key(row.signature_scheme, secret)
        row.rotation_ends_at = time + overlap
        row.version += 1
        session.flush()
        return _build_change(session, row, before, secret=secret)

    def decrypt_live_secrets(self, row: WebhookRow, time: datetime) -> list[bytes]:
        """Returns the secrets that messages are signed with, the newest first."""
        live = [row.secret]
        is_rotating = row.rotation_ends_at is not None and time < row.rotation_ends_at
        if is_rotating and row.previous_secret is not None:
            live.append(row.previous_secret)
        return [self.cipher.decrypt(kept, row.id) for kept in live]

    def _check_url(self, url: str) -> None:
        try:
            self.outbound.check_url(url)
        except OutboundRefused as refused:
            raise AddressNotAllowed("", FieldError("/url", refused.code, refused.detail)) from None


def _build_public_key(scheme: str, secret: bytes) -> str | None:
    return signing.derive_public_key(secret) if scheme == WebhookSignatureScheme.V1A else None


def delete_webhook(session: Writer, subject: Principal, webhook_id: str, if_match: str) -> WriteOutcome:
    """Deletes a webhook."""
    row = _lock_matching_row(session, subject.tenant_id, webhook_id, if_match)
    repository.delete_webhook(session, row)
    return WriteOutcome(resource=f"webhooks/{webhook_id}", status=204, before=webhook_to_response(row))


def send_test_event(session: Writer, subject: Principal, webhook_id: str) -> WriteOutcome:
    """Adds the delivery of a test event."""
    tenant_id = subject.tenant_id
    row = _lock_enabled_webhook(session, tenant_id, webhook_id)
    delivery_id, event_id = uuid4().hex, uuid4().hex
    data = {"webhook_id": webhook_id}
    events.write_event(session, tenant_id, WebhookEventType.WEBHOOK_TEST, data, event_id=event_id)
    repository.add_delivery(
        session, row, delivery_id=delivery_id, event_id=event_id, event_type=WebhookEventType.WEBHOOK_TEST
    )
    (shown,) = _deliveries_to_response(session, row, [delivery_id])
    return WriteOutcome(resource=f"webhooks/{webhook_id}/deliveries", status=202, body=shown, after=shown)


def replay_deliveries(
    session: Writer, subject: Principal, webhook_id: str, delivery_ids: Sequence[str]
) -> WriteOutcome:
    """Sends deliveries again that were delivered or given up."""
    tenant_id = subject.tenant_id
    row = _lock_enabled_webhook(session, tenant_id, webhook_id)
    reading.check_readable(subject, row.event_types)
    found = repository.get_deliveries(session, tenant_id, webhook_id, delivery_ids)
    for position, delivery_id in enumerate(delivery_ids):
        if delivery_id not in found:
            detail = "The webhook has no delivery of this id."
            raise DeliveryNotFound("", FieldError(f"/delivery_ids/{position}", "NOT_FOUND", detail))
        reading.check_readable(subject, [found[delivery_id].event_type], f"/delivery_ids/{position}")
    repository.requeue_deliveries(session, tenant_id, webhook_id, delivery_ids)
    body = {"items": _deliveries_to_response(session, row, delivery_ids)}
    return WriteOutcome(resource=f"webhooks/{webhook_id}/deliveries", status=202, body=body, after=body)


def recover_deliveries(session: Writer, subject: Principal, webhook_id: str, since: datetime) -> WriteOutcome:
    """Sends all deliveries again that were given up since a time, except those that already wait again."""
    row = _lock_enabled_webhook(session, subject.tenant_id, webhook_id)
    reading.check_readable(subject, row.event_types)
    body = {"delivery_count": repository.requeue_failed(session, row.tenant_id, row.id, since)}
    after = {"since": since, **body}
    return WriteOutcome(resource=f"webhooks/{webhook_id}/deliveries", status=202, body=body, after=after)


def list_deliveries(
    session: Reader,
    subject: Principal,
    webhook_id: str,
    query: WebhookDeliveryQuery,
    page: Page[repository.PageCursor | None],
) -> list[dict[str, Any]]:
    """Returns deliveries to a webhook, of event types that ``subject`` may read, with their attempts."""
    tenant_id = subject.tenant_id
    webhook = get_webhook(session, tenant_id, webhook_id)
    reading.check_readable(subject, query.event_type or webhook.event_types)
    rows = repository.list_deliveries_page(
        session,
        tenant_id,
        webhook_id,
        states=query.state,
        event_types=query.event_type or reading.list_readable_types(subject),
        after=page.after,
        limit=page.limit,
    )
    attempts = repository.list_attempts(session, tenant_id, [row.id for row in rows])
    return [delivery_to_response(row, attempts[row.id]) for row in rows]


def publish_event(session: Writer, tenant_id: str, event_id: str) -> int:
    """Adds deliveries of an event to the webhooks that are subscribed and allowed; returns their number."""
    event = events.get_event(session, tenant_id, event_id)
    if event is None:
        return 0
    time = leases.read_database_time(session)
    told = [
        row
        for row in repository.lock_enabled_webhooks(session, tenant_id)
        if not row.event_types or event.type in row.event_types
        if reading.is_subject_allowed(session, row, event.type, time)
    ]
    for row in told:
        repository.add_delivery(
            session, row, delivery_id=uuid4().hex, event_id=event_id, event_type=event.type
        )
    return len(told)


def list_subscribed_tenants(session: Reader, event_type: str) -> frozenset[str]:
    """Returns the tenants with a webhook that is subscribed to a type of event."""
    rows = repository.list_subscriptions(session)
    return frozenset(tenant_id for tenant_id, types in rows if not types or event_type in types)


def expire_deliveries(session: Writer) -> int:
    """Deletes deliveries that are past their retention, and returns their number."""
    before = leases.read_database_time(session) - DELIVERIES_KEPT
    return repository.delete_expired_deliveries(session, before, _EXPIRED_AT_ONCE)


def _lock_matching_row(session: Writer, tenant_id: str, webhook_id: str, if_match: str) -> WebhookRow:
    row = lock_webhook(session, tenant_id, webhook_id)
    check_version_match(if_match, build_etag(row.version))
    return row


def _lock_enabled_webhook(session: Writer, tenant_id: str, webhook_id: str) -> WebhookRow:
    row = lock_webhook(session, tenant_id, webhook_id)
    if row.disabled_at is not None:
        raise WebhookDisabled("Enable the webhook first.")
    return row


def _deliveries_to_response(
    session: Writer, row: WebhookRow, delivery_ids: Sequence[str]
) -> list[dict[str, Any]]:
    rows = repository.get_deliveries(session, row.tenant_id, row.id, delivery_ids)
    attempts = repository.list_attempts(session, row.tenant_id, delivery_ids)
    return [delivery_to_response(rows[each], attempts[each]) for each in delivery_ids]


def _build_change(
    session: Writer,
    row: WebhookRow,
    before: dict[str, Any] | None,
    *,
    secret: bytes = b"",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> WriteOutcome:
    after = webhook_to_response(row)
    return WriteOutcome(
        resource=f"webhooks/{row.id}",
        status=status,
        body={"webhook": after} if secret else after,
        once={"secret": signing.format_secret(secret)} if secret and not row.public_key else {},
        headers={"ETag": build_etag(row.version), **(headers or {})},
        before=before,
        after=after,
        state=WEBHOOKS.build_state(session, row),
    )


def disable_webhook(session: Writer, row: WebhookRow, reason: str) -> None:
    """Disables a webhook and cancels its waiting deliveries."""
    row.disabled_at, row.disabled_reason, row.paused_until = leases.read_database_time(session), reason, None
    repository.cancel_waiting_deliveries(session, row)
