"""The rules of approval policies: rows with versions, changed by whoever knows the newest."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import MISSING

from service.approvals.cost_centers import service as cost_centers
from service.approvals.errors import PolicyExists, PolicyNotFound
from service.approvals.policies import repository
from service.approvals.policies.schemas import ApprovalPolicyInput, PolicyStep
from service.approvals.tables import ApprovalPolicyRow
from service.audit.service import Change
from service.kit.clock import now
from service.kit.database import Reader, Writer
from service.kit.problems import ERROR_LIMIT, FieldError, Unprocessable
from service.kit.versions import check_match, etag


class Policy(NamedTuple):
    """A policy and its version."""

    body: ApprovalPolicyInput
    version: int


def shown(row: ApprovalPolicyRow) -> dict[str, Any]:
    """A policy as callers see it."""
    times = {"created_at": row.created_at, "updated_at": row.updated_at}
    return {**json.loads(row.document), "version": row.version, **times}


def get(session: Reader, tenant_id: str, policy_id: str) -> dict[str, Any]:
    """A policy."""
    row = repository.live(session, tenant_id, policy_id)
    if row is None:
        raise PolicyNotFound
    return shown(row)


def every(session: Writer, tenant_id: str) -> list[Policy]:
    """The policies of a tenant, by id."""
    rows = repository.live_after(session, tenant_id)
    return [Policy(ApprovalPolicyInput.model_validate_json(row.document), row.version) for row in rows]


def create(session: Writer, tenant_id: str, body: ApprovalPolicyInput) -> Change:
    """Store a policy under an id that is free; one that was deleted goes on with its next version."""
    row = repository.begun(session, tenant_id, body.id)
    if row.is_live:
        raise PolicyExists("", FieldError("/id", "TAKEN", "there is a policy of this id"))
    row.is_live, row.created_at = True, now()
    _write(session, row, body)
    after = shown(row)
    location = {"Location": f"/v1/approval-policies/{row.id}"}
    return _change(row, status=201, body=after, headers=_etag(row) | location, after=after)


def change(session: Writer, tenant_id: str, policy_id: str, patch: dict[str, Any], if_match: str) -> Change:
    """Replace members of a policy."""
    row = _matched(session, tenant_id, policy_id, if_match)
    before = shown(row)
    merged = {**json.loads(row.document), **patch}
    _write(session, row, ApprovalPolicyInput.model_validate_json(json.dumps(merged)))
    after = shown(row)
    return _change(row, body=after, headers=_etag(row), before=before, after=after)


def delete(session: Writer, tenant_id: str, policy_id: str, if_match: str) -> Change:
    """Let a policy ask for nothing any more; approvals that are under way keep its steps."""
    row = _matched(session, tenant_id, policy_id, if_match)
    before = shown(row)
    row.is_live, row.version, row.updated_at = False, row.version + 1, now()
    session.flush()
    return _change(row, status=204, before=before)


def recorded(session: Reader, tenant_id: str) -> list[tuple[str, object]]:
    """Every policy as its last event has to say it is, by id."""
    return [(row.id, shown(row) if row.is_live else None) for row in repository.every(session, tenant_id)]


def _matched(session: Writer, tenant_id: str, policy_id: str, if_match: str) -> ApprovalPolicyRow:
    row = repository.locked(session, tenant_id, policy_id)
    if row is None or not row.is_live:
        raise PolicyNotFound
    check_match(if_match, etag(row.version))
    return row


def _write(session: Writer, row: ApprovalPolicyRow, body: ApprovalPolicyInput) -> None:
    _check(body)
    _check_centers(session, row.tenant_id, body)
    row.document = body.model_dump_json()
    row.version, row.updated_at = row.version + 1, now()
    session.flush()


def _check_centers(session: Writer, tenant_id: str, body: ApprovalPolicyInput) -> None:
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


def _check(body: ApprovalPolicyInput) -> None:
    """Refuse steps that can never be decided, or never escalate."""
    faults = [
        FieldError(f"/steps/{number}/{member}", code, detail)
        for number, step in enumerate(body.steps)
        for member, code, detail in _faults(step)
    ]
    if faults:
        raise Unprocessable("A step of the policy contradicts itself", *faults[:ERROR_LIMIT])


def _faults(step: PolicyStep) -> Iterator[tuple[str, str, str]]:
    if len(set(step.approvers)) < len(step.approvers):
        yield "approvers", "REPEATED", "an approver is named twice"
    elif step.quorum > len(step.approvers):
        yield "quorum", "QUORUM_TOO_LARGE", "is larger than the number of approvers"
    if step.escalation is MISSING or step.expires_after_seconds is MISSING:
        return
    if step.escalation.after_seconds >= step.expires_after_seconds:
        yield "escalation/after_seconds", "ESCALATES_TOO_LATE", "the step has expired by then"


def _etag(row: ApprovalPolicyRow) -> dict[str, str]:
    return {"ETag": etag(row.version)}


def _change(row: ApprovalPolicyRow, **values: Any) -> Change:  # noqa: ANN401
    return Change(resource=f"approval-policies/{row.id}", **values)
