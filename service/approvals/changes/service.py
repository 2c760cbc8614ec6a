"""The rules of changes that wait: approved by whom the standing policies name, rejected, or due in time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from service.approvals.budgets import repository as budget_rows
from service.approvals.budgets import service as budgets
from service.approvals.budgets.schemas import BudgetTerms
from service.approvals.changes import repository
from service.approvals.changes.authors import is_author
from service.approvals.changes.schemas import ApprovalSettingsInput
from service.approvals.changes.tables import (
    EFFECTIVE,
    REJECTED,
    WAITING,
    ApprovalSettingsRow,
    PolicyChangeRow,
)
from service.approvals.changes.waiting import (
    DEFAULT_DELAY_SECONDS,
    SETTINGS,
    Wanted,
    check_free,
    guard,
    propose,
    shown,
    tell,
)
from service.approvals.cost_centers import repository as cost_centers
from service.approvals.errors import (
    ChangeEnded,
    NobodyInOpenMode,
    NotAnApproverOfChange,
    OwnApproval,
    PolicyChangeNotFound,
)
from service.approvals.people import person
from service.approvals.policies import service as policies
from service.approvals.policies.schemas import ApprovalPolicyInput, PolicyStep
from service.approvals.policies.strictness import covers
from service.approvals.steps import able
from service.audit import service as audit
from service.audit.service import Change, Writes, columns_of
from service.auth.service import named, works
from service.kit.database.engine import Database, Reader, Writer
from service.kit.http.versions import check_match, etag
from service.kit.jobs import leases
from service.kit.security.subjects import Subject, SubjectKind
from service.planning.cost.exchange import ExchangeRates
from service.schemas.events import EventType

APPLIED = "apply_policy_change"
"""What the audit calls that a change takes effect."""


class _End(NamedTuple):
    """How a change ends, and by whom; by nobody where the delay is over."""

    state: str
    by: str | None = None


def get(session: Reader, tenant_id: str, change_id: str) -> dict[str, Any]:
    """A change."""
    row = repository.get(session, tenant_id, change_id)
    if row is None:
        raise PolicyChangeNotFound
    return shown(row)


def approve(session: Writer, subject: Subject, change_id: str, rates: ExchangeRates) -> Change:
    """Agree to a change, which takes effect with the last quorum; agreed before, it is the same answer."""
    row = _waiting(session, subject.tenant_id, change_id)
    before = columns_of(row)
    if subject.kind == SubjectKind.LOCAL:
        raise NobodyInOpenMode
    if is_author(session, row.tenant_id, [row.proposed_by], [subject.name]):
        raise OwnApproval
    asked = _steps(session, row)
    if not any(subject.name in step.approvers for step in asked):
        raise NotAnApproverOfChange
    if not any(made["decided_by"] == subject.name for made in row.approvals):
        at = leases.time(session).isoformat().replace("+00:00", "Z")
        row.approvals = [*row.approvals, {"decided_by": subject.name, "decided_at": at}]
        row.version += 1
    also: tuple[Change, ...] = ()
    if all(_has_quorum(session, row, step) for step in asked):
        also = _apply(session, row, rates, subject.name)
    session.flush()
    return _changed(row, before, also)


def reject(session: Writer, subject: Subject, change_id: str) -> Change:
    """Let what stands go on: whoever may reject a change may, its author too."""
    row = _waiting(session, subject.tenant_id, change_id)
    before = columns_of(row)
    _end(session, row, _End(REJECTED, subject.name))
    return _changed(row, before)


def _waiting(session: Writer, tenant_id: str, change_id: str) -> PolicyChangeRow:
    row = _locked(session, tenant_id, change_id)
    if row is None:
        raise PolicyChangeNotFound
    if row.state != WAITING or row.effective_at <= leases.time(session):
        raise ChangeEnded
    return row


def _locked(session: Writer, tenant_id: str, change_id: str) -> PolicyChangeRow | None:
    found = repository.get(session, tenant_id, change_id)
    if found is not None and found.cost_center_id is not None:
        cost_centers.locked(session, tenant_id, found.cost_center_id)
    return repository.locked(session, tenant_id, change_id)


def _changed(row: PolicyChangeRow, before: object, also: tuple[Change, ...] = ()) -> Change:
    resource = f"policy-changes/{row.id}"
    return Change(resource=resource, body=shown(row), before=before, after=columns_of(row), also=also)


def _steps(session: Writer, row: PolicyChangeRow) -> list[PolicyStep]:
    """Whom the policies that stand ask about a change.

    Those of the policy itself, where it gives up quotes or signatures of its own; else those of every policy,
    or of every one that can speak of the cost centre of a budget.
    """
    standing = [each.body for each in policies.every(session, row.tenant_id)]
    own = next((each for each in standing if policies.resource_of(each.id) == row.resource), None)
    if own is not None and own.steps and _is_within(row, own):
        return own.steps
    if row.cost_center_id is not None:
        standing = [each for each in standing if _speaks_of(each, row.cost_center_id)]
    return list(chain.from_iterable(each.steps for each in standing))


def _is_within(row: PolicyChangeRow, standing: ApprovalPolicyInput) -> bool:
    if row.document is None:
        return True
    wanted = ApprovalPolicyInput.model_validate_json(row.document)
    return covers(standing.conditions, wanted.conditions)


def _speaks_of(policy: ApprovalPolicyInput, center_id: str) -> bool:
    wanted = policy.conditions.cost_center_ids
    return not isinstance(wanted, list) or center_id in wanted


def _has_quorum(session: Writer, row: PolicyChangeRow, step: PolicyStep) -> bool:
    """Whether enough people of a step agree: one by several names counts once, and the author never."""
    tenant_id, time = row.tenant_id, leases.time(session)
    agreed = {made["decided_by"] for made in row.approvals} & set(step.approvers)
    names = [name for name in agreed if works(session, named(tenant_id, name), time)]
    others = [name for name in names if not is_author(session, tenant_id, [row.proposed_by], [name])]
    return able(person(session, tenant_id, name) for name in others) >= step.quorum


def apply_due(
    session: Writer, tenant_id: str, rates: ExchangeRates, center_id: str | None = None
) -> tuple[Change, ...]:
    """Let every change take effect whose delay is over; of a cost centre, only those of its budgets."""
    time = leases.time(session)
    applied: list[Change] = []
    for change_id in repository.due(session, tenant_id, time, center_id):
        row = _locked(session, tenant_id, change_id)
        if row is not None and row.state == WAITING:
            before = columns_of(row)
            also = _apply(session, row, rates, None)
            applied.append(replace(_changed(row, before, also), by_service=APPLIED))
    return tuple(applied)


def _apply(session: Writer, row: PolicyChangeRow, rates: ExchangeRates, by: str | None) -> tuple[Change, ...]:
    """Let a change take effect; one that has become impossible is rejected."""
    kind, _, own_id = row.resource.partition("/")
    if kind == "budgets":
        made = _apply_to_budget(session, row, own_id, rates)
    elif kind == "approval-policies":
        made = _apply_to_policy(session, row, own_id)
    else:
        made = _apply_to_settings(session, row)
    _end(session, row, _End(REJECTED if made is None else EFFECTIVE, by))
    return () if made is None else (replace(made, by_service=APPLIED),)


def _apply_to_policy(session: Writer, row: PolicyChangeRow, policy_id: str) -> Change:
    if row.document is None:
        return policies.drop(session, row.tenant_id, policy_id)
    body = ApprovalPolicyInput.model_validate_json(row.document)
    return policies.put(session, row.tenant_id, body, row.proposed_by)


def _apply_to_budget(
    session: Writer, row: PolicyChangeRow, budget_id: str, rates: ExchangeRates
) -> Change | None:
    budget = budget_rows.get(session, row.tenant_id, budget_id)
    if budget is None or (row.document is None and budgets.is_committed(session, budget)):
        return None
    if row.document is None:
        return budgets.drop(session, budget)
    return budgets.put(session, budget, BudgetTerms.model_validate_json(row.document), row.proposed_by, rates)


def _apply_to_settings(session: Writer, row: PolicyChangeRow) -> Change:
    settings = repository.locked_settings(session, row.tenant_id, DEFAULT_DELAY_SECONDS)
    return _set(session, settings, ApprovalSettingsInput.model_validate_json(row.document or ""))


def _end(session: Writer, row: PolicyChangeRow, end: _End) -> None:
    row.state, row.ended_by, row.ended_at = end.state, end.by, leases.time(session)
    row.version += 1
    is_effective = end.state == EFFECTIVE
    tell(
        session, row, EventType.POLICY_CHANGE_EFFECTIVE if is_effective else EventType.POLICY_CHANGE_REJECTED
    )
    session.flush()


def settings(session: Reader, tenant_id: str) -> dict[str, Any]:
    """What holds for the changes of a tenant."""
    row = repository.settings(session, tenant_id)
    if row is None:
        return {"change_delay_seconds": DEFAULT_DELAY_SECONDS, "version": 1}
    return _shown_settings(row)


def _shown_settings(row: ApprovalSettingsRow) -> dict[str, Any]:
    return {"change_delay_seconds": row.change_delay_seconds, "version": row.version}


def change_settings(session: Writer, subject: Subject, patch: dict[str, Any], if_match: str) -> Change:
    """Another delay; a shorter one waits for the end of the one that stands, or its approval."""
    guarded, tenant_id = guard(session, subject.tenant_id), subject.tenant_id
    row = guarded.settings
    check_match(if_match, etag(row.version))
    check_free(session, tenant_id, SETTINGS)
    known = {"change_delay_seconds": row.change_delay_seconds}
    body = ApprovalSettingsInput.model_validate({**known, **patch})
    if guarded.waits and body.change_delay_seconds < row.change_delay_seconds:
        return propose(session, subject, guarded, Wanted(SETTINGS, body.model_dump_json(), row.version))
    return _set(session, row, body)


def _set(session: Writer, row: ApprovalSettingsRow, body: ApprovalSettingsInput) -> Change:
    before = _shown_settings(row)
    row.change_delay_seconds, row.version = body.change_delay_seconds, row.version + 1
    session.flush()
    after = _shown_settings(row)
    return Change(
        resource=SETTINGS, body=after, headers={"ETag": etag(row.version)}, before=before, after=after
    )


def settle(
    database: Database, writes: Writes, tenant_id: str, rates_of: Callable[[str], ExchangeRates]
) -> int:
    """Let the changes of a tenant take effect that are due, as the service's own act; their number."""
    with database.reading() as session:
        is_due = repository.due(session, tenant_id, leases.time(session))
    if not is_due:
        return 0
    rates = rates_of(tenant_id)
    with database.writing() as session:
        applied = apply_due(session, tenant_id, rates)
        for change in applied:
            writes.note(session, tenant_id, APPLIED, change)
    return len(applied)


def tenants_due(session: Reader) -> Sequence[str]:
    """Tenants with changes that are due."""
    return repository.tenants_due(session, leases.time(session))


def unlike_recorded(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Changes that wait or have waited, and the delay, that are not as their last event says."""
    rows = ((row.id, columns_of(row)) for row in repository.every(session, tenant_id))
    yield from audit.unlike_recorded(session, tenant_id, "policy-changes", rows)
    row = repository.settings(session, tenant_id)
    # A row that was made to be locked is as everybody's.
    own = []
    if row is not None and (row.version, row.change_delay_seconds) != (1, DEFAULT_DELAY_SECONDS):
        own.append((SETTINGS.partition("/")[2], _shown_settings(row)))
    yield from audit.unlike_recorded(session, tenant_id, "approval-settings", own)
