"""What has to be paid for a run in all: its devices, what it keeps and sends, electricity of own devices."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from service.estimates.bill_export import list_bill_charges
from service.estimates.charges import to_money
from service.estimates.cost import answer_cost
from service.estimates.focus import list_cost_charges
from service.estimates.utility_bill import estimate_utility_bill
from service.planning.cost import round_amount
from service.planning.cost.charges import CurrencyCharges, UnitPrice, sum_charges
from service.planning.cost.focus import FocusCharge
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.resolve.catalog import CatalogView
from service.resolve.prices import resolve_currencies
from service.schemas.base import MoneyQuantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostEstimate
from service.schemas.estimates import CostEstimateRequest, UtilityBillRequest

ELECTRICITY: Final = "/electricity/total"


class PaymentQuestions(NamedTuple):
    """The questions of what is paid: of the devices, if they are, and of the electricity of own ones."""

    cost: CostEstimateRequest | None
    bill: UtilityBillRequest | None


def compute_electricity_total(
    billed: UtilityBill, request: UtilityBillRequest, catalog: CatalogView, notes: AnswerNotes
) -> CurrencyCharges | None:
    """What a bill says of electricity, in the currency of its question."""
    total = billed["electricity"].get("total")
    return None if total is None else _exchange_total(total, request, catalog, notes)


def _exchange_total(
    total: MoneyQuantity, request: UtilityBillRequest, catalog: CatalogView, notes: AnswerNotes
) -> CurrencyCharges | None:
    """A total in the currency of a question; of what the exchange says ``notes`` take the rates alone."""
    own = notes.copy()
    paid = resolve_currencies(request, catalog).exchange_total(_read_charges(total), "/cost", own)
    notes.sources[:] = own.sources
    return paid


def _read_charges(total: MoneyQuantity) -> CurrencyCharges:
    amount, low, high = (Decimal(total[end]) for end in ("amount", "low", "high"))
    return CurrencyCharges((), amount, low, high, total["currency_code"], total["basis"])


def compute_paid_total(
    payable: PaymentQuestions,
    cost: CostEstimate | None,
    billed: UtilityBill | None,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> MoneyQuantity:
    """The sum of what two answers say, the rates of its exchange in ``notes``; refuses one that has a gap."""
    parts: list[CurrencyCharges] = []
    if payable.cost is not None:
        parts.append(_read_charges(_require_total(cost and cost.get("total"), cost, "/total")))
    if payable.bill is not None:
        total = _require_total(billed and billed["electricity"].get("total"), billed, ELECTRICITY)
        paid = _exchange_total(total, payable.bill, catalog, notes)
        if paid is None:
            detail = "no exchange rate to the currency of the question is known"
            raise PlanningError("CURRENCY_MISMATCH", ELECTRICITY, detail)
        parts.append(paid)
    return _sum_parts(parts)


def _require_total(
    total: MoneyQuantity | None, answer: CostEstimate | UtilityBill | None, pointer: str
) -> MoneyQuantity:
    """A total, or why it is not known."""
    if total is not None:
        return total
    gaps = answer["gaps"] if answer is not None else []
    found = next((gap for gap in gaps if gap["pointer"] == pointer), None)
    if found is None:
        raise PlanningError("TOTAL_UNKNOWN", pointer, "the estimate that says it has no answer")
    raise PlanningError(found["code"], pointer, found["detail"])


def _sum_parts(parts: Sequence[CurrencyCharges]) -> MoneyQuantity:
    if len({part.currency_code for part in parts}) > 1:
        detail = "the amounts are in different currencies: give currency_code"
        raise PlanningError("CURRENCY_MISMATCH", "/total", detail)
    whole = sum_charges(parts)
    if whole is None:
        raise PlanningError("PRICE_REQUIRED", "/total", "nothing says what is paid")
    return to_money(whole.total)


def list_paid_charges(payable: PaymentQuestions, catalog: CatalogView) -> list[FocusCharge]:
    """The same as charges of a period, for accountants, in the currency of the sum.

    Refuses a run without a start or without a total.
    """
    found: list[FocusCharge] = []
    if payable.cost is not None:
        found += list_cost_charges(payable.cost, answer_cost(payable.cost, catalog))
    if payable.bill is not None:
        billed = list_bill_charges(payable.bill, estimate_utility_bill(payable.bill, catalog))
        found += _exchange_charges(billed, payable.bill, catalog)
    if not found:
        raise PlanningError("PRICE_REQUIRED", "", "nothing says what is paid")
    if len({charge.currency_code for charge in found}) > 1:
        raise PlanningError("CURRENCY_MISMATCH", "", "the charges are in different currencies")
    return found


def _exchange_charges(
    charges: Sequence[FocusCharge], request: UtilityBillRequest, catalog: CatalogView
) -> list[FocusCharge]:
    """Charges of electricity in the currency of its question; the largest takes what rounding leaves."""
    exchange = resolve_currencies(request, catalog)
    exchanged: list[FocusCharge] = []
    whole = Decimal(0)
    for charge in charges:
        one = UnitPrice(Decimal(1), charge.currency_code, charge.source, EvidenceBasis.ASSUMED)
        rate = exchange.exchange_price(one, "", AnswerNotes())
        if rate is None:
            detail = "no exchange rate to the currency of the question is known"
            raise PlanningError("CURRENCY_MISMATCH", "", detail)
        paid, code = charge.billed * rate.amount, rate.currency_code
        amount = round_amount(paid, code)
        price = None if charge.unit_price is None else charge.unit_price * rate.amount
        exchanged.append(
            charge._replace(
                currency_code=code, billed=amount, effective=amount, unit_price=price, source=rate.source
            )
        )
        whole += paid
    if exchanged and exchanged[0].currency_code != charges[0].currency_code:
        largest = max(range(len(exchanged)), key=lambda place: abs(exchanged[place].billed))
        left = round_amount(whole, exchanged[0].currency_code) - sum(charge.billed for charge in exchanged)
        amount = exchanged[largest].billed + left
        exchanged[largest] = exchanged[largest]._replace(billed=amount, effective=amount)
    return exchanged
