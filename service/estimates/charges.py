"""Charges of a run: one line each, and what they amount to at the ends of their quantity's interval."""

from decimal import Decimal
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.run import Run
from service.planning.cost import charge
from service.planning.errors import PlanningError
from service.planning.quantity import Basis, Quantity, assumed, scaled, weakest
from service.planning.units import HOUR_SECONDS
from service.planning.workload import InferenceWorkload, TrainingWorkload
from service.questions.answer import money
from service.questions.base import Line, MoneyInput, MoneyQuantity
from service.questions.catalog import Catalog
from service.questions.estimates import CostQuestion
from service.questions.notes import lookup
from service.questions.rental import Rental

GIVEN = "given with the question"
UNIT_PRICE_DIGITS = Decimal("0.000001")
"""A price per unit is finer than the minor unit of its currency."""


class Price(NamedTuple):
    """A unit price and where it comes from."""

    amount: Decimal
    currency_code: str
    source: str
    basis: Basis


class Charges(NamedTuple):
    """Lines in one currency and their sum, with its ends."""

    lines: list[Line]
    amount: Decimal
    low: Decimal
    high: Decimal
    currency_code: str
    basis: Basis

    @property
    def total(self) -> MoneyQuantity:
        """The headline amount."""
        return money(self.amount, self.low, self.high, self.currency_code, self.basis)

    @property
    def quantity(self) -> Quantity:
        """The sum as a number, for ratios."""
        return Quantity(float(self.amount), float(self.low), float(self.high), self.basis)

    def per_million(self, count: Quantity) -> MoneyQuantity:
        """What a million of ``count`` units costs."""
        amounts = (self.amount, self.low, self.high)
        counts = (count.value, count.high, count.low)
        amount, low, high = (
            (end * 1_000_000 / Decimal(units)).quantize(UNIT_PRICE_DIGITS)
            for end, units in zip(amounts, counts, strict=True)
        )
        return money(amount, low, high, self.currency_code, weakest(self.quantity, count))


def given_price(price: MoneyInput) -> Price:
    """A price of the question."""
    return Price(Decimal(price.amount), price.currency_code, GIVEN, Basis.ASSUMED)


def charges(price: Price, unit: str, *quantities: tuple[str, Quantity]) -> Charges:
    """One line for each named quantity at one unit price."""
    currency = price.currency_code
    lines: list[Line] = []
    total = low = high = Decimal(0)
    for name, quantity in quantities:
        amount = charge(quantity.value, price.amount, currency)
        total += amount
        certain = quantity.low == quantity.high
        low += amount if certain else charge(quantity.low, price.amount, currency)
        high += amount if certain else charge(quantity.high, price.amount, currency)
        lines.append(
            {
                "name": name,
                "quantity": quantity.value,
                "unit": unit,
                "unit_price": {"amount": str(price.amount), "currency_code": currency},
                "amount": {"amount": str(amount), "currency_code": currency},
                "source": price.source,
            }
        )
    basis = weakest(*(quantity for _, quantity in quantities), Quantity(0, 0, 0, price.basis))
    return Charges(lines, total, low, high, currency, basis)


def device_hours(run: Run) -> Quantity | None:
    """Hours of all devices together; refuses a question that does not say how long the run lasts."""
    workload = run.resolved.workload
    if isinstance(workload, TrainingWorkload) and run.resolved.total_tokens is None:
        raise PlanningError(
            "TOTAL_REQUIRED", "/workload/total_tokens", "give total_tokens, total_steps or total_samples"
        )
    if isinstance(workload, InferenceWorkload) and workload.horizon is None:
        raise PlanningError(
            "HORIZON_REQUIRED", "/workload/horizon", "a cost needs to know how long the service runs"
        )
    if run.duration_seconds is None:
        return None
    devices = float(run.cluster.accelerator_count)
    return scaled(run.duration_seconds, devices / HOUR_SECONDS)


def rent(question: CostQuestion, run: Run, hours: Quantity | None, catalog: Catalog) -> Charges | None:
    """Device-hours at the rental price; None without a rental or without a duration."""
    if question.rental is MISSING:
        return None
    price = _rental_price(question.rental, run, catalog)
    return hours and charges(price, "device_hour", ("rental", hours))


def _rental_price(rental: Rental, run: Run, catalog: Catalog) -> Price:
    given, offer_id = rental.price_per_device_hour, rental.offer_id
    if (given is MISSING) == (offer_id is MISSING):
        raise PlanningError("RENTAL_PRICE", "/rental", "give either price_per_device_hour or offer_id")
    if given is not MISSING:
        return given_price(given)
    assert offer_id is not MISSING  # noqa: S101
    offer = lookup(catalog.offers, offer_id, "/rental/offer_id")
    if offer.accelerator_id != run.cluster.accelerator.id:
        raise PlanningError("OFFER_MISMATCH", "/rental/offer_id", f"the offer is for {offer.accelerator_id}")
    if rental.purchase_option not in (MISSING, offer.purchase_option):
        raise PlanningError(
            "OFFER_MISMATCH", "/rental/purchase_option", f"the offer is {offer.purchase_option}"
        )
    run.notes.cite(offer.source, "/rental/offer_id")
    source = f"offer {offer_id} of {offer.as_of}"
    return Price(offer.price_per_device_hour, offer.currency_code, source, Basis.REFERENCE)


def purchase(question: CostQuestion, run: Run) -> Charges | None:
    """The price of the devices; None without one."""
    if question.purchase is MISSING:
        return None
    count = assumed(float(run.cluster.accelerator_count))
    return charges(given_price(question.purchase.price_per_device), "device", ("devices", count))
