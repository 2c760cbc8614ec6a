"""The sum of what is paid for a run."""

from decimal import Decimal

import pytest

from service.planning.cost.charges import CurrencyCharges
from service.planning.cost.payment import sum_payments
from service.planning.errors import PlanningError
from service.planning.quantity import EvidenceBasis


def paid(amount, code="USD"):
    number = Decimal(amount)
    return CurrencyCharges((), number, number, number, code, EvidenceBasis.ASSUMED)


def test_payments_in_one_currency_add_up():
    assert sum_payments([paid("1.25"), paid("2.50")]).total.amount == Decimal("3.75")


@pytest.mark.parametrize(
    ("parts", "code"), [([], "PRICE_REQUIRED"), ([paid("1"), paid("1", "EUR")], "CURRENCY_MISMATCH")]
)
def test_nothing_and_two_currencies_have_no_sum(parts, code):
    with pytest.raises(PlanningError) as refused:
        sum_payments(parts)
    assert (refused.value.code, refused.value.pointer) == (code, "/total")
