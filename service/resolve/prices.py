"""Resolution of prices and currencies."""

from decimal import Decimal

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import GIVEN, CurrencyCharges, UnitPrice
from service.planning.cost.currencies import TotalCurrency
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView
from service.schemas.base import MoneyInput
from service.schemas.estimates import CostEstimateRequest
from service.schemas.rental import PriceRange


def resolve_price(price: MoneyInput, ends: PriceRange | MISSING = MISSING, at: str = "") -> UnitPrice:
    """Returns a price of the question, with its range if there is one. ``at`` points at the range."""
    found = UnitPrice(Decimal(price.amount), price.currency_code, GIVEN, EvidenceBasis.ASSUMED)
    return found if ends is MISSING else add_range(found, ends, at)


def add_range(price: UnitPrice, ends: PriceRange, at: str) -> UnitPrice:
    """Returns the price with its range. Refuses a range that does not contain the price."""
    low, high = Decimal(ends.low), Decimal(ends.high)
    if not low <= price.amount <= high:
        raise PlanningError("PRICE_RANGE", at, "the price lies outside its range")
    return price._replace(low=low, high=high)


def multiply_price(price: UnitPrice, factor: float | MISSING) -> UnitPrice:
    """Returns the price multiplied by a factor of the question, if there is one."""
    return price if factor is MISSING else price.times(factor)


def resolve_currencies(question: CostEstimateRequest, catalog: CatalogView) -> TotalCurrency:
    """Returns the currency that a question asks for, at the exchange rates of its start or of today."""
    code = None if question.currency_code is MISSING else question.currency_code
    start = now() if question.starts_at is MISSING else question.starts_at
    return TotalCurrency(code, catalog.exchange_rates, start.date())


def exchange_total(
    charged: CurrencyCharges, question: CostEstimateRequest, catalog: CatalogView, notes: AnswerNotes
) -> CurrencyCharges | None:
    """Returns a sum in the currency of a question; None without a rate. ``notes`` take the rates alone."""
    own = notes.copy()
    paid = resolve_currencies(question, catalog).exchange_total(charged, "/cost", own)
    notes.sources[:] = own.sources
    return paid
