"""What approvals take of budgets: told when they are asked for, committed when they are made, released.

A commitment is a fact of the approval, in the currency of its quote. Whoever commits for a cost centre locks
it, and so does whoever writes a budget of it: two approvals never take the same money.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from service.approvals.budgets import repository
from service.approvals.budgets.errors import AmountTooLarge, BudgetExceeded
from service.approvals.budgets.money import MOST_MICROS, micros, money
from service.approvals.budgets.periods import Period, days, due_of, part
from service.approvals.budgets.repository import Commitment, Spent
from service.approvals.budgets.tables import BudgetRow
from service.approvals.budgets.thresholds import tell
from service.approvals.budgets.usage import Take, Usage, converted, take_of, usages_of
from service.approvals.changes.authors import is_author
from service.approvals.changes.service import apply_due
from service.approvals.cost_centers import repository as cost_centers
from service.approvals.cost_centers.errors import CostCenterUnknown
from service.approvals.schemas import BudgetEffect
from service.approvals.tables import ApprovalRow
from service.audit.service import Change
from service.kit.clock import now
from service.kit.database.engine import Writer
from service.kit.http.problems import FieldError
from service.planning.cost.exchange import ExchangeRates
from service.schemas.base import MoneyAmount


class _Part(NamedTuple):
    """A budget and what a quote takes of it; ``unknown`` says why nobody can tell that or what is left."""

    budget: BudgetRow
    quote_id: str
    usage: Usage
    take: Take | None
    unknown: str


def effects(
    session: Session, tenant_id: str, quote: Mapping[str, Any], rates: ExchangeRates
) -> list[BudgetEffect]:
    """What the approval of a quote would take of each budget of its cost centre."""
    center_id = quote.get("cost_center_id")
    if center_id is not None and cost_centers.get(session, tenant_id, center_id) is None:
        raise CostCenterUnknown
    planned = _commitment(quote, "", now())
    return [_shown(each) for each in _parts(session, tenant_id, center_id, planned, rates)]


def commit(
    session: Writer, row: ApprovalRow, quote: Mapping[str, Any], at: datetime, rates: ExchangeRates
) -> tuple[list[BudgetEffect], tuple[Change, ...]]:
    """Commit what a quote needs; refuses what a budget that blocks has not left. Second: what it told."""
    center_id = row.cost_center_id
    if center_id is not None and cost_centers.locked(session, row.tenant_id, center_id) is None:
        raise CostCenterUnknown
    applied = () if center_id is None else apply_due(session, row.tenant_id, rates, center_id)
    commitment = _commitment(quote, row.id, at)
    parts = _parts(session, row.tenant_id, center_id, commitment, rates)
    shown = [_shown(each) for each in parts]
    refused = [effect for effect in shown if effect["blocks"] and effect["is_exceeded"]]
    if refused:
        raise BudgetExceeded("", *(_reason(effect) for effect in refused))
    if commitment.micros is not None and abs(commitment.micros) >= MOST_MICROS:
        raise AmountTooLarge
    row.committed_at, row.due_from, row.due_until = at, *commitment.due
    row.committed_micros, row.committed_currency_code = commitment.micros, commitment.currency_code
    session.flush()
    told = (tell(session, each.budget, rates, row.id) for each in parts)
    return shown, (*applied, *(change for change in told if change is not None))


def raised(session: Writer, tenant_id: str, quote: Mapping[str, Any], names: Collection[str]) -> list[str]:
    """Ids of the budgets that a quote takes of and that one of ``names``, or who they act for, has raised."""
    due = due_of(quote, now())
    meeting = _meeting(session, tenant_id, quote.get("cost_center_id"), due)
    return [each.id for each in meeting if is_author(session, tenant_id, each.raised_by or (), names)]


def release(row: ApprovalRow, at: datetime) -> None:
    """Give back what an approval has committed and nobody has billed."""
    if row.committed_at is not None and row.released_at is None:
        row.released_at = at


def outstanding(session: Session, row: ApprovalRow, rates: ExchangeRates) -> MoneyAmount | None:
    """What an approval has committed and nobody has billed yet; None where nobody can tell."""
    if row.committed_micros is None or row.committed_currency_code is None:
        return None
    if row.released_at is not None:
        return money(0, row.committed_currency_code)
    spent = _spent(repository.spent_on(session, row.tenant_id, row.quote_id), row, rates)
    left = None if spent is None else max(0, row.committed_micros - spent)
    return None if left is None else money(left, row.committed_currency_code)


def _spent(spent: Sequence[Spent], row: ApprovalRow, rates: ExchangeRates) -> int | None:
    amounts = [converted(each, row.committed_currency_code or "", rates) for each in spent]
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


def _commitment(quote: Mapping[str, Any], approval_id: str, at: datetime) -> Commitment:
    total = quote["headlines"].get("total")
    return Commitment(
        approval_id,
        quote["id"],
        quote["version"],
        None if total is None else micros(Decimal(total["amount"])),
        None if total is None else total["currency_code"],
        at,
        due_of(quote, at),
    )


def _parts(
    session: Session, tenant_id: str, center_id: str | None, commitment: Commitment, rates: ExchangeRates
) -> list[_Part]:
    """What is taken of the budgets of a cost centre in whose periods the money falls due."""
    meeting = _meeting(session, tenant_id, center_id, commitment.due)
    usages = usages_of(session, meeting, rates)
    return [_part(each, usages[each.id], commitment, rates) for each in meeting]


def _meeting(session: Session, tenant_id: str, center_id: str | None, due: Period) -> list[BudgetRow]:
    budgets = [] if center_id is None else repository.of_centers(session, tenant_id, [center_id])
    return [each for each in budgets if part(0, due, days(each.starts_on, each.ends_on)) is not None]


def _part(budget: BudgetRow, usage: Usage, commitment: Commitment, rates: ExchangeRates) -> _Part:
    take = take_of(budget, commitment, rates)
    if not isinstance(take, Take):
        return _Part(budget, commitment.quote_id, usage, None, take)
    unknown = usage.gaps[0]["code"] if usage.gaps else ""
    return _Part(budget, commitment.quote_id, usage, take, unknown)


def _shown(each: _Part) -> BudgetEffect:
    budget, currency = each.budget, each.budget.currency_code
    blocks = budget.enforcement == "block"
    effect: BudgetEffect = {"budget_id": budget.id, "is_exceeded": True, "blocks": blocks}
    if each.take is not None:
        effect["amount"] = money(each.take.micros, currency)
    if each.take is None or each.unknown:
        effect["unknown"] = each.unknown
        return effect
    taken = each.usage.taken(each.quote_id, each.take.micros)
    left = budget.amount_micros - taken
    effect["remaining_before"] = money(budget.amount_micros - each.usage.taken(), currency)
    effect["remaining_after"] = money(left, currency)
    effect["is_exceeded"] = left < 0
    return effect


def _reason(effect: BudgetEffect) -> FieldError:
    """Why a budget refuses a quote."""
    name = f"the budget {effect['budget_id']}"
    if "unknown" in effect:
        return FieldError("", effect["unknown"], f"nobody can tell what the quote takes of {name}")
    return FieldError("", "BUDGET_EXCEEDED", f"{name} has less left than the quote takes of it")
