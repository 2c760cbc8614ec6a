"""Proposal of changes that weaken policies. Nothing is guarded before a tenant has its first policy."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import uuid4

from service.audit.service import WriteOutcome, to_audit_columns
from service.kit.database.engine import Writer
from service.kit.jobs import leases
from service.kit.jobs.events import emit_event
from service.kit.security.principals import Principal
from service.planning.cost.exchange import ExchangeRates
from service.policies.changes import repository
from service.policies.changes.tables import WAITING, ApprovalSettingsRow, PolicyChangeRow
from service.policies.errors import ChangeWaits
from service.schemas.events import PolicyChangeEvent, WebhookEventType

DEFAULT_DELAY_SECONDS: Final = 86_400
SETTINGS: Final = "approval-settings/own"
_MEMBERS: Final = (
    *("id", "resource", "action", "based_on_version", "proposed_by", "proposed_at", "effective_at", "state"),
    *("approvals", "ended_at", "ended_by", "version"),
)
_DOCUMENTS: Final = {"approval-policies": "policy", "budgets": "budget", "approval-settings": "settings"}


class PolicyGuard(NamedTuple):
    """Locked settings of a tenant and the time at which they are read."""

    settings: ApprovalSettingsRow
    time: datetime
    waits: bool
    """True if weakening changes are delayed."""


class DueChange(NamedTuple):
    """A change that takes effect. ``document`` is the new document, or None for a deletion."""

    tenant_id: str
    resource_id: str
    document: str | None
    proposed_by: str


ChangeApplier = Callable[[Writer, DueChange, ExchangeRates], WriteOutcome | None]
"""Makes a change of one kind of resource. Returns None if the change has become impossible."""
ChangeAppliers = Mapping[str, ChangeApplier]
"""Appliers of rooms that stand on this one, by the collection that they change."""


class ProposedChange(NamedTuple):
    """A change to propose. ``document`` is the new document, or None for a deletion."""

    resource: str
    document: str | None
    based_on_version: int
    cost_center_id: str | None = None

    @property
    def action(self) -> str:
        """Action on the resource."""
        if self.document is None:
            return "delete"
        return "update" if self.based_on_version else "create"


def lock_guard(session: Writer, tenant_id: str) -> PolicyGuard:
    """Locks the row that every proposal of a tenant locks first."""
    row = repository.lock_settings(session, tenant_id, DEFAULT_DELAY_SECONDS)
    waits = row.change_delay_seconds > 0 and repository.has_policies(session, tenant_id)
    return PolicyGuard(row, leases.read_database_time(session), waits)


def check_not_waiting(session: Writer, tenant_id: str, resource: str) -> None:
    """Refuses a change of a resource with a pending change, whose base version would be unclear."""
    if repository.find_waiting_change(session, tenant_id, resource) is not None:
        raise ChangeWaits


def propose_change(
    session: Writer, subject: Principal, guarded: PolicyGuard, wanted: ProposedChange
) -> WriteOutcome:
    """Stores a pending change until its approval or the end of the delay."""
    row = PolicyChangeRow(
        tenant_id=subject.tenant_id,
        id=uuid4().hex,
        **wanted._asdict(),
        action=wanted.action,
        proposed_by=subject.name,
        proposed_at=guarded.time,
        effective_at=guarded.time + timedelta(seconds=guarded.settings.change_delay_seconds),
        state=WAITING,
        approvals=[],
        version=1,
    )
    session.add(row)
    session.flush()
    write_event(session, row, WebhookEventType.POLICY_CHANGE_PROPOSED)
    path = f"policy-changes/{row.id}"
    location = {"Location": f"/v1/{path}"}
    return WriteOutcome(
        resource=path, status=202, body=to_response(row), headers=location, after=to_audit_columns(row)
    )


def to_response(row: PolicyChangeRow) -> dict[str, Any]:
    """Returns the representation of a change."""
    members = {name: value for name in _MEMBERS if (value := getattr(row, name)) is not None}
    if row.document is not None:
        members[_DOCUMENTS[row.resource.partition("/")[0]]] = json.loads(row.document)
    return members


def write_event(session: Writer, row: PolicyChangeRow, event: WebhookEventType) -> None:
    """Writes an event of a change."""
    data: PolicyChangeEvent = {
        "change_id": row.id,
        "resource": row.resource,
        "action": row.action,
        "proposed_by": row.proposed_by,
        "effective_at": row.effective_at.isoformat().replace("+00:00", "Z"),
    }
    if row.ended_by is not None:
        data["ended_by"] = row.ended_by
    emit_event(session, row.tenant_id, event, data)
