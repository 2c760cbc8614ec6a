"""Money in budgets, as whole millionths of a unit of a currency."""

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Final

from service.planning.cost import round_amount
from service.schemas.base import MoneyAmount

MOST_MICROS: Final = 10**18
"""Limit of a million million units, which keeps sums in range."""
_UNIT: Final = Decimal(1_000_000)
_DIGITS: Final = 60


def to_micros(amount: Decimal) -> int:
    """Returns an amount in millionths, rounded half to even."""
    with localcontext(prec=_DIGITS):
        return int((amount * _UNIT).to_integral_value(ROUND_HALF_EVEN))


def to_decimal(amount_micros: int) -> Decimal:
    """Returns millionths as an amount."""
    with localcontext(prec=_DIGITS):
        return amount_micros / _UNIT


def to_money(amount_micros: int, currency_code: str) -> MoneyAmount:
    """Returns millionths as money, in minor units of the currency or with as many digits as needed."""
    amount = to_decimal(amount_micros)
    with localcontext(prec=_DIGITS):
        short = round_amount(amount, currency_code)
    text = f"{short:f}" if short == amount else f"{amount.normalize():f}"
    return {"amount": text, "currency_code": currency_code}
