"""What has to be paid for a run in all: its devices, what it keeps and sends, electricity of own devices."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from service.estimates.bill_export import bill_charges
from service.estimates.charges import Charges, Price, added
from service.estimates.cost import costed
from service.estimates.currencies import currencies_of
from service.estimates.focus import cost_charges
from service.estimates.utility_bill import estimate_utility_bill
from service.planning.cost import rounded
from service.planning.cost.focus import Charge
from service.planning.errors import PlanningError
from service.planning.quantity import Basis
from service.resolve.catalog import Catalog
from service.schemas.base import MoneyQuantity
from service.schemas.bill_answers import UtilityBillAnswer
from service.schemas.cost_answers import CostAnswer
from service.schemas.estimates import CostQuestion, UtilityBillQuestion
from service.schemas.notes import Notes

ELECTRICITY: Final = "/electricity/total"


class Payable(NamedTuple):
    """The questions of what is paid: of the devices, if they are, and of the electricity of own ones."""

    cost: CostQuestion | None
    bill: UtilityBillQuestion | None


def electricity_paid(
    billed: UtilityBillAnswer, request: UtilityBillQuestion, catalog: Catalog, notes: Notes
) -> Charges | None:
    """What a bill says of electricity, in the currency of its question."""
    total = billed["electricity"].get("total")
    if total is None:
        return None
    own = notes.copy()
    paid = currencies_of(request, catalog, own).charges(_charges(total), "/cost")
    notes.sources[:] = own.sources
    return paid


def _charges(total: MoneyQuantity) -> Charges:
    amount, low, high = (Decimal(total[end]) for end in ("amount", "low", "high"))
    return Charges([], amount, low, high, total["currency_code"], total["basis"])


def total_paid(
    payable: Payable,
    cost: CostAnswer | None,
    billed: UtilityBillAnswer | None,
    catalog: Catalog,
    notes: Notes,
) -> MoneyQuantity:
    """The sum of what two answers say, the rates of its exchange in ``notes``; refuses one that has a gap."""
    parts: list[Charges] = []
    if payable.cost is not None:
        parts.append(_charges(_known(cost and cost.get("total"), cost, "/total")))
    if payable.bill is not None:
        total = billed and billed["electricity"].get("total")
        _known(total, billed, ELECTRICITY)
        assert billed is not None  # noqa: S101
        paid = electricity_paid(billed, payable.bill, catalog, notes)
        if paid is None:
            detail = "no exchange rate to the currency of the question is known"
            raise PlanningError("CURRENCY_MISMATCH", ELECTRICITY, detail)
        parts.append(paid)
    return _sum(parts)


def _known(
    total: MoneyQuantity | None, answer: CostAnswer | UtilityBillAnswer | None, pointer: str
) -> MoneyQuantity:
    """A total, or why it is not known."""
    if total is not None:
        return total
    gaps = answer["gaps"] if answer is not None else []
    found = next((gap for gap in gaps if gap["pointer"] == pointer), None)
    if found is None:
        raise PlanningError("TOTAL_UNKNOWN", pointer, "the estimate that says it has no answer")
    raise PlanningError(found["code"], pointer, found["detail"])


def _sum(parts: Sequence[Charges]) -> MoneyQuantity:
    if len({part.currency_code for part in parts}) > 1:
        detail = "the amounts are in different currencies: give currency_code"
        raise PlanningError("CURRENCY_MISMATCH", "/total", detail)
    whole = added(parts)
    if whole is None:
        raise PlanningError("PRICE_REQUIRED", "/total", "nothing says what is paid")
    return whole.total


def charges_paid(payable: Payable, catalog: Catalog) -> list[Charge]:
    """The same as charges of a period, for accountants, in the currency of the sum.

    Refuses a run without a start or without a total.
    """
    found: list[Charge] = []
    if payable.cost is not None:
        found += cost_charges(payable.cost, costed(payable.cost, catalog))
    if payable.bill is not None:
        billed = bill_charges(payable.bill, estimate_utility_bill(payable.bill, catalog))
        found += _exchanged(billed, payable.bill, catalog)
    if not found:
        raise PlanningError("PRICE_REQUIRED", "", "nothing says what is paid")
    if len({charge.currency_code for charge in found}) > 1:
        raise PlanningError("CURRENCY_MISMATCH", "", "the charges are in different currencies")
    return found


def _exchanged(charges: Sequence[Charge], request: UtilityBillQuestion, catalog: Catalog) -> list[Charge]:
    """Charges of electricity in the currency of its question; the largest takes what rounding leaves."""
    exchange = currencies_of(request, catalog, Notes())
    exchanged: list[Charge] = []
    whole = Decimal(0)
    for charge in charges:
        one = Price(Decimal(1), charge.currency_code, charge.source, Basis.ASSUMED)
        rate = exchange.price(one, "")
        if rate is None:
            detail = "no exchange rate to the currency of the question is known"
            raise PlanningError("CURRENCY_MISMATCH", "", detail)
        paid, code = charge.billed * rate.amount, rate.currency_code
        amount = rounded(paid, code)
        price = None if charge.unit_price is None else charge.unit_price * rate.amount
        exchanged.append(
            charge._replace(
                currency_code=code, billed=amount, effective=amount, unit_price=price, source=rate.source
            )
        )
        whole += paid
    if exchanged and exchanged[0].currency_code != charges[0].currency_code:
        largest = max(range(len(exchanged)), key=lambda place: abs(exchanged[place].billed))
        left = rounded(whole, exchanged[0].currency_code) - sum(charge.billed for charge in exchanged)
        amount = exchanged[largest].billed + left
        exchanged[largest] = exchanged[largest]._replace(billed=amount, effective=amount)
    return exchanged
