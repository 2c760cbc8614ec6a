"""Commitments of approvals to budgets: estimated at submission, made at the approval, released later.

A commitment belongs to the approval, in the currency of its quote. Commitments and changes of budgets lock
the cost centre, so that two approvals never take the same money.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from service.audit.service import WriteOutcome
from service.budgets import repository
from service.budgets.errors import AmountTooLarge, BudgetExceeded, CostCenterUnknown
from service.budgets.money import MOST_MICROS, to_micros, to_money
from service.budgets.periods import Period, build_period, prorate_amount, resolve_due_period
from service.budgets.repository import QuoteCommitment, SpentAmount
from service.budgets.schemas import BudgetEffect
from service.budgets.service import APPLIERS
from service.budgets.tables import BudgetRow, CommitmentRow
from service.budgets.thresholds import emit_threshold_events
from service.budgets.usage import (
    BudgetTake,
    BudgetUsage,
    compute_take,
    compute_usages,
    convert_spent,
)
from service.cost_centers import service as cost_centers
from service.kit.clock import now
from service.kit.database.engine import Writer
from service.kit.http.problems import FieldError
from service.planning.cost.exchange import ExchangeRates
from service.policies.changes.service import apply_due_changes
from service.policies.people import is_author
from service.schemas.base import MoneyAmount


class _BudgetShare(NamedTuple):
    """Amount that a quote takes from a budget. ``unknown`` is the code of the reason if it is unknown."""

    budget: BudgetRow
    quote_id: str
    usage: BudgetUsage
    take: BudgetTake | None
    unknown: str


def estimate_budget_effects(
    session: Session, tenant_id: str, quote: Mapping[str, Any], rates: ExchangeRates
) -> list[BudgetEffect]:
    """Returns the effect of a quote's approval on each budget of its cost centre."""
    center_id = quote.get("cost_center_id")
    if center_id is not None and not cost_centers.is_known(session, tenant_id, center_id):
        raise CostCenterUnknown
    planned = _build_commitment(quote, "", now())
    return [_effect_to_response(each) for each in _build_parts(session, tenant_id, center_id, planned, rates)]


def commit_budgets(
    session: Writer, row: CommitmentRow, quote: Mapping[str, Any], at: datetime, rates: ExchangeRates
) -> tuple[list[BudgetEffect], tuple[WriteOutcome, ...]]:
    """Makes the commitment of a quote. Refuses if a blocking budget is exceeded.

    Returns the effects on budgets, and other changes that it made.
    """
    center_id = row.cost_center_id
    if center_id is not None and not cost_centers.lock_cost_center(session, row.tenant_id, center_id):
        raise CostCenterUnknown
    applied: tuple[WriteOutcome, ...] = ()
    if center_id is not None:
        applied = apply_due_changes(session, row.tenant_id, rates, APPLIERS, center_id)
    commitment = _build_commitment(quote, row.id, at)
    parts = _build_parts(session, row.tenant_id, center_id, commitment, rates)
    shown = [_effect_to_response(each) for each in parts]
    refused = [effect for effect in shown if effect["blocks"] and effect["is_exceeded"]]
    if refused:
        raise BudgetExceeded("", *(_build_reason(effect) for effect in refused))
    if commitment.micros is not None and abs(commitment.micros) >= MOST_MICROS:
        raise AmountTooLarge
    row.committed_at, row.due_from, row.due_until = at, *commitment.due
    row.committed_micros, row.committed_currency_code = commitment.micros, commitment.currency_code
    session.flush()
    told = (emit_threshold_events(session, each.budget, rates, row.id) for each in parts)
    return shown, (*applied, *(change for change in told if change is not None))


def list_raised_budgets(
    session: Writer, tenant_id: str, quote: Mapping[str, Any], names: Collection[str]
) -> list[str]:
    """Returns the ids of a quote's budgets that one of ``names``, or somebody they act for, has raised."""
    due = resolve_due_period(quote, now())
    meeting = _list_meeting_budgets(session, tenant_id, quote.get("cost_center_id"), due)
    return [each.id for each in meeting if is_author(session, tenant_id, each.raised_by or (), names)]


def release_commitment(row: CommitmentRow, at: datetime) -> None:
    """Releases the unbilled rest of an approval's commitment."""
    if row.committed_at is not None and row.released_at is None:
        row.released_at = at


