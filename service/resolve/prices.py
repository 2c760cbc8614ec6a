"""Prices and currencies of a question."""

from decimal import Decimal

from pydantic import MISSING

from service.kit.clock import now
from service.planning.cost.charges import GIVEN, UnitPrice
from service.planning.cost.currencies import TotalCurrency
from service.planning.errors import PlanningError
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView
from service.schemas.base import MoneyInput
from service.schemas.estimates import CostEstimateRequest
from service.schemas.rental import PriceRange


def resolve_price(price: MoneyInput, ends: PriceRange | MISSING = MISSING, at: str = "") -> UnitPrice:
    """A price of the question, with its ends where it has any; ``at`` names the member of these."""
    found = UnitPrice(Decimal(price.amount), price.currency_code, GIVEN, EvidenceBasis.ASSUMED)
    return found if ends is MISSING else add_range(found, ends, at)


def add_range(price: UnitPrice, ends: PriceRange, at: str) -> UnitPrice:
    """The price with its ends; refuses ends that it does not lie between."""
    low, high = Decimal(ends.low), Decimal(ends.high)
    if not low <= price.amount <= high:
        raise PlanningError("PRICE_RANGE", at, "the price lies outside its range")
    return price._replace(low=low, high=high)


def multiply_price(price: UnitPrice, factor: float | MISSING) -> UnitPrice:
    """The price multiplied by a factor of the question, if there is one."""
    return price if factor is MISSING else price.times(factor)


def resolve_currencies(question: CostEstimateRequest, catalog: CatalogView) -> TotalCurrency:
    """The currency that a question asks for, at the rates of its start or of today."""
    code = None if question.currency_code is MISSING else question.currency_code
    start = now() if question.starts_at is MISSING else question.starts_at
    return TotalCurrency(code, catalog.exchange_rates, start.date())
