"""Permissions of webhooks: each type of event needs the scope to read what it carries.

A webhook is told of events on behalf of a subject, with the scopes that the subject had when it last set the
URL or the event types. Events that the subject may no longer read are withheld.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from service.auth import service as auth
from service.kit.database.engine import Reader, Writer
from service.kit.security.principals import Permission, Principal, build_permission
from service.schemas.events import WebhookEventType
from service.webhooks.tables import WebhookRow

NEEDED: Final[dict[str, Permission]] = {
    type_: build_permission(*type_.subject.scope.split(":", 1))
    for type_ in WebhookEventType
    if type_.subject.scope
}
"""Permission that a subject needs to be told of a type of event. A type that is absent needs none."""
EVERY_TYPE: Final = tuple(WebhookEventType)


def check_readable(subject: Principal, types: Collection[str], pointer: str = "") -> None:
    """Raises if a subject may not read events of these types, or of every type if ``types`` is empty."""
    needed = (NEEDED.get(type_) for type_ in types or EVERY_TYPE)
    auth.check_covers(subject, [each.scope for each in needed if each is not None], pointer)


def list_readable_types(subject: Principal) -> list[str]:
    """Returns the types of events that a subject may read."""
    return [type_ for type_ in EVERY_TYPE if _is_covered(subject, type_)]


def assign_subject(row: WebhookRow, subject: Principal) -> None:
    """Sets the subject on whose behalf a webhook is told of events from now on."""
    row.on_behalf_of, row.scopes = subject.name, sorted(subject.scopes)


def is_subject_allowed(session: Reader | Writer, row: WebhookRow, type_: str, time: datetime) -> bool:
    """Returns true if the subject of a webhook may read events of a type, both then and at ``time``."""
    subject = auth.build_named_subject(row.tenant_id, row.on_behalf_of)._replace(scopes=frozenset(row.scopes))
    return _is_covered(subject, type_) and _is_covered(auth.refresh_subject(session, subject, time), type_)


def _is_covered(subject: Principal, type_: str) -> bool:
    needed = NEEDED.get(type_)
    return subject.has_permission(needed) if needed else type_ in EVERY_TYPE
