"""The rules of approval policies: rows with versions, changed by whoever knows the newest."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import MISSING

from service.approvals.changes.authors import authors, is_author
from service.approvals.changes.waiting import Wanted, check_free, guard, propose
from service.approvals.cost_centers import service as cost_centers
from service.approvals.errors import PolicyExists, PolicyNotFound
from service.approvals.policies import repository
from service.approvals.policies.schemas import ApprovalPolicyInput, PolicyStep
from service.approvals.policies.strictness import asks_more, only_adds
from service.approvals.tables import ApprovalPolicyRow
from service.audit.service import Change, writers
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import ERROR_LIMIT, FieldError, Unprocessable
from service.kit.http.versions import check_match, etag
from service.kit.security.subjects import Subject


class Policy(NamedTuple):
    """A policy and its version."""

    body: ApprovalPolicyInput
    version: int


def resource_of(policy_id: str) -> str:
    """What changes and the audit call a policy."""
    return f"approval-policies/{policy_id}"


def shown(row: ApprovalPolicyRow) -> dict[str, Any]:
    """A policy as callers see it."""
    return _named(_recorded(row))


def _named(document: dict[str, Any]) -> dict[str, Any]:
    """A document that says whether it is automatic, as those of older rows do not."""
    return {"automatic": not document["steps"], **document}


def _recorded(row: ApprovalPolicyRow) -> dict[str, Any]:
    """A policy as the audit holds a digest of it: of a row older than a member, without the member."""
    members = {} if row.written_by is None else {"written_by": row.written_by}
    times = {"created_at": row.created_at, "updated_at": row.updated_at}
    return {**json.loads(row.document), "version": row.version, **times, **members}


def get(session: Reader, tenant_id: str, policy_id: str) -> dict[str, Any]:
    """A policy."""
    row = repository.live(session, tenant_id, policy_id)
    if row is None:
        raise PolicyNotFound
    return shown(row)


def every(session: Writer, tenant_id: str) -> list[Policy]:
    """The policies of a tenant, by id."""
    return [_read(row) for row in repository.live_after(session, tenant_id)]


def _read(row: ApprovalPolicyRow) -> Policy:
    return Policy(ApprovalPolicyInput.model_validate_json(row.document), row.version)


def own(session: Writer, tenant_id: str, policies: Iterable[Policy], names: Collection[str]) -> list[str]:
    """Ids of the policies of which one of ``names``, or somebody they act for, has written a version."""
    ids = [policy.body.id for policy in policies]
    rows = (repository.live(session, tenant_id, policy_id) for policy_id in ids)
    return [row.id for row in rows if row and is_author(session, tenant_id, _writers(session, row), names)]


def _writers(session: Writer, row: ApprovalPolicyRow) -> Sequence[str]:
    """Who has written a policy; of an older row the audit chain says so."""
    if row.written_by is not None:
        return row.written_by
    return writers(session, row.tenant_id, resource_of(row.id))


def create(session: Writer, subject: Subject, body: ApprovalPolicyInput) -> Change:
    """Store a policy under an id that is free, or let it wait where it may let pass what was refused."""
    guarded, tenant_id, resource = guard(session, subject.tenant_id), subject.tenant_id, resource_of(body.id)
    check(body)
    _check_centers(session, tenant_id, body)
    check_free(session, tenant_id, resource)
    if repository.live(session, tenant_id, body.id) is not None:
        raise PolicyExists("", FieldError("/id", "TAKEN", "there is a policy of this id"))
    if guarded.waits and not any(asks_more(body, each.body) for each in every(session, tenant_id)):
        return propose(session, subject, guarded, Wanted(resource, body.model_dump_json(), 0))
    made = put(session, tenant_id, body, subject.name)
    return replace(made, status=201, headers={**made.headers, "Location": f"/v1/{resource}"})


def change(session: Writer, subject: Subject, policy_id: str, patch: dict[str, Any], if_match: str) -> Change:
    """Replace members of a policy, or let it wait unless that only adds steps."""
    guarded, tenant_id = guard(session, subject.tenant_id), subject.tenant_id
    row = _matched(session, tenant_id, policy_id, if_match)
    check_free(session, tenant_id, resource_of(policy_id))
    known = _named(json.loads(row.document))
    if patch.get("steps"):
        known["automatic"] = False
    body = ApprovalPolicyInput.model_validate_json(json.dumps({**known, **patch}))
    check(body)
    _check_centers(session, tenant_id, body)
    if guarded.waits and not only_adds(_read(row).body, body):
        wanted = Wanted(resource_of(policy_id), body.model_dump_json(), row.version)
        return propose(session, subject, guarded, wanted)
    return put(session, tenant_id, body, subject.name)


def delete(session: Writer, subject: Subject, policy_id: str, if_match: str) -> Change:
    """Let a policy ask for nothing any more; approvals that are under way keep its steps."""
    guarded, tenant_id = guard(session, subject.tenant_id), subject.tenant_id
    row = _matched(session, tenant_id, policy_id, if_match)
    check_free(session, tenant_id, resource_of(policy_id))
    if guarded.waits:
        return propose(session, subject, guarded, Wanted(resource_of(policy_id), None, row.version))
    return drop(session, tenant_id, policy_id)


def put(session: Writer, tenant_id: str, body: ApprovalPolicyInput, author: str) -> Change:
    """Let a policy stand; one that was deleted goes on with its next version."""
    row = repository.begun(session, tenant_id, body.id)
    before, earlier = (_recorded(row), _writers(session, row)) if row.is_live else (None, ())
    row.written_by = authors(session, tenant_id, author, earlier)
    if not row.is_live:
        row.is_live, row.created_at = True, now()
    row.document = body.model_dump_json()
    row.version, row.updated_at = row.version + 1, now()
    session.flush()
    headers = {"ETag": etag(row.version)}
    return Change(
        resource=resource_of(row.id), body=shown(row), headers=headers, before=before, after=_recorded(row)
    )


def drop(session: Writer, tenant_id: str, policy_id: str) -> Change:
    """Let a policy stand no more."""
    row = _live(session, tenant_id, policy_id)
    before = _recorded(row)
    row.is_live, row.version, row.updated_at = False, row.version + 1, now()
    session.flush()
    return Change(resource=resource_of(policy_id), status=204, before=before)


def recorded(session: Reader, tenant_id: str) -> list[tuple[str, object]]:
    """Every policy as its last event has to say it is, by id."""
    return [(row.id, _recorded(row) if row.is_live else None) for row in repository.every(session, tenant_id)]


def _matched(session: Writer, tenant_id: str, policy_id: str, if_match: str) -> ApprovalPolicyRow:
    row = _live(session, tenant_id, policy_id)
    check_match(if_match, etag(row.version))
    return row


def _live(session: Writer, tenant_id: str, policy_id: str) -> ApprovalPolicyRow:
    row = repository.locked(session, tenant_id, policy_id)
    if row is None or not row.is_live:
        raise PolicyNotFound
    return row


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


def check(body: ApprovalPolicyInput) -> None:
    """Refuse steps that can never be decided, or never escalate, and to have none without saying so."""
    if body.automatic == bool(body.steps):
        detail = "is true where there are no steps, and only there: nobody is asked then"
        raise Unprocessable("A policy without steps says so", FieldError("/automatic", "NOT_NAMED", detail))
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
