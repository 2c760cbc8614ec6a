"""Rules of pending changes, which are approved, rejected, or take effect after a delay."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Final, NamedTuple

from fastapi import Depends

from service.audit import service as audit
from service.audit.service import (
    Read,
    ReadRequest,
    TransactionSource,
    Write,
    WriteOutcome,
    WriteRequest,
    Writes,
    to_audit_columns,
)
from service.auth.service import build_named_subject, is_active
from service.cost_centers import service as cost_centers
from service.evidence.snapshot import Snapshots, SnapshotStore
from service.kit.database.engine import Database, Reader, Writer
from service.kit.http.versions import build_etag, check_version_match
from service.kit.http.web import from_state
from service.kit.jobs import leases
from service.kit.security.principals import Principal, PrincipalKind
from service.planning.cost.exchange import ExchangeRates
from service.policies import service as policies
from service.policies.changes import repository
from service.policies.changes.schemas import ApprovalSettingsValues
from service.policies.changes.tables import (
    EFFECTIVE,
    REJECTED,
    WAITING,
    ApprovalSettingsRow,
    PolicyChangeRow,
)
from service.policies.changes.waiting import (
    DEFAULT_DELAY_SECONDS,
    SETTINGS,
    ChangeAppliers,
    DueChange,
    ProposedChange,
    check_not_waiting,
    lock_guard,
    propose_change,
    to_response,
    write_event,
)
from service.policies.errors import (
    ChangeEnded,
    NobodyInOpenMode,
    NotAnApproverOfChange,
    OwnApproval,
    PolicyChangeNotFound,
)
from service.policies.people import count_distinct_people, is_author, resolve_person
from service.policies.schemas import ApprovalPolicyRequest, PolicyStep
from service.policies.strictness import is_superset
from service.schemas.events import WebhookEventType

APPLIED = "apply_policy_change"
"""Name of the audit operation by which a change takes effect."""


class _ChangeEnd(NamedTuple):
    """End of a change, and the subject who ended it; None at the end of the delay."""

    state: str
    by: str | None = None


def get_change(session: Reader, tenant_id: str, change_id: str) -> dict[str, Any]:
    """Returns a change."""
    row = repository.get_change(session, tenant_id, change_id)
    if row is None:
        raise PolicyChangeNotFound
    return to_response(row)


def approve_change(
    session: Writer, subject: Principal, change_id: str, rates: ExchangeRates, appliers: ChangeAppliers
) -> WriteOutcome:
    """Approves a change, which takes effect with the last quorum. Repeating it returns the same answer."""
    row = _lock_waiting_change(session, subject.tenant_id, change_id)
    before = to_audit_columns(row)
    if subject.kind == PrincipalKind.LOCAL:
        raise NobodyInOpenMode
    if is_author(session, row.tenant_id, [row.proposed_by], [subject.name]):
        raise OwnApproval
    asked = _list_required_steps(session, row)
    if not any(subject.name in step.approvers for step in asked):
        raise NotAnApproverOfChange
    if not any(made["decided_by"] == subject.name for made in row.approvals):
        at = leases.read_database_time(session).isoformat().replace("+00:00", "Z")
        row.approvals = [*row.approvals, {"decided_by": subject.name, "decided_at": at}]
        row.version += 1
    also: tuple[WriteOutcome, ...] = ()
    if all(_has_quorum(session, row, step) for step in asked):
        also = _apply_change(session, row, rates, appliers, subject.name)
    session.flush()
    return _build_change(row, before, also)


def reject_change(session: Writer, subject: Principal, change_id: str) -> WriteOutcome:
    """Rejects a change, so that the current state remains. Its author may reject it too."""
    row = _lock_waiting_change(session, subject.tenant_id, change_id)
    before = to_audit_columns(row)
    _end_change(session, row, _ChangeEnd(REJECTED, subject.name))
    return _build_change(row, before)


def _lock_waiting_change(session: Writer, tenant_id: str, change_id: str) -> PolicyChangeRow:
    row = _lock_change(session, tenant_id, change_id)
    if row is None:
        raise PolicyChangeNotFound
    if row.state != WAITING or row.effective_at <= leases.read_database_time(session):
        raise ChangeEnded
    return row


def _lock_change(session: Writer, tenant_id: str, change_id: str) -> PolicyChangeRow | None:
    found = repository.get_change(session, tenant_id, change_id)
    if found is not None and found.cost_center_id is not None:
        cost_centers.lock_cost_center(session, tenant_id, found.cost_center_id)
    return repository.lock_change(session, tenant_id, change_id)


def _build_change(row: PolicyChangeRow, before: object, also: tuple[WriteOutcome, ...] = ()) -> WriteOutcome:
    resource = f"policy-changes/{row.id}"
    return WriteOutcome(
        resource=resource, body=to_response(row), before=before, after=to_audit_columns(row), also=also
    )


def _list_required_steps(session: Writer, row: PolicyChangeRow) -> list[PolicyStep]:
    """Returns the steps of the current policies that a change needs.

    These are the steps of the policy itself if it only gives up quotes or signatures of its own; otherwise
    those of every policy, or for a budget of every policy that can match its cost centre.
    """
    standing = [each.body for each in policies.list_policies(session, row.tenant_id)]
    own = next((each for each in standing if policies.build_resource_name(each.id) == row.resource), None)
    if own is not None and own.steps and _is_within(row, own):
        return own.steps
    if row.cost_center_id is not None:
        standing = [each for each in standing if _is_about_center(each, row.cost_center_id)]
    return list(chain.from_iterable(each.steps for each in standing))


def _is_within(row: PolicyChangeRow, standing: ApprovalPolicyRequest) -> bool:
    if row.document is None:
        return True
    wanted = ApprovalPolicyRequest.model_validate_json(row.document)
    return is_superset(standing.conditions, wanted.conditions)


def _is_about_center(policy: ApprovalPolicyRequest, center_id: str) -> bool:
    wanted = policy.conditions.cost_center_ids
    return not isinstance(wanted, list) or center_id in wanted


def _has_quorum(session: Writer, row: PolicyChangeRow, step: PolicyStep) -> bool:
    """Returns true if enough people of a step agree. A person counts once, and the author never."""
    tenant_id, time = row.tenant_id, leases.read_database_time(session)
    agreed = {made["decided_by"] for made in row.approvals} & set(step.approvers)
    names = [name for name in agreed if is_active(session, build_named_subject(tenant_id, name), time)]
    others = [name for name in names if not is_author(session, tenant_id, [row.proposed_by], [name])]
    return count_distinct_people(resolve_person(session, tenant_id, name) for name in others) >= step.quorum


def apply_due_changes(
    session: Writer,
    tenant_id: str,
    rates: ExchangeRates,
    appliers: ChangeAppliers,
    center_id: str | None = None,
) -> tuple[WriteOutcome, ...]:
    """Applies every change whose delay is over; with ``center_id`` only those of its budgets."""
    time = leases.read_database_time(session)
    applied: list[WriteOutcome] = []
    for change_id in repository.list_due_ids(session, tenant_id, time, center_id):
        row = _lock_change(session, tenant_id, change_id)
        if row is not None and row.state == WAITING:
            before = to_audit_columns(row)
            also = _apply_change(session, row, rates, appliers, None)
            applied.append(replace(_build_change(row, before, also), by_service=APPLIED))
    return tuple(applied)


def _apply_change(
    session: Writer, row: PolicyChangeRow, rates: ExchangeRates, appliers: ChangeAppliers, by: str | None
) -> tuple[WriteOutcome, ...]:
    """Applies a change. Rejects one that has become impossible."""
    kind, _, own_id = row.resource.partition("/")
    due = DueChange(row.tenant_id, own_id, row.document, row.proposed_by)
    made = {**_APPLIERS, **appliers}[kind](session, due, rates)
    _end_change(session, row, _ChangeEnd(REJECTED if made is None else EFFECTIVE, by))
    return () if made is None else (replace(made, by_service=APPLIED),)


def _apply_to_policy(session: Writer, due: DueChange, _: ExchangeRates) -> WriteOutcome:
    if due.document is None:
        return policies.remove_policy(session, due.tenant_id, due.resource_id)
    body = ApprovalPolicyRequest.model_validate_json(due.document)
    return policies.store_policy(session, due.tenant_id, body, due.proposed_by)


def _apply_to_settings(session: Writer, due: DueChange, _: ExchangeRates) -> WriteOutcome:
    settings = repository.lock_settings(session, due.tenant_id, DEFAULT_DELAY_SECONDS)
    return _store_settings(session, settings, ApprovalSettingsValues.model_validate_json(due.document or ""))


_APPLIERS: Final[ChangeAppliers] = {
    "approval-policies": _apply_to_policy,
    "approval-settings": _apply_to_settings,
}


def _end_change(session: Writer, row: PolicyChangeRow, end: _ChangeEnd) -> None:
    row.state, row.ended_by, row.ended_at = end.state, end.by, leases.read_database_time(session)
    row.version += 1
    is_effective = end.state == EFFECTIVE
    write_event(
        session,
        row,
        WebhookEventType.POLICY_CHANGE_EFFECTIVE if is_effective else WebhookEventType.POLICY_CHANGE_REJECTED,
    )
    session.flush()


def get_settings(session: Reader, tenant_id: str) -> dict[str, Any]:
    """Returns the settings of a tenant for changes."""
    row = repository.get_settings(session, tenant_id)
    if row is None:
        return {"change_delay_seconds": DEFAULT_DELAY_SECONDS, "version": 1}
    return _settings_to_response(row)


def _settings_to_response(row: ApprovalSettingsRow) -> dict[str, Any]:
    return {"change_delay_seconds": row.change_delay_seconds, "version": row.version}


def change_settings(
    session: Writer, subject: Principal, patch: dict[str, Any], if_match: str
) -> WriteOutcome:
    """Changes the delay. A shorter one must be approved or wait for the end of the current delay."""
    guarded, tenant_id = lock_guard(session, subject.tenant_id), subject.tenant_id
    row = guarded.settings
    check_version_match(if_match, build_etag(row.version))
    check_not_waiting(session, tenant_id, SETTINGS)
    known = {"change_delay_seconds": row.change_delay_seconds}
    body = ApprovalSettingsValues.model_validate({**known, **patch})
    if guarded.waits and body.change_delay_seconds < row.change_delay_seconds:
        return propose_change(
            session, subject, guarded, ProposedChange(SETTINGS, body.model_dump_json(), row.version)
        )
    return _store_settings(session, row, body)


def _store_settings(session: Writer, row: ApprovalSettingsRow, body: ApprovalSettingsValues) -> WriteOutcome:
    before = _settings_to_response(row)
    row.change_delay_seconds, row.version = body.change_delay_seconds, row.version + 1
    session.flush()
    after = _settings_to_response(row)
    return WriteOutcome(
        resource=SETTINGS, body=after, headers={"ETag": build_etag(row.version)}, before=before, after=after
    )


def settle_due_changes(
    database: Database,
    writes: Writes,
    tenant_id: str,
    rates_of: Callable[[str], ExchangeRates],
    appliers: ChangeAppliers,
) -> int:
    """Applies the due changes of a tenant on behalf of the service. Returns their number."""
    with database.open_reader() as session:
        is_due = repository.list_due_ids(session, tenant_id, leases.read_database_time(session))
    if not is_due:
        return 0
    rates = rates_of(tenant_id)
    with database.open_writer() as session:
        applied = apply_due_changes(session, tenant_id, rates, appliers)
        for change in applied:
            writes.record_own_change(session, tenant_id, APPLIED, change)
    return len(applied)


Appliers = Annotated[ChangeAppliers, from_state("change_appliers")]


def _settle(
    transactions: TransactionSource, tenant_id: str, snapshots: SnapshotStore, appliers: ChangeAppliers
) -> None:
    settle_due_changes(
        transactions.database,
        transactions.writes,
        tenant_id,
        lambda tenant_id: snapshots.newest(tenant_id).exchange_rates,
        appliers,
    )


def _settled_read(read: Read, snapshots: Snapshots, appliers: Appliers) -> ReadRequest:
    _settle(read.transactions, read.tenant_id, snapshots, appliers)
    return read


def _settled_write(write: Write, snapshots: Snapshots, appliers: Appliers) -> WriteRequest:
    _settle(write.transactions, write.tenant_id, snapshots, appliers)
    return write


SettledRead = Annotated[ReadRequest, Depends(_settled_read)]
SettledWrite = Annotated[WriteRequest, Depends(_settled_write)]
"""Requests before which the due changes of their tenant take effect."""


def list_due_tenants(session: Reader) -> Sequence[str]:
    """Returns the tenants with due changes."""
    return repository.list_due_tenants(session, leases.read_database_time(session))


def find_deviations(session: Reader, tenant_id: str) -> Iterator[tuple[str, str]]:
    """Yields changes and settings that differ from their last audit event."""
    rows = ((row.id, to_audit_columns(row)) for row in repository.list_all_changes(session, tenant_id))
    yield from audit.find_deviations(session, tenant_id, "policy-changes", rows)
    row = repository.get_settings(session, tenant_id)
    # A row that was only created for its lock has default values.
    own = []
    if row is not None and (row.version, row.change_delay_seconds) != (1, DEFAULT_DELAY_SECONDS):
        own.append((SETTINGS.partition("/")[2], _settings_to_response(row)))
    yield from audit.find_deviations(session, tenant_id, "approval-settings", own)
