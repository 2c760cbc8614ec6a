"""The rules of delegations: an approver's own, for a time, never handed on."""

from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from pydantic import MISSING

from service.approvals.delegations import repository
from service.approvals.delegations.schemas import ApprovalDelegationInput
from service.approvals.errors import DelegationNotFound, NobodyToDelegate
from service.approvals.tables import ApprovalDelegationRow
from service.audit.service import Change
from service.auth.service import named, works
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.jobs import leases
from service.kit.security.subjects import Subject, SubjectKind

_MEMBERS: Final = ("id", "approver", "delegate", "starts_at", "ends_at", "note", "created_at", "revoked_at")


def shown(row: ApprovalDelegationRow) -> dict[str, Any]:
    """A delegation as callers see it."""
    return {name: value for name in _MEMBERS if (value := getattr(row, name)) is not None}


def create(session: Writer, subject: Subject, body: ApprovalDelegationInput) -> Change:
    """Let somebody decide in the place of ``subject``."""
    if subject.kind not in (SubjectKind.API_KEY, SubjectKind.TOKEN):
        raise NobodyToDelegate
    time = leases.time(session)
    starts_at = time if body.starts_at is MISSING else body.starts_at
    if body.delegate == subject.name:
        raise _wrong("/delegate", "OWN_DELEGATE", "nobody has to delegate to themselves")
    if body.ends_at <= max(starts_at, time):
        raise _wrong("/ends_at", "TOO_EARLY", "must lie ahead, and after the start")
    row = ApprovalDelegationRow(
        tenant_id=subject.tenant_id,
        id=uuid4().hex,
        approver=subject.name,
        delegate=body.delegate,
        starts_at=starts_at,
        ends_at=body.ends_at,
        note=None if body.note is MISSING else body.note,
        created_at=time,
    )
    session.add(row)
    session.flush()
    after = shown(row)
    path = f"approval-delegations/{row.id}"
    return Change(resource=path, status=201, body=after, headers={"Location": f"/v1/{path}"}, after=after)


def revoke(session: Writer, subject: Subject, delegation_id: str) -> Change:
    """End a delegation of ``subject`` now; what was decided by it stays."""
    row = repository.locked_own(session, subject.tenant_id, subject.name, delegation_id)
    if row is None:
        raise DelegationNotFound
    before = shown(row)
    row.revoked_at = row.revoked_at or leases.time(session)
    session.flush()
    return Change(resource=f"approval-delegations/{row.id}", status=204, before=before, after=shown(row))


def standing_for(session: Reader | Writer, tenant_id: str, delegate: str, time: datetime) -> dict[str, str]:
    """In whose place somebody may decide at a time, and by which delegation.

    It ends with the key that gave it: what is taken from an approver is taken from their delegates.
    """
    found: dict[str, str] = {}
    for row in repository.held_by(session, tenant_id, delegate, time):
        if works(session, named(tenant_id, row.approver), time):
            found.setdefault(row.approver, row.id)
    return found


def recorded(session: Reader, tenant_id: str) -> list[tuple[str, object]]:
    """Every delegation, by id."""
    return [(row.id, shown(row)) for row in repository.every(session, tenant_id)]


def _wrong(pointer: str, code: str, detail: str) -> Unprocessable:
    return Unprocessable("The delegation would never hold", FieldError(pointer, code, detail))
