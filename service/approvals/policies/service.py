"""The rules of approval policies: rows with versions, changed by whoever knows the newest."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import MISSING

from service.approvals.changes.authors import is_author, resolve_authors
from service.approvals.changes.waiting import ProposedChange, check_not_waiting, lock_guard, propose_change
from service.approvals.cost_centers import service as cost_centers
from service.approvals.errors import PolicyExists, PolicyNotFound
from service.approvals.policies import repository
from service.approvals.policies.schemas import ApprovalPolicyRequest, PolicyStep
from service.approvals.policies.strictness import has_more_steps, is_only_stricter
from service.approvals.tables import ApprovalPolicyRow
from service.audit.service import WriteOutcome, list_writers
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable
from service.kit.http.versions import build_etag, check_version_match
from service.kit.security.principals import Principal


class VersionedPolicy(NamedTuple):
    """A policy and its version."""

    body: ApprovalPolicyRequest
    version: int


def build_resource_name(policy_id: str) -> str:
    """What changes and the audit call a policy."""
    return f"approval-policies/{policy_id}"


def to_response(row: ApprovalPolicyRow) -> dict[str, Any]:
    """A policy as callers see it."""
    return _add_automatic_flag(_to_audit_document(row))


def _add_automatic_flag(document: dict[str, Any]) -> dict[str, Any]:
    """A document that says whether it is automatic, as those of older rows do not."""
    return {"automatic": not document["steps"], **document}


def _to_audit_document(row: ApprovalPolicyRow) -> dict[str, Any]:
    """A policy as the audit holds a digest of it: of a row older than a member, without the member."""
    members = {} if row.written_by is None else {"written_by": row.written_by}
    times = {"created_at": row.created_at, "updated_at": row.updated_at}
    return {**json.loads(row.document), "version": row.version, **times, **members}


def get_policy(session: Reader, tenant_id: str, policy_id: str) -> dict[str, Any]:
    """A policy."""
    row = repository.get_live_policy(session, tenant_id, policy_id)
    if row is None:
        raise PolicyNotFound
    return to_response(row)


def list_policies(session: Writer, tenant_id: str) -> list[VersionedPolicy]:
    """The policies of a tenant, by id."""
    return [_parse_policy(row) for row in repository.list_live_after(session, tenant_id)]


def _parse_policy(row: ApprovalPolicyRow) -> VersionedPolicy:
    return VersionedPolicy(ApprovalPolicyRequest.model_validate_json(row.document), row.version)


def list_own_policies(
    session: Writer, tenant_id: str, policies: Iterable[VersionedPolicy], names: Collection[str]
) -> list[str]:
    """Ids of the policies of which one of ``names``, or somebody they act for, has written a version."""
    ids = [policy.body.id for policy in policies]
    rows = (repository.get_live_policy(session, tenant_id, policy_id) for policy_id in ids)
    return [
        row.id for row in rows if row and is_author(session, tenant_id, _list_writers(session, row), names)
    ]


def _list_writers(session: Writer, row: ApprovalPolicyRow) -> Sequence[str]:
    """Who has written a policy; of an older row the audit chain says so."""
    if row.written_by is not None:
        return row.written_by
    return list_writers(session, row.tenant_id, build_resource_name(row.id))


def create_policy(session: Writer, subject: Principal, body: ApprovalPolicyRequest) -> WriteOutcome:
    """Store a policy under an id that is free, or let it wait where it may let pass what was refused."""
    guarded, tenant_id, resource = (
        lock_guard(session, subject.tenant_id),
        subject.tenant_id,
        build_resource_name(body.id),
    )
    check_policy(body)
    _check_centers(session, tenant_id, body)
    check_not_waiting(session, tenant_id, resource)
    if repository.get_live_policy(session, tenant_id, body.id) is not None:
        raise PolicyExists("", FieldError("/id", "TAKEN", "there is a policy of this id"))
    if guarded.waits and not any(
        has_more_steps(body, each.body) for each in list_policies(session, tenant_id)
    ):
        return propose_change(session, subject, guarded, ProposedChange(resource, body.model_dump_json(), 0))
    made = store_policy(session, tenant_id, body, subject.name)
    return replace(made, status=201, headers={**made.headers, "Location": f"/v1/{resource}"})


def change_policy(
    session: Writer, subject: Principal, policy_id: str, patch: dict[str, Any], if_match: str
) -> WriteOutcome:
    """Replace members of a policy, or let it wait unless that only adds steps."""
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
    """Let a policy ask for nothing any more; approvals that are under way keep its steps."""
    guarded, tenant_id = lock_guard(session, subject.tenant_id), subject.tenant_id
    row = _lock_matching_row(session, tenant_id, policy_id, if_match)
    check_not_waiting(session, tenant_id, build_resource_name(policy_id))
    if guarded.waits:
        return propose_change(
            session, subject, guarded, ProposedChange(build_resource_name(policy_id), None, row.version)
        )
    return remove_policy(session, tenant_id, policy_id)


def store_policy(session: Writer, tenant_id: str, body: ApprovalPolicyRequest, author: str) -> WriteOutcome:
    """Let a policy stand; one that was deleted goes on with its next version."""
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
    """Let a policy stand no more."""
    row = _lock_live_row(session, tenant_id, policy_id)
    before = _to_audit_document(row)
    row.is_live, row.version, row.updated_at = False, row.version + 1, now()
    session.flush()
    return WriteOutcome(resource=build_resource_name(policy_id), status=204, before=before)


def list_audit_documents(session: Reader, tenant_id: str) -> list[tuple[str, object]]:
    """Every policy as its last event has to say it is, by id."""
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
    """Refuse a condition on who pays that nobody could meet."""
    named = [] if body.conditions.cost_center_ids is MISSING else body.conditions.cost_center_ids
    faults = [
        FieldError(
            f"/conditions/cost_center_ids/{place}", "UNKNOWN_REFERENCE", "there is no such cost centre"
        )
        for place, center_id in enumerate(named)
        if not cost_centers.is_known(session, tenant_id, center_id)
    ]
    if faults:
        raise Unprocessable("A member refers to no row", *faults[:ERROR_LIMIT])


def check_policy(body: ApprovalPolicyRequest) -> None:
    """Refuse steps that can never be decided, or never escalate, and to have none without saying so."""
    if body.automatic == bool(body.steps):
        detail = "is true where there are no steps, and only there: nobody is asked then"
        raise Unprocessable("A policy without steps says so", FieldError("/automatic", "NOT_NAMED", detail))
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
        yield "escalation/after_seconds", "ESCALATES_TOO_LATE", "the step has expired by then"
