"""Rules of approval policies: versioned rows that change with a matching ETag."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import MISSING

from service.audit.service import WriteOutcome, list_writers
from service.cost_centers import service as cost_centers
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable
from service.kit.http.versions import build_etag, check_version_match
from service.kit.security.principals import Principal
from service.policies import repository
from service.policies.changes.waiting import ProposedChange, check_not_waiting, lock_guard, propose_change
from service.policies.errors import PolicyExists, PolicyNotFound
from service.policies.people import is_author, resolve_authors
from service.policies.schemas import ApprovalPolicyRequest, PolicyStep
from service.policies.strictness import has_more_steps, is_only_stricter
from service.policies.tables import ApprovalPolicyRow


class VersionedPolicy(NamedTuple):
    """A policy and its version."""

    body: ApprovalPolicyRequest
    version: int


def build_resource_name(policy_id: str) -> str:
    """Returns the resource name of a policy in changes and audit."""
    return f"approval-policies/{policy_id}"


def to_response(row: ApprovalPolicyRow) -> dict[str, Any]:
    """Returns the representation of a policy."""
    return _add_automatic_flag(_to_audit_document(row))


def _add_automatic_flag(document: dict[str, Any]) -> dict[str, Any]:
    """Returns a document with its automatic flag, which older rows lack."""
    return {"automatic": not document["steps"], **document}


def _to_audit_document(row: ApprovalPolicyRow) -> dict[str, Any]:
    """Returns a policy as the audit digests it, without members that are newer than the row."""
    members = {} if row.written_by is None else {"written_by": row.written_by}
    times = {"created_at": row.created_at, "updated_at": row.updated_at}
    return {**json.loads(row.document), "version": row.version, **times, **members}


def get_policy(session: Reader, tenant_id: str, policy_id: str) -> dict[str, Any]:
    """Returns a policy."""
    row = repository.get_live_policy(session, tenant_id, policy_id)
    if row is None:
        raise PolicyNotFound
    return to_response(row)


def list_policies(session: Writer, tenant_id: str) -> list[VersionedPolicy]:
    """Returns the policies of a tenant by id."""
    return [_parse_policy(row) for row in repository.list_live_after(session, tenant_id)]


def _parse_policy(row: ApprovalPolicyRow) -> VersionedPolicy:
    return VersionedPolicy(ApprovalPolicyRequest.model_validate_json(row.document), row.version)


def list_own_policies(
    session: Writer, tenant_id: str, policies: Iterable[VersionedPolicy], names: Collection[str]
) -> list[str]:
    """Returns the ids of policies that one of ``names``, or somebody they act for, has written."""
    ids = [policy.body.id for policy in policies]
    rows = (repository.get_live_policy(session, tenant_id, policy_id) for policy_id in ids)
    return [
        row.id for row in rows if row and is_author(session, tenant_id, _list_writers(session, row), names)
    ]


def _list_writers(session: Writer, row: ApprovalPolicyRow) -> Sequence[str]:
    """Returns the writers of a policy. For older rows they come from the audit chain."""
    if row.written_by is not None:
        return row.written_by
    return list_writers(session, row.tenant_id, build_resource_name(row.id))


def create_policy(session: Writer, subject: Principal, body: ApprovalPolicyRequest) -> WriteOutcome:
    """Stores a policy under a free id, or proposes it if it may admit quotes that were refused."""
    guarded, tenant_id, resource = (
        lock_guard(session, subject.tenant_id),
        subject.tenant_id,
        build_resource_name(body.id),
    )
    check_policy(body)
    _check_centers(session, tenant_id, body)
    check_not_waiting(session, tenant_id, resource)
    if repository.get_live_policy(session, tenant_id, body.id) is not None:
        raise PolicyExists("", FieldError("/id", "TAKEN", "a policy with this id exists"))
    if guarded.waits and not any(
        has_more_steps(body, each.body) for each in list_policies(session, tenant_id)
    ):
        return propose_change(session, subject, guarded, ProposedChange(resource, body.model_dump_json(), 0))
    made = store_policy(session, tenant_id, body, subject.name)
    return replace(made, status=201, headers={**made.headers, "Location": f"/v1/{resource}"})


def change_policy(
    session: Writer, subject: Principal, policy_id: str, patch: dict[str, Any], if_match: str
) -> WriteOutcome:
    """Replaces members of a policy, or proposes the change unless it only adds steps."""
    guarded, tenant_id = lock_guard(session, subject.tenant_id), subject.tenant_id
    row = _lock_matching_row(session, tenant_id, policy_id, if_match)
    check_not_waiting(session, tenant_id, build_resource_name(policy_id))
    known = _add_automatic_flag(json.loads(row.document))
    if patch.get("steps"):
        known["automatic"] = False
    body = ApprovalPolicyRequest.model_validate_json(json.dumps({**known, **patch}))
    check_policy(body)
    _check_centers(session, tenant_id, body)
    if guarded.waits and not is_only_stricter(_parse_policy(row).body, body):
        wanted = ProposedChange(build_resource_name(policy_id), body.model_dump_json(), row.version)
        return propose_change(session, subject, guarded, wanted)
    return store_policy(session, tenant_id, body, subject.name)


def delete_policy(session: Writer, subject: Principal, policy_id: str, if_match: str) -> WriteOutcome:
    """Deletes a policy, or proposes its deletion. Pending approvals keep its steps."""
    guarded, tenant_id = lock_guard(session, subject.tenant_id), subject.tenant_id
    row = _lock_matching_row(session, tenant_id, policy_id, if_match)
    check_not_waiting(session, tenant_id, build_resource_name(policy_id))
    if guarded.waits:
        return propose_change(
            session, subject, guarded, ProposedChange(build_resource_name(policy_id), None, row.version)
        )
    return remove_policy(session, tenant_id, policy_id)


def store_policy(session: Writer, tenant_id: str, body: ApprovalPolicyRequest, author: str) -> WriteOutcome:
    """Stores a policy. One with a deleted id continues with the next version."""
    row = repository.lock_or_add_policy(session, tenant_id, body.id)
    before, earlier = (_to_audit_document(row), _list_writers(session, row)) if row.is_live else (None, ())
    row.written_by = resolve_authors(session, tenant_id, author, earlier)
    if not row.is_live:
        row.is_live, row.created_at = True, now()
    row.document = body.model_dump_json()
    row.version, row.updated_at = row.version + 1, now()
    session.flush()
    headers = {"ETag": build_etag(row.version)}
    return WriteOutcome(
        resource=build_resource_name(row.id),
        body=to_response(row),
        headers=headers,
        before=before,
        after=_to_audit_document(row),
    )


def remove_policy(session: Writer, tenant_id: str, policy_id: str) -> WriteOutcome:
    """Deletes a policy."""
    row = _lock_live_row(session, tenant_id, policy_id)
    before = _to_audit_document(row)
    row.is_live, row.version, row.updated_at = False, row.version + 1, now()
    session.flush()
    return WriteOutcome(resource=build_resource_name(policy_id), status=204, before=before)


def list_audit_documents(session: Reader, tenant_id: str) -> list[tuple[str, object]]:
    """Returns the state of every policy for comparison with its last audit event, by id."""
    return [
        (row.id, _to_audit_document(row) if row.is_live else None)
        for row in repository.list_all_policies(session, tenant_id)
    ]


def _lock_matching_row(session: Writer, tenant_id: str, policy_id: str, if_match: str) -> ApprovalPolicyRow:
    row = _lock_live_row(session, tenant_id, policy_id)
    check_version_match(if_match, build_etag(row.version))
    return row


def _lock_live_row(session: Writer, tenant_id: str, policy_id: str) -> ApprovalPolicyRow:
    row = repository.lock_policy(session, tenant_id, policy_id)
    if row is None or not row.is_live:
        raise PolicyNotFound
    return row


def _check_centers(session: Writer, tenant_id: str, body: ApprovalPolicyRequest) -> None:
    """Refuses a condition on cost centres that do not exist."""
    named = [] if body.conditions.cost_center_ids is MISSING else body.conditions.cost_center_ids
    faults = [
        FieldError(
            f"/conditions/cost_center_ids/{place}",
            "UNKNOWN_REFERENCE",
            "there is no cost centre with this id",
        )
        for place, center_id in enumerate(named)
        if not cost_centers.is_known(session, tenant_id, center_id)
    ]
    if faults:
        raise Unprocessable("A member refers to no row", *faults[:ERROR_LIMIT])


def check_policy(body: ApprovalPolicyRequest) -> None:
    """Refuses steps that cannot be decided or escalated, and a non-automatic policy without steps."""
    if body.automatic == bool(body.steps):
        detail = "must be true if and only if there are no steps"
        raise Unprocessable(
            "A policy without steps must be automatic", FieldError("/automatic", "NOT_NAMED", detail)
        )
    faults = [
        FieldError(f"/steps/{number}/{member}", code, detail)
        for number, step in enumerate(body.steps)
        for member, code, detail in _find_step_faults(step)
    ]
    if faults:
        raise Unprocessable("A step of the policy contradicts itself", *faults[:ERROR_LIMIT])


def _find_step_faults(step: PolicyStep) -> Iterator[tuple[str, str, str]]:
    if len(set(step.approvers)) < len(step.approvers):
        yield "approvers", "REPEATED", "an approver is named twice"
    elif step.quorum > len(step.approvers):
        yield "quorum", "QUORUM_TOO_LARGE", "is larger than the number of approvers"
    if step.escalation is MISSING or step.expires_after_seconds is MISSING:
        return
    if step.escalation.after_seconds >= step.expires_after_seconds:
        yield "escalation/after_seconds", "ESCALATES_TOO_LATE", "must be before the step expires"
