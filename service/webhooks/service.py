"""The rules of webhooks: who is told what, under which secret, how often it is tried, and when that ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from pydantic import MISSING

from service.audit.service import Change
from service.kit.database.engine import Reader, Writer
from service.kit.http.outbound import Outbound, OutboundRefused
from service.kit.http.pages import Page
from service.kit.http.problems import FieldError
from service.kit.http.versions import check_match, etag
from service.kit.jobs import events, leases
from service.kit.jobs.leases import WAITING
from service.kit.security.encryption import Cipher
from service.kit.security.keyring import Keyring
from service.kit.security.subjects import Subject
from service.schemas.events import EventType
from service.webhooks import reading, repository, signing
from service.webhooks.errors import (
    AddressNotAllowed,
    DeliveryNotFound,
    TooManyWebhooks,
    WebhookDisabled,
    WebhookNotFound,
)
from service.webhooks.records import WEBHOOKS
from service.webhooks.schemas import WebhookDeliveryQuery, WebhookInput, WebhookPatch
from service.webhooks.signing import SignatureScheme
from service.webhooks.tables import AttemptRow, DeliveryRow, WebhookRow

MOST_WEBHOOKS: Final = 100
"""Of a tenant: each is a delivery of every event."""
DELIVERIES_KEPT: Final = events.KEPT
_EXPIRED_AT_ONCE: Final = 1000
_SECRETS = "webhook secrets"


def shown_webhook(row: WebhookRow) -> dict[str, Any]:
    """A webhook as callers see it."""
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


def shown_delivery(row: DeliveryRow, attempts: Sequence[AttemptRow]) -> dict[str, Any]:
    """A delivery as callers see it."""
    members: dict[str, Any] = {
        "id": row.id,
        "webhook_id": row.webhook_id,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "state": row.state,
        "attempts": [_shown_attempt(attempt) for attempt in attempts],
        "next_attempt_at": row.due_at if row.state == WAITING else None,
        "created_at": row.created_at,
        "finished_at": row.finished_at,
    }
    return {name: value for name, value in members.items() if value is not None}


def _shown_attempt(row: AttemptRow) -> dict[str, Any]:
    names = ("started_at", "milliseconds", "status_code", "error_code", "answer_excerpt")
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def known(session: Reader | Writer, tenant_id: str, webhook_id: str) -> WebhookRow:
    """A webhook of a tenant."""
    row = repository.get(session, tenant_id, webhook_id)
    if row is None:
        raise WebhookNotFound
    return row


def locked(session: Writer, tenant_id: str, webhook_id: str) -> WebhookRow:
    """A webhook of a tenant that nobody else changes until the transaction ends."""
    row = repository.locked(session, tenant_id, webhook_id)
    if row is None:
        raise WebhookNotFound
    return row


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The rules of a service: what hides its secrets, and whom it calls."""

    cipher: Cipher
    outbound: Outbound
    public_url: str = ""
    """Where the pages of the service are; empty where it does not know."""

    @classmethod
    def of(cls, keyring: Keyring, outbound: Outbound, public_url: str = "") -> "Webhooks":
        """The rules under a service's secret."""
        return cls(Cipher(keyring.key(_SECRETS)), outbound, public_url.rstrip("/"))

    def create(self, session: Writer, subject: Subject, body: WebhookInput) -> Change:
        """Store a new webhook."""
        types = [] if body.event_types is MISSING else sorted(set(body.event_types))
        reading.check(subject, types, "/event_types")
        self._check(body.url)
        if repository.count(session, subject.tenant_id) >= MOST_WEBHOOKS:
            raise TooManyWebhooks(f"A tenant has {MOST_WEBHOOKS} webhooks at most")
        webhook_id, secret = uuid4().hex, signing.new_secret()
        row = WebhookRow(
            tenant_id=subject.tenant_id,
            id=webhook_id,
            url=body.url,
            description=None if body.description is MISSING else body.description,
            event_types=types,
            signature_scheme=body.signature_scheme,
            public_key=_public_key(body.signature_scheme, secret),
            secret=self.cipher.encrypt(secret, webhook_id),
            created_at=leases.time(session),
            created_by=subject.name,
            version=1,
        )
        reading.hold(row, subject)
        session.add(row)
        session.flush()
        location = {"Location": f"/v1/webhooks/{webhook_id}"}
        return _change(session, row, None, status=201, headers=location, secret=secret)

    def change(
        self, session: Writer, subject: Subject, webhook_id: str, body: WebhookPatch, if_match: str
    ) -> Change:
        """Change members of a webhook; whoever says where to tell of what is told it from then on."""
        row = _matched(session, subject.tenant_id, webhook_id, if_match)
        before = shown_webhook(row)
        if body.event_types is not MISSING:
            row.event_types = sorted(set(body.event_types or []))
            reading.check(subject, row.event_types, "/event_types")
        if body.url is not MISSING:
            reading.check(subject, row.event_types, "/url")
            self._check(body.url)
            row.url = body.url
        if body.url is not MISSING or body.event_types is not MISSING:
            reading.hold(row, subject)
        if body.description is not MISSING:
            row.description = body.description
        if body.enabled is True and row.disabled_at is not None:
            row.disabled_at = row.disabled_reason = row.failing_since = row.paused_until = None
        if body.enabled is False and row.disabled_at is None:
            disable(session, row, "BY_OWNER")
        row.version += 1
        session.flush()
        return _change(session, row, before)

    def rotate(self, session: Writer, subject: Subject, webhook_id: str, overlap: timedelta) -> Change:
        """Give a webhook its next secret; messages are signed with the one before too for ``overlap``.

        A second rotation inside the overlap replaces the next secret and leaves the first alone, so that a
        lost answer costs nothing.
        """
        row = locked(session, subject.tenant_id, webhook_id)
        reading.check(subject, row.event_types)
        before = shown_webhook(row)
        time = leases.time(session)
        if row.rotation_ends_at is None or row.rotation_ends_at <= time:
            row.previous_secret = row.secret
        secret = signing.new_secret()
        row.secret = self.cipher.encrypt(secret, webhook_id)
        row.public_key = _public_key(row.signature_scheme, secret)
        row.rotation_ends_at = time + overlap
        row.version += 1
        session.flush()
        return _change(session, row, before, secret=secret)

    def live_secrets(self, row: WebhookRow, time: datetime) -> list[bytes]:
        """What messages are signed with, the newest first."""
        live = [row.secret]
        is_rotating = row.rotation_ends_at is not None and time < row.rotation_ends_at
        if is_rotating and row.previous_secret is not None:
            live.append(row.previous_secret)
        return [self.cipher.decrypt(kept, row.id) for kept in live]

    def _check(self, url: str) -> None:
        try:
            self.outbound.check(url)
        except OutboundRefused as refused:
            raise AddressNotAllowed("", FieldError("/url", refused.code, refused.detail)) from None