def to_response(row: CommitmentRow) -> dict[str, Any]:
    """Returns the representation of an approval's commitment, without members if it has none."""
    if row.committed_micros is None or row.committed_currency_code is None:
        return {}
    names = ("committed_at", "due_from", "due_until", "released_at")
    times = {name: value for name in names if (value := getattr(row, name)) is not None}
    return {"amount": to_money(row.committed_micros, row.committed_currency_code)} | times


def compute_outstanding(session: Session, row: CommitmentRow, rates: ExchangeRates) -> MoneyAmount | None:
    """Returns the committed amount of an approval that is not yet billed, or None if unknown."""
    if row.committed_micros is None or row.committed_currency_code is None:
        return None
    if row.released_at is not None:
        return to_money(0, row.committed_currency_code)
    spent = _sum_spent(repository.list_quote_spent(session, row.tenant_id, row.quote_id), row, rates)
    left = None if spent is None else max(0, row.committed_micros - spent)
    return None if left is None else to_money(left, row.committed_currency_code)


def _sum_spent(spent: Sequence[SpentAmount], row: CommitmentRow, rates: ExchangeRates) -> int | None:
    amounts = [convert_spent(each, row.committed_currency_code or "", rates) for each in spent]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _build_commitment(quote: Mapping[str, Any], approval_id: str, at: datetime) -> QuoteCommitment:
    total = quote["headlines"].get("total")
    return QuoteCommitment(
        approval_id,
        quote["id"],
        quote["version"],
        None if total is None else to_micros(Decimal(total["amount"])),
        None if total is None else total["currency_code"],
        at,
        resolve_due_period(quote, at),
    )


def _build_parts(
    session: Session, tenant_id: str, center_id: str | None, commitment: QuoteCommitment, rates: ExchangeRates
) -> list[_BudgetShare]:
    """Returns the shares of budgets whose periods overlap the due period."""
    meeting = _list_meeting_budgets(session, tenant_id, center_id, commitment.due)
    usages = compute_usages(session, meeting, rates)
    return [_build_part(each, usages[each.id], commitment, rates) for each in meeting]


def _list_meeting_budgets(
    session: Session, tenant_id: str, center_id: str | None, due: Period
) -> list[BudgetRow]:
    budgets = [] if center_id is None else repository.list_by_centers(session, tenant_id, [center_id])
    return [
        each
        for each in budgets
        if prorate_amount(0, due, build_period(each.starts_on, each.ends_on)) is not None
    ]


def _build_part(
    budget: BudgetRow, usage: BudgetUsage, commitment: QuoteCommitment, rates: ExchangeRates
) -> _BudgetShare:
    take = compute_take(budget, commitment, rates)
    if not isinstance(take, BudgetTake):
        return _BudgetShare(budget, commitment.quote_id, usage, None, take)
    unknown = usage.gaps[0]["code"] if usage.gaps else ""
    return _BudgetShare(budget, commitment.quote_id, usage, take, unknown)


def _effect_to_response(each: _BudgetShare) -> BudgetEffect:
    budget, currency = each.budget, each.budget.currency_code
    blocks = budget.enforcement == "block"
    effect: BudgetEffect = {"budget_id": budget.id, "is_exceeded": True, "blocks": blocks}
    if each.take is not None:
        effect["amount"] = to_money(each.take.micros, currency)
    if each.take is None or each.unknown:
        effect["unknown"] = each.unknown
        return effect
    taken = each.usage.compute_taken(each.quote_id, each.take.micros)
    left = budget.amount_micros - taken
    effect["remaining_before"] = to_money(budget.amount_micros - each.usage.compute_taken(), currency)
    effect["remaining_after"] = to_money(left, currency)
    effect["is_exceeded"] = left < 0
    return effect


def _build_reason(effect: BudgetEffect) -> FieldError:
    """Returns the reason why a budget refuses a quote."""
    name = f"the budget {effect['budget_id']}"
    if "unknown" in effect:
        return FieldError("", effect["unknown"], f"the amount that the quote takes from {name} is unknown")
    return FieldError("", "BUDGET_EXCEEDED", f"{name} has less left than the quote takes")
