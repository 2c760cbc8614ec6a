"""Usage of a budget.

Nothing of it is stored: commitments come from approvals and charges from bills, and a budget counts those of
its cost centre in its period, in any order of creation. A quote takes the larger of its commitment and its
spending, so that money that is committed first and billed later counts once. Spending without a quote is
added.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

from sqlalchemy.orm import Session

from service.budgets import repository
from service.budgets.money import to_decimal, to_micros
from service.budgets.periods import build_period, prorate_amount
from service.budgets.repository import QuoteCommitment, SpentAmount
from service.budgets.tables import BudgetRow
from service.planning.cost.exchange import ExchangeRates
from service.schemas.base import EstimateGap

RATE_UNKNOWN: Final = "RATE_UNKNOWN"
TOTAL_UNKNOWN: Final = "TOTAL_UNKNOWN"


class BudgetUsage(NamedTuple):
    """Committed and spent amounts of a budget, in millionths of its currency.

    ``gaps`` list uncounted ones.
    """

    committed: Mapping[str, int]
    spent: Mapping[str | None, int]
    gaps: tuple[EstimateGap, ...]

    @property
    def committed_micros(self) -> int:
        """Sum of the commitments of approvals."""
        return sum(self.committed.values())

    @property
    def spent_micros(self) -> int:
        """Sum of the spending."""
        return sum(self.spent.values())

    @property
    def outstanding_micros(self) -> int:
        """Committed amount that is not yet spent."""
        return self.compute_taken() - self.spent_micros

    def compute_taken(self, quote_id: str = "", instead: int = 0) -> int:
        """Returns the usage if a quote commits ``instead`` in place of its earlier version."""
        quotes = {*self.committed, *(each for each in self.spent if each is not None)} | {quote_id}
        committed = {each: self.committed.get(each, 0) for each in quotes}
        committed[quote_id] = instead
        beside = self.spent.get(None, 0)
        return beside + sum(max(committed[each], self.spent.get(each, 0)) for each in quotes)


class BudgetTake(NamedTuple):
    """Amount that a commitment takes from a budget, in millionths of its currency, with rate and day."""

    micros: int
    rate: Decimal
    rate_on: date


def compute_take(budget: BudgetRow, commitment: QuoteCommitment, rates: ExchangeRates) -> BudgetTake | str:
    """Returns the amount in a budget's period at the rate of the approval's day, or the code of a gap."""
    if commitment.micros is None or commitment.currency_code is None:
        return TOTAL_UNKNOWN
    amount, on = to_decimal(commitment.micros), commitment.committed_at.date()
    found = rates.convert(amount, commitment.currency_code, budget.currency_code, on)
    if found is None:
        return RATE_UNKNOWN
    taken = prorate_amount(
        to_micros(found.amount), commitment.due, build_period(budget.starts_on, budget.ends_on)
    )
    return BudgetTake(taken or 0, found.rate, found.oldest_on)


def compute_usage(session: Session, budget: BudgetRow, rates: ExchangeRates) -> BudgetUsage:
    """Returns the usage of one budget."""
    gaps: dict[tuple[str, str, str], EstimateGap] = {}
    committed = _sum_committed(budget, repository.list_commitments(session, budget), rates, gaps)
    spent: dict[str | None, int] = defaultdict(int)
    for each in repository.list_spent(session, budget):
        amount = convert_spent(each, budget.currency_code, rates)
        if amount is None:
            _record_gap(gaps, "/spent", RATE_UNKNOWN, each.currency_code)
        else:
            spent[each.quote_id] += amount
    return BudgetUsage(committed, spent, tuple(gaps[key] for key in sorted(gaps)))


def compute_usages(
    session: Session, budgets: Collection[BudgetRow], rates: ExchangeRates
) -> dict[str, BudgetUsage]:
    """Returns the usage of budgets of one tenant by id."""
    return {budget.id: compute_usage(session, budget, rates) for budget in budgets}


def convert_spent(spent: SpentAmount, currency_code: str, rates: ExchangeRates) -> int | None:
    """Converts spent money at the rate of the day on which its bill was imported."""
    found = rates.convert(to_decimal(spent.micros), spent.currency_code, currency_code, spent.imported_on)
    return None if found is None else to_micros(found.amount)


def list_committed_shares(
    session: Session, today: str, rates_of: Callable[[str], ExchangeRates]
) -> list[float]:
    """Returns the committed share of each running budget, over all tenants."""
    found = []
    for budget in repository.list_running_budgets(session, today):
        held = repository.list_commitments(session, budget)
        committed = sum(_sum_committed(budget, held, rates_of(budget.tenant_id), {}).values())
        # A budget of zero counts as fully committed.
        found.append(committed / budget.amount_micros if budget.amount_micros else 1.0)
    return found


def _sum_committed(
    budget: BudgetRow,
    commitments: Iterable[QuoteCommitment],
    rates: ExchangeRates,
    gaps: dict[tuple[str, str, str], EstimateGap],
) -> dict[str, int]:
    """Returns commitments by quote. Uncounted ones are added to ``gaps``."""
    committed: dict[str, int] = defaultdict(int)
    for each in commitments:
        take = compute_take(budget, each, rates)
        if isinstance(take, BudgetTake):
            committed[each.quote_id] += take.micros
        else:
            _record_gap(gaps, "/committed", take, each.currency_code or "")
    return committed


_DETAILS: Final = {
    ("/spent", RATE_UNKNOWN): "spending in {} is not counted, since there is no exchange rate",
    ("/committed", RATE_UNKNOWN): "commitments in {} are not counted, since there is no exchange rate",
    ("/committed", TOTAL_UNKNOWN): "an approved quote is not counted, since its total is unknown",
}


def _record_gap(
    gaps: dict[tuple[str, str, str], EstimateGap], pointer: str, code: str, currency_code: str
) -> None:
    detail = _DETAILS[pointer, code].format(currency_code)
    gaps[pointer, code, currency_code] = {"pointer": pointer, "code": code, "detail": detail}
