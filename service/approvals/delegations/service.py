"""Rules of delegations, which approvers give for a time and which cannot be passed on."""

from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from pydantic import MISSING

from service.approvals.delegations import repository
from service.approvals.delegations.schemas import ApprovalDelegationRequest
from service.approvals.errors import DelegationNotFound, NobodyToDelegate
from service.approvals.tables import ApprovalDelegationRow
from service.audit.service import WriteOutcome
from service.auth.service import build_named_subject, is_active
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.jobs import leases
from service.kit.security.principals import Principal, PrincipalKind

_MEMBERS: Final = ("id", "approver", "delegate", "starts_at", "ends_at", "note", "created_at", "revoked_at")


def to_response(row: ApprovalDelegationRow) -> dict[str, Any]:
    """Returns the representation of a delegation."""
    return {name: value for name in _MEMBERS if (value := getattr(row, name)) is not None}


def create_delegation(session: Writer, subject: Principal, body: ApprovalDelegationRequest) -> WriteOutcome:
    """Creates a delegation by which another person may decide on behalf of ``subject``."""
    if subject.kind not in (PrincipalKind.API_KEY, PrincipalKind.TOKEN):
        raise NobodyToDelegate
    time = leases.read_database_time(session)
    starts_at = time if body.starts_at is MISSING else body.starts_at
    if body.delegate == subject.name:
        raise _build_error("/delegate", "OWN_DELEGATE", "must differ from the approver")
    if body.ends_at <= max(starts_at, time):
        raise _build_error("/ends_at", "TOO_EARLY", "must be in the future and after the start")
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
    after = to_response(row)
    path = f"approval-delegations/{row.id}"
    return WriteOutcome(
        resource=path, status=201, body=after, headers={"Location": f"/v1/{path}"}, after=after
    )


def revoke_delegation(session: Writer, subject: Principal, delegation_id: str) -> WriteOutcome:
    """Ends a delegation of ``subject`` now. Decisions under it remain."""
    row = repository.lock_own_delegation(session, subject.tenant_id, subject.name, delegation_id)
    if row is None:
        raise DelegationNotFound
    before = to_response(row)
    row.revoked_at = row.revoked_at or leases.read_database_time(session)
    session.flush()
    return WriteOutcome(
        resource=f"approval-delegations/{row.id}", status=204, before=before, after=to_response(row)
    )


def resolve_delegators(
    session: Reader | Writer, tenant_id: str, delegate: str, time: datetime
) -> dict[str, str]:
    """Returns the approvers on whose behalf somebody may decide at a time, with the delegations.

    A delegation ends with the key that gave it.
    """
    found: dict[str, str] = {}
    for row in repository.list_active_delegations(session, tenant_id, delegate, time):
        if is_active(session, build_named_subject(tenant_id, row.approver), time):
            found.setdefault(row.approver, row.id)
    return found


def list_audit_documents(session: Reader, tenant_id: str) -> list[tuple[str, object]]:
    """Returns every delegation by id, for comparison with the audit."""
    return [(row.id, to_response(row)) for row in repository.list_all_delegations(session, tenant_id)]


def _build_error(pointer: str, code: str, detail: str) -> Unprocessable:
    return Unprocessable("The delegation would never be valid", FieldError(pointer, code, detail))
