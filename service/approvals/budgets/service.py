"""The rules of budgets: made, changed, deleted, and shown with what is taken of them."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from sqlalchemy.orm import Session

from service.approvals.budgets import repository
from service.approvals.budgets.errors import BudgetContradicts, BudgetExists, BudgetInUse, BudgetNotFound
from service.approvals.budgets.focus import charges_csv
from service.approvals.budgets.money import micros, money
from service.approvals.budgets.repository import Commitment
from service.approvals.budgets.schemas import BudgetInput, BudgetTerms
from service.approvals.budgets.tables import BudgetRow
from service.approvals.budgets.thresholds import forget, recorded_columns, tell
from service.approvals.budgets.usage import Take, Usage, take_of, usage_of, usages_of
from service.approvals.changes.authors import authors
from service.approvals.changes.waiting import Wanted, check_free, guard, propose
from service.approvals.cost_centers import repository as cost_centers
from service.audit.service import Change
from service.kit.clock import now
from service.kit.database.engine import Reader, Writer
from service.kit.http.problems import FieldError
from service.kit.http.versions import check_match, etag
from service.kit.security.subjects import Subject
from service.planning.cost.exchange import ExchangeRates
from service.planning.errors import PlanningError
from service.resolve.catalog import CatalogView
from service.schemas.tariffs import day

_COMMITMENTS_SHOWN: Final = 100
_FIRST_YEAR: Final = 2000
_LAST_YEAR: Final = 2199
"""Like all times that callers send: no clock leaves its range."""


_MEMBERS: Final = (
    *("id", "name", "note", "cost_center_id", "starts_on", "ends_on", "thresholds", "enforcement"),
    *("version", "created_at"),
)


def terms(budget: BudgetRow) -> dict[str, Any]:
    """A budget as it was written."""
    members = {name: value for name in _MEMBERS if (value := getattr(budget, name)) is not None}
    return members | {"amount": money(budget.amount_micros, budget.currency_code)}


def shown(budget: BudgetRow, usage: Usage) -> dict[str, Any]:
    """A budget as callers see it, with what is taken of it."""
    currency = budget.currency_code
    return terms(budget) | {
        "committed": money(usage.committed_micros, currency),
        "spent": money(usage.spent_micros, currency),
        "outstanding": money(usage.outstanding_micros, currency),
        "remaining": money(budget.amount_micros - usage.taken(), currency),
        "gaps": list(usage.gaps),
    }


def whole(session: Session, budget: BudgetRow, catalog: CatalogView) -> dict[str, Any]:
    """A budget with what was committed of it last."""
    rates = catalog.exchange_rates
    found = repository.commitments(session, budget, with_released=True, limit=_COMMITMENTS_SHOWN)
    commitments = [_shown_commitment(budget, each, rates) for each in found]
    return shown(budget, usage_of(session, budget, rates)) | {"commitments": commitments}


def _shown_commitment(budget: BudgetRow, commitment: Commitment, rates: ExchangeRates) -> dict[str, Any]:
    names = ("approval_id", "quote_id", "quote_version", "committed_at", "released_at")
    document = {name: value for name in names if (value := getattr(commitment, name)) is not None}
    if commitment.micros is not None and commitment.currency_code is not None:
        document["quoted"] = money(commitment.micros, commitment.currency_code)
    take = take_of(budget, commitment, rates)
    if isinstance(take, Take):
        document |= {"amount": money(take.micros, budget.currency_code), "rate": f"{take.rate:f}"}
        document["rate_on"] = take.rate_on.isoformat()
    return document


def get(session: Reader, tenant_id: str, budget_id: str, catalog: CatalogView) -> dict[str, Any]:
    """One budget."""
    budget = repository.get(session, tenant_id, budget_id)
    if budget is None:
        raise BudgetNotFound
    return whole(session, budget, catalog)


def focus(session: Reader, tenant_id: str, budget_id: str) -> str:
    """What is committed and charged of a budget, as CSV in the columns of FOCUS."""
    budget = repository.get(session, tenant_id, budget_id)
    if budget is None:
        raise BudgetNotFound
    return charges_csv(session, budget)


def page(session: Reader, rows: Sequence[BudgetRow], catalog: CatalogView) -> list[dict[str, Any]]:
    """Budgets as lists show them."""
    usages = usages_of(session, rows, catalog.exchange_rates)
    return [shown(row, usages[row.id]) for row in rows]


def create(session: Writer, tenant_id: str, body: BudgetInput, catalog: CatalogView) -> Change:
    """Store a new budget; what is committed and spent in its period already counts."""
    if cost_centers.locked(session, tenant_id, body.cost_center_id) is None:
        raise _unknown_center()
    if repository.get(session, tenant_id, body.id) is not None:
        raise BudgetExists("", FieldError("/id", "TAKEN", "a budget of this id exists"))
    _check_days(body)
    members = body.model_dump(mode="json", exclude={"amount"})
    members |= {"tenant_id": tenant_id, "version": 1, "created_at": now(), "told": []}
    budget = BudgetRow(**members, **_amount(body))
    session.add(budget)
    session.flush()
    tell(session, budget, catalog.exchange_rates)
    path, document = f"budgets/{budget.id}", whole(session, budget, catalog)
    headers = {"ETag": etag(budget.version), "Location": f"/v1/{path}"}
    return Change(resource=path, status=201, body=document, headers=headers, after=recorded_columns(budget))


def _unknown_center() -> BudgetContradicts:
    detail = "there is no cost centre of this id"
    return BudgetContradicts("", FieldError("/cost_center_id", "UNKNOWN_REFERENCE", detail))


def _check_days(body: BudgetInput) -> None:
    try:
        first, last = day(body.starts_on, "/starts_on"), day(body.ends_on, "/ends_on")
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise BudgetContradicts("", field) from error
    if not _FIRST_YEAR <= first.year <= last.year <= _LAST_YEAR and last >= first:
        detail = f"a budget is of the years {_FIRST_YEAR} to {_LAST_YEAR}"
        raise BudgetContradicts("", FieldError("/ends_on", "DAY_UNKNOWN", detail))
    if last < first:
        raise BudgetContradicts("", FieldError("/ends_on", "BEFORE_START", "it ends before it starts"))


def _amount(body: BudgetTerms) -> dict[str, Any]:
    amount = body.amount
    return {"amount_micros": micros(Decimal(amount.amount)), "currency_code": amount.currency_code}


def change(
    session: Writer,
    subject: Subject,
    budget_id: str,
    *,
    patch: dict[str, Any],
    if_match: str,
    catalog: CatalogView,
) -> Change:
    """Store members of ``patch``, or let them wait where they let more pass."""
    guarded, resource = guard(session, subject.tenant_id), f"budgets/{budget_id}"
    budget = _matched(session, subject.tenant_id, budget_id, if_match)
    check_free(session, subject.tenant_id, resource)
    known = terms(budget)
    sent = {name: known[name] for name in BudgetTerms.model_fields if name in known} | patch
    merged = {name: value for name, value in sent.items() if value is not None}
    body = BudgetTerms.model_validate_json(json.dumps(merged))
    if body.amount.currency_code != budget.currency_code:
        detail = "a budget keeps its currency"
        raise BudgetContradicts("", FieldError("/amount/currency_code", "CURRENCY_FIXED", detail))
    if guarded.waits and _loosens(budget, body):
        wanted = Wanted(resource, body.model_dump_json(), budget.version, budget.cost_center_id)
        return propose(session, subject, guarded, wanted)
    changed = put(session, budget, body, subject.name, catalog.exchange_rates)
    return replace(changed, body=whole(session, budget, catalog))


def _loosens(budget: BudgetRow, body: BudgetTerms) -> bool:
    """Whether terms may let pass what those that stand do not."""
    is_weaker = budget.enforcement == "block" and body.enforcement != "block"
    return is_weaker or _amount(body)["amount_micros"] > budget.amount_micros


def put(session: Writer, budget: BudgetRow, body: BudgetTerms, author: str, rates: ExchangeRates) -> Change:
    """Let a budget have terms; under another amount what is no longer reached may be told of again."""
    before = recorded_columns(budget)
    if _loosens(budget, body):
        budget.raised_by = authors(session, budget.tenant_id, author, budget.raised_by or ())
    members = body.model_dump(mode="json", exclude={"amount"})
    for name in BudgetTerms.model_fields.keys() - {"amount"}:
        setattr(budget, name, members.get(name))
    budget.amount_micros = _amount(body)["amount_micros"]
    budget.version += 1
    forget(session, budget, rates)
    tell(session, budget, rates)
    session.flush()
    after, headers = recorded_columns(budget), {"ETag": etag(budget.version)}
    return Change(resource=f"budgets/{budget.id}", headers=headers, before=before, after=after)


def delete(session: Writer, subject: Subject, budget_id: str, if_match: str) -> Change:
    """No such budget any more, or once that has waited; one of which approvals have committed stays."""
    guarded, resource = guard(session, subject.tenant_id), f"budgets/{budget_id}"
    budget = _matched(session, subject.tenant_id, budget_id, if_match)
    check_free(session, subject.tenant_id, resource)
    if is_committed(session, budget):
        raise BudgetInUse
    if guarded.waits:
        wanted = Wanted(resource, None, budget.version, budget.cost_center_id)
        return propose(session, subject, guarded, wanted)
    return drop(session, budget)


def is_committed(session: Writer, budget: BudgetRow) -> bool:
    """Whether approvals have committed of a budget: it stays then."""
    return bool(repository.commitments(session, budget, limit=1))


def drop(session: Writer, budget: BudgetRow) -> Change:
    """No such budget any more."""
    before = recorded_columns(budget)
    session.delete(budget)
    session.flush()
    return Change(resource=f"budgets/{budget.id}", status=204, before=before)


def _matched(session: Writer, tenant_id: str, budget_id: str, if_match: str) -> BudgetRow:
    found = repository.get(session, tenant_id, budget_id)
    if found is not None:
        cost_centers.locked(session, tenant_id, found.cost_center_id)
        # It may have changed or gone before the lock was there.
        found = repository.get(session, tenant_id, budget_id)
    if found is None:
        raise BudgetNotFound
    check_match(if_match, etag(found.version))
    return found


def recorded(session: Reader, tenant_id: str) -> Iterator[tuple[str, object]]:
    """Every budget as its last event has to say it is, by id."""
    return ((row.id, recorded_columns(row)) for row in repository.after(session, tenant_id, "", (), None))


def is_used(session: Writer, tenant_id: str) -> Callable[[str], bool]:
    """Whether budgets or commitments are of a cost centre."""
    return lambda center_id: bool(
        repository.of_centers(session, tenant_id, [center_id])
        or repository.has_commitments(session, tenant_id, center_id)
    )
