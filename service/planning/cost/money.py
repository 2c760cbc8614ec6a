"""Exact money: amounts of lines, rounded once.

Amounts are decimals. A line is rounded once, half to even, to the minor unit of its currency (ISO 4217), and
a total is the sum of its rounded lines, so that lines always add up.
"""

from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

_MINOR_DIGITS: Final = {
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
    "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
    "CLF": 4, "UYW": 4,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
}  # fmt: skip
_TWO_DIGITS: Final = Decimal("0.01")
_QUANTA: Final = {code: Decimal(1).scaleb(-digits) for code, digits in _MINOR_DIGITS.items()}


def round_amount(amount: Decimal, currency_code: str) -> Decimal:
    """Rounds ``amount`` to the minor unit of its currency, half to even."""
    return amount.quantize(_QUANTA.get(currency_code, _TWO_DIGITS), ROUND_HALF_EVEN)


def compute_charge(quantity: float, unit_price: Decimal, currency_code: str) -> Decimal:
    """Returns the amount of one line: quantity times unit price, rounded once."""
    return round_amount(Decimal(quantity) * unit_price, currency_code)