def _public_key(scheme: str, secret: bytes) -> str | None:
    return signing.public_key(secret) if scheme == SignatureScheme.V1A else None


def delete(session: Writer, subject: Subject, webhook_id: str, if_match: str) -> Change:
    """No such webhook any more."""
    row = _matched(session, subject.tenant_id, webhook_id, if_match)
    repository.delete_webhook(session, row)
    return Change(resource=f"webhooks/{webhook_id}", status=204, before=shown_webhook(row))


def send_test(session: Writer, subject: Subject, webhook_id: str) -> Change:
    """Have a message delivered that tells of nothing."""
    tenant_id = subject.tenant_id
    row = _told(session, tenant_id, webhook_id)
    delivery_id, event_id = uuid4().hex, uuid4().hex
    data = {"webhook_id": webhook_id}
    events.write(session, tenant_id, EventType.WEBHOOK_TEST, data, event_id=event_id)
    repository.add_delivery(
        session, row, delivery_id=delivery_id, event_id=event_id, event_type=EventType.WEBHOOK_TEST
    )
    (shown,) = _shown(session, row, [delivery_id])
    return Change(resource=f"webhooks/{webhook_id}/deliveries", status=202, body=shown, after=shown)


def replay(session: Writer, subject: Subject, webhook_id: str, delivery_ids: Sequence[str]) -> Change:
    """Send again what was delivered or given up."""
    tenant_id = subject.tenant_id
    row = _told(session, tenant_id, webhook_id)
    reading.check(subject, row.event_types)
    found = repository.deliveries(session, tenant_id, webhook_id, delivery_ids)
    for position, delivery_id in enumerate(delivery_ids):
        if delivery_id not in found:
            detail = "the webhook has no such delivery"
            raise DeliveryNotFound("", FieldError(f"/delivery_ids/{position}", "NOT_FOUND", detail))
        reading.check(subject, [found[delivery_id].event_type], f"/delivery_ids/{position}")
    repository.send_again(session, tenant_id, webhook_id, delivery_ids)
    body = {"items": _shown(session, row, delivery_ids)}
    return Change(resource=f"webhooks/{webhook_id}/deliveries", status=202, body=body, after=body)


