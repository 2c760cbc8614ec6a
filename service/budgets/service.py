"""Rules of budgets: creation, change, deletion, and representation with usage."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome
from service.budgets import repository
from service.budgets.errors import BudgetContradicts, BudgetExists, BudgetInUse, BudgetNotFound
from service.budgets.focus import render_charges_csv
from service.budgets.money import to_micros, to_money
from service.budgets.repository import QuoteCommitment
from service.budgets.schemas import BudgetRequest
from service.budgets.tables import BudgetRow
from service.budgets.thresholds import emit_threshold_events, reset_thresholds, to_recorded_columns
from service.budgets.usage import (
    BudgetTake,
    BudgetUsage,
    compute_take,
    compute_usage,
    compute_usages,
)
from service.cost_centers import service as cost_centers
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.kit.http.versions import build_etag, check_version_match
from service.kit.security.principals import Principal
from service.planning.cost.exchange import ExchangeRates
from service.planning.errors import PlanningError
from service.policies.changes.waiting import (
    ChangeAppliers,
    DueChange,
    ProposedChange,
    check_not_waiting,
    lock_guard,
    propose_change,
)
from service.policies.people import resolve_authors
from service.resolve.catalog import CatalogView
from service.schemas.budgets import BudgetTerms
from service.schemas.tariffs import parse_day

_COMMITMENTS_SHOWN: Final = 100
_FIRST_YEAR: Final = 2000
_LAST_YEAR: Final = 2199
"""Range of years of all dates in requests, which every clock can represent."""


_MEMBERS: Final = (
    *("id", "name", "note", "cost_center_id", "starts_on", "ends_on", "thresholds", "enforcement"),
    *("version", "created_at"),
)


def to_terms(budget: BudgetRow) -> dict[str, Any]:
    """Returns the terms of a budget."""
    members = {name: value for name in _MEMBERS if (value := getattr(budget, name)) is not None}
    return members | {"amount": to_money(budget.amount_micros, budget.currency_code)}


def to_summary(budget: BudgetRow, usage: BudgetUsage) -> dict[str, Any]:
    """Returns the representation of a budget with its usage."""
    currency = budget.currency_code
    return to_terms(budget) | {
        "committed": to_money(usage.committed_micros, currency),
        "spent": to_money(usage.spent_micros, currency),
        "outstanding": to_money(usage.outstanding_micros, currency),
        "remaining": to_money(budget.amount_micros - usage.compute_taken(), currency),
        "gaps": list(usage.gaps),
    }


def to_detail(session: Session, budget: BudgetRow, catalog: CatalogView) -> dict[str, Any]:
    """Returns a budget with its latest commitments."""
    rates = catalog.exchange_rates
    found = repository.list_commitments(session, budget, with_released=True, limit=_COMMITMENTS_SHOWN)
    commitments = [_commitment_to_response(budget, each, rates) for each in found]
    return to_summary(budget, compute_usage(session, budget, rates)) | {"commitments": commitments}


def _commitment_to_response(
    budget: BudgetRow, commitment: QuoteCommitment, rates: ExchangeRates
) -> dict[str, Any]:
    names = ("approval_id", "quote_id", "quote_version", "committed_at", "released_at")
    document = {name: value for name in names if (value := getattr(commitment, name)) is not None}
    if commitment.micros is not None and commitment.currency_code is not None:
        document["quoted"] = to_money(commitment.micros, commitment.currency_code)
    take = compute_take(budget, commitment, rates)
    if isinstance(take, BudgetTake):
        document |= {"amount": to_money(take.micros, budget.currency_code), "rate": f"{take.rate:f}"}
        document["rate_on"] = take.rate_on.isoformat()
    return document


def get_budget(session: Reader, tenant_id: str, budget_id: str, catalog: CatalogView) -> dict[str, Any]:
    """Returns one budget."""
    budget = repository.get_budget(session, tenant_id, budget_id)
    if budget is None:
        raise BudgetNotFound
    return to_detail(session, budget, catalog)


def render_focus_csv(session: Reader, tenant_id: str, budget_id: str) -> str:
    """Returns commitments and charges of a budget as CSV in the columns of FOCUS."""
    budget = repository.get_budget(session, tenant_id, budget_id)
    if budget is None:
        raise BudgetNotFound
    return render_charges_csv(session, budget)


def list_summaries(session: Reader, rows: Sequence[BudgetRow], catalog: CatalogView) -> list[dict[str, Any]]:
    """Returns the representations of budgets in lists."""
    usages = compute_usages(session, rows, catalog.exchange_rates)
    return [to_summary(row, usages[row.id]) for row in rows]


def create_budget(session: Writer, tenant_id: str, body: BudgetRequest, catalog: CatalogView) -> WriteOutcome:
    """Stores a new budget. Existing commitments and charges in its period count."""
    if not cost_centers.lock_cost_center(session, tenant_id, body.cost_center_id):
        raise _build_unknown_center()
    if repository.get_budget(session, tenant_id, body.id) is not None:
        raise BudgetExists("", FieldError("/id", "TAKEN", "a budget with this id exists"))
    _check_days(body)
    members = body.model_dump(mode="json", exclude={"amount"})
    members |= {"tenant_id": tenant_id, "version": 1, "created_at": now(), "told": []}
    budget = BudgetRow(**members, **_to_amount_columns(body))
    session.add(budget)
    session.flush()
    emit_threshold_events(session, budget, catalog.exchange_rates)
    path, document = f"budgets/{budget.id}", to_detail(session, budget, catalog)
    headers = {"ETag": build_etag(budget.version), "Location": f"/v1/{path}"}
    return WriteOutcome(
        resource=path, status=201, body=document, headers=headers, after=to_recorded_columns(budget)
    )


def _build_unknown_center() -> BudgetContradicts:
    detail = "there is no cost centre with this id"
    return BudgetContradicts("", FieldError("/cost_center_id", "UNKNOWN_REFERENCE", detail))


def _check_days(body: BudgetRequest) -> None:
    try:
        first, last = parse_day(body.starts_on, "/starts_on"), parse_day(body.ends_on, "/ends_on")
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise BudgetContradicts("", field) from error
    if not _FIRST_YEAR <= first.year <= last.year <= _LAST_YEAR and last >= first:
        detail = f"a budget must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}"
        raise BudgetContradicts("", FieldError("/ends_on", "DAY_UNKNOWN", detail))
    if last < first:
        raise BudgetContradicts("", FieldError("/ends_on", "BEFORE_START", "must not be before starts_on"))


def _to_amount_columns(body: BudgetTerms) -> dict[str, Any]:
    amount = body.amount
    return {"amount_micros": to_micros(Decimal(amount.amount)), "currency_code": amount.currency_code}


def change_budget(
    session: Writer,
    subject: Principal,
    budget_id: str,
    *,
    patch: dict[str, Any],
    if_match: str,
    catalog: CatalogView,
) -> WriteOutcome:
    """Stores members of ``patch``, or proposes the change if it loosens the budget."""
    guarded, resource = lock_guard(session, subject.tenant_id), f"budgets/{budget_id}"
    budget = _lock_matching_row(session, subject.tenant_id, budget_id, if_match)
    check_not_waiting(session, subject.tenant_id, resource)
    known = to_terms(budget)
    sent = {name: known[name] for name in BudgetTerms.model_fields if name in known} | patch
    merged = {name: value for name, value in sent.items() if value is not None}
    body = BudgetTerms.model_validate_json(json.dumps(merged))
    if body.amount.currency_code != budget.currency_code:
        detail = "the currency of a budget cannot change"
        raise BudgetContradicts("", FieldError("/amount/currency_code", "CURRENCY_FIXED", detail))
    if guarded.waits and _is_looser(budget, body):
        wanted = ProposedChange(resource, body.model_dump_json(), budget.version, budget.cost_center_id)
        return propose_change(session, subject, guarded, wanted)
    changed = _apply_terms(session, budget, body, subject.name, catalog.exchange_rates)
    return replace(changed, body=to_detail(session, budget, catalog))


def _is_looser(budget: BudgetRow, body: BudgetTerms) -> bool:
    """Returns true if new terms may admit quotes that the current ones refuse."""
    is_weaker = budget.enforcement == "block" and body.enforcement != "block"
    return is_weaker or _to_amount_columns(body)["amount_micros"] > budget.amount_micros


def _apply_terms(
    session: Writer, budget: BudgetRow, body: BudgetTerms, author: str, rates: ExchangeRates
) -> WriteOutcome:
    """Applies terms to a budget. Thresholds that are no longer reached may be reported again."""
    before = to_recorded_columns(budget)
    if _is_looser(budget, body):
        budget.raised_by = resolve_authors(session, budget.tenant_id, author, budget.raised_by or ())
    members = body.model_dump(mode="json", exclude={"amount"})
    for name in BudgetTerms.model_fields.keys() - {"amount"}:
        setattr(budget, name, members.get(name))
    budget.amount_micros = _to_amount_columns(body)["amount_micros"]
    budget.version += 1
    reset_thresholds(session, budget, rates)
    emit_threshold_events(session, budget, rates)
    session.flush()
    after, headers = to_recorded_columns(budget), {"ETag": build_etag(budget.version)}
    return WriteOutcome(resource=f"budgets/{budget.id}", headers=headers, before=before, after=after)


def delete_budget(session: Writer, subject: Principal, budget_id: str, if_match: str) -> WriteOutcome:
    """Deletes a budget without commitments, or proposes its deletion."""
    guarded, resource = lock_guard(session, subject.tenant_id), f"budgets/{budget_id}"
    budget = _lock_matching_row(session, subject.tenant_id, budget_id, if_match)
    check_not_waiting(session, subject.tenant_id, resource)
    if _is_committed(session, budget):
        raise BudgetInUse
    if guarded.waits:
        wanted = ProposedChange(resource, None, budget.version, budget.cost_center_id)
        return propose_change(session, subject, guarded, wanted)
    return _remove_budget(session, budget)


def _is_committed(session: Writer, budget: BudgetRow) -> bool:
    return bool(repository.list_commitments(session, budget, limit=1))


def _remove_budget(session: Writer, budget: BudgetRow) -> WriteOutcome:
    before = to_recorded_columns(budget)
    session.delete(budget)
    session.flush()
    return WriteOutcome(resource=f"budgets/{budget.id}", status=204, before=before)


def _apply_change(session: Writer, due: DueChange, rates: ExchangeRates) -> WriteOutcome | None:
    budget = repository.get_budget(session, due.tenant_id, due.resource_id)
    if budget is None or (due.document is None and _is_committed(session, budget)):
        return None
    if due.document is None:
        return _remove_budget(session, budget)
    return _apply_terms(
        session, budget, BudgetTerms.model_validate_json(due.document), due.proposed_by, rates
    )


APPLIERS: Final[ChangeAppliers] = {"budgets": _apply_change}
"""Makes the changes of budgets that have waited."""


def _lock_matching_row(session: Writer, tenant_id: str, budget_id: str, if_match: str) -> BudgetRow:
    found = repository.get_budget(session, tenant_id, budget_id)
    if found is not None:
        cost_centers.lock_cost_center(session, tenant_id, found.cost_center_id)
        # It may have changed before the lock was granted.
        found = repository.get_budget(session, tenant_id, budget_id)
    if found is None:
        raise BudgetNotFound
    check_version_match(if_match, build_etag(found.version))
    return found


def list_audit_documents(session: Reader, tenant_id: str) -> Iterator[tuple[str, object]]:
    """Yields the state of every budget for comparison with its last audit event, by id."""
    return (
        (row.id, to_recorded_columns(row)) for row in repository.list_after(session, tenant_id, "", (), None)
    )


def is_center_used(session: Writer, tenant_id: str, center_id: str) -> bool:
    """Returns true if a cost centre has budgets or commitments."""
    return bool(
        repository.list_by_centers(session, tenant_id, [center_id])
        or repository.has_commitments(session, tenant_id, center_id)
    )
