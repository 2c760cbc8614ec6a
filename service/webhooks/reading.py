"""What may be told to whom: a kind of event needs the scope to read what it carries, of whoever is told it.

A webhook is told on behalf of a subject, with the scopes that this had when it last said where to tell of
what. What the subject may not read any more is withheld.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from service.auth import service as auth
from service.kit.database.engine import Reader, Writer
from service.kit.security.principals import Permission, Principal, build_permission
from service.schemas.events import WebhookEventType
from service.webhooks.tables import WebhookRow

_RESOURCES: Final = {
    "approval": "approvals",
    "benchmark": "benchmark-results",
    "audit": "audit-events",
    "budget": "budgets",
    "policy_change": "policy-changes",
    "quote": "quotes",
    "webhook": "webhooks",
}
NEEDED: Final[dict[str, Permission]] = {
    type_: build_permission(_RESOURCES[type_.partition(".")[0]], "read")
    for type_ in WebhookEventType
    if type_ is not WebhookEventType.WEBHOOK_TEST
}
"""What each kind of event needs; a test tells a webhook of itself, and needs nothing."""
EVERY_TYPE: Final = tuple(WebhookEventType)


def check_readable(subject: Principal, types: Collection[str], pointer: str = "") -> None:
    """Refuse a subject that may not read what events of these kinds carry; of all kinds if there is none."""
    needed = (NEEDED.get(type_) for type_ in types or EVERY_TYPE)
    auth.check_covers(subject, [each.scope for each in needed if each is not None], pointer)


def list_readable_types(subject: Principal) -> list[str]:
    """The kinds of events that a subject may read."""
    return [type_ for type_ in EVERY_TYPE if _is_covered(subject, type_)]


def assign_subject(row: WebhookRow, subject: Principal) -> None:
    """Tell a webhook on behalf of ``subject`` from now on."""
    row.on_behalf_of, row.scopes = subject.name, sorted(subject.scopes)


def is_subject_allowed(session: Reader | Writer, row: WebhookRow, type_: str, time: datetime) -> bool:
    """Whether the subject of a webhook may read, then and now, what events of a kind carry."""
    subject = auth.build_named_subject(row.tenant_id, row.on_behalf_of)._replace(scopes=frozenset(row.scopes))
    return _is_covered(subject, type_) and _is_covered(auth.refresh_subject(session, subject, time), type_)


def _is_covered(subject: Principal, type_: str) -> bool:
    if type_ == WebhookEventType.WEBHOOK_TEST:
        return True
    needed = NEEDED.get(type_)
    return needed is not None and subject.has_permission(needed)