def recover(session: Writer, subject: Subject, webhook_id: str, since: datetime) -> Change:
    """Send again everything since a time that was given up; what was sent again already is left alone."""
    row = _told(session, subject.tenant_id, webhook_id)
    reading.check(subject, row.event_types)
    body = {"delivery_count": repository.recover(session, row.tenant_id, row.id, since)}
    after = {"since": since, **body}
    return Change(resource=f"webhooks/{webhook_id}/deliveries", status=202, body=body, after=after)


def list_deliveries(
    session: Reader,
    subject: Subject,
    webhook_id: str,
    query: WebhookDeliveryQuery,
    page: Page[repository.After | None],
) -> list[dict[str, Any]]:
    """Deliveries to a webhook, of kinds that ``subject`` may read, with their attempts."""
    tenant_id = subject.tenant_id
    webhook = known(session, tenant_id, webhook_id)
    reading.check(subject, query.event_type or webhook.event_types)
    rows = repository.deliveries_page(
        session,
        tenant_id,
        webhook_id,
        states=query.state,
        event_types=query.event_type or reading.readable(subject),
        after=page.after,
        limit=page.limit,
    )
    attempts = repository.attempts(session, tenant_id, [row.id for row in rows])
    return [shown_delivery(row, attempts[row.id]) for row in rows]


def publish(session: Writer, tenant_id: str, event_id: str) -> int:
    """Have an event delivered to every webhook that wants and may have it; their number."""
    event = events.event(session, tenant_id, event_id)
    if event is None:
        return 0
    time = leases.time(session)
    told = [
        row
        for row in repository.enabled(session, tenant_id)
        if not row.event_types or event.type in row.event_types
        if reading.may_be_told(session, row, event.type, time)
    ]
    for row in told:
        repository.add_delivery(
            session, row, delivery_id=uuid4().hex, event_id=event_id, event_type=event.type
        )
    return len(told)


def tenants_told(session: Reader, event_type: str) -> frozenset[str]:
    """The tenants that have a webhook which is told of a type of event."""
    rows = repository.told(session)
    return frozenset(tenant_id for tenant_id, types in rows if not types or event_type in types)


def expire(session: Writer) -> int:
    """Delete deliveries that nobody asks for any more; their number."""
    before = leases.time(session) - DELIVERIES_KEPT
    return repository.expire(session, before, _EXPIRED_AT_ONCE)


def _matched(session: Writer, tenant_id: str, webhook_id: str, if_match: str) -> WebhookRow:
    row = locked(session, tenant_id, webhook_id)
    check_match(if_match, etag(row.version))
    return row


def _told(session: Writer, tenant_id: str, webhook_id: str) -> WebhookRow:
    row = locked(session, tenant_id, webhook_id)
    if row.disabled_at is not None:
        raise WebhookDisabled("Enable the webhook first")
    return row


def _shown(session: Writer, row: WebhookRow, delivery_ids: Sequence[str]) -> list[dict[str, Any]]:
    rows = repository.deliveries(session, row.tenant_id, row.id, delivery_ids)
    attempts = repository.attempts(session, row.tenant_id, delivery_ids)
    return [shown_delivery(rows[each], attempts[each]) for each in delivery_ids]


def _change(
    session: Writer,
    row: WebhookRow,
    before: dict[str, Any] | None,
    *,
    secret: bytes = b"",
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Change:
    after = shown_webhook(row)
    return Change(
        resource=f"webhooks/{row.id}",
        status=status,
        body={"webhook": after} if secret else after,
        once={"secret": signing.shown_secret(secret)} if secret and not row.public_key else {},
        headers={"ETag": etag(row.version), **(headers or {})},
        before=before,
        after=after,
        state=WEBHOOKS.state(session, row),
    )


def disable(session: Writer, row: WebhookRow, reason: str) -> None:
    """Tell a webhook nothing more."""
    row.disabled_at, row.disabled_reason, row.paused_until = leases.time(session), reason, None
    repository.cancel_waiting(session, row)
