"""Payment for a run in all: its devices, storage and egress, and the electricity of own devices."""

from decimal import Decimal
from typing import Final, NamedTuple

from service.estimates.charges import to_money
from service.estimates.cost import answer_cost
from service.estimates.focus import build_bill_charges, build_cost_charges
from service.estimates.utility_bill import estimate_bill
from service.formats.focus_charges import exchange_charges
from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.focus import FocusCharge
from service.planning.cost.payment import sum_payments
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.resolve.catalog import CatalogView
from service.resolve.prices import exchange_total, resolve_currencies
from service.schemas.base import MoneyQuantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.cost_answers import CostEstimate
from service.schemas.estimates import CostEstimateRequest, UtilityBillRequest

_ELECTRICITY: Final = "/electricity/total"


class PaymentQuestions(NamedTuple):
    """Questions of a payment; None for the cost or the electricity if it is not paid."""

    cost: CostEstimateRequest | None
    bill: UtilityBillRequest | None


def compute_paid_total(
    payable: PaymentQuestions,
    cost: CostEstimate | None,
    billed: UtilityBill | None,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> MoneyQuantity:
    """Returns the sum of two answers; refuses one that has a gap.

    The exchange rates of the sum are noted in ``notes``.
    """
    parts: list[CurrencyCharges] = []
    if payable.cost is not None:
        parts.append(_require_total(cost and cost.get("total"), cost, "/total"))
    if payable.bill is not None:
        total = _require_total(billed and billed["electricity"].get("total"), billed, _ELECTRICITY)
        paid = exchange_total(total, payable.bill, catalog, notes)
        if paid is None:
            detail = "no exchange rate to the currency of the question is known"
            raise PlanningError("CURRENCY_MISMATCH", _ELECTRICITY, detail)
        parts.append(paid)
    return to_money(sum_payments(parts).total)


def _require_total(
    total: MoneyQuantity | None, answer: CostEstimate | UtilityBill | None, pointer: str
) -> CurrencyCharges:
    """Returns a total of an answer; refuses with the reason of its gap."""
    if total is not None:
        amount, low, high = (Decimal(total[end]) for end in ("amount", "low", "high"))
        return CurrencyCharges((), amount, low, high, total["currency_code"], total["basis"])
    gaps = answer["gaps"] if answer is not None else []
    found = next((gap for gap in gaps if gap["pointer"] == pointer), None)
    if found is None:
        raise PlanningError("TOTAL_UNKNOWN", pointer, "the estimate that says it has no answer")
    raise PlanningError(found["code"], pointer, found["detail"])


def list_paid_charges(payable: PaymentQuestions, catalog: CatalogView) -> list[FocusCharge]:
    """Returns the same payment as charges of a period, in the currency of the sum.

    Refuses a run without a start or without a total.
    """
    found: list[FocusCharge] = []
    if payable.cost is not None:
        found += build_cost_charges(payable.cost, answer_cost(payable.cost, catalog))
    if payable.bill is not None:
        billed = build_bill_charges(payable.bill, estimate_bill(payable.bill, catalog))
        found += exchange_charges(billed, resolve_currencies(payable.bill, catalog))
    if not found:
        raise PlanningError("PRICE_REQUIRED", "", "nothing says what is paid")
    if len({charge.currency_code for charge in found}) > 1:
        raise PlanningError("CURRENCY_MISMATCH", "", "the charges are in different currencies")
    return found
