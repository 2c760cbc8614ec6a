"""Amounts of lines: decimals with a fixed number of places, so that sums are exact in any order."""

from decimal import Context, Decimal
from typing import Final

_PLACES: Final = Decimal("1e-12")
"""Places of an amount, far below every minor unit; sums up to 1e16 fit the 28 digits of a decimal."""
_WIDE: Final = Context(prec=80)


def quantize_amount(amount: Decimal) -> Decimal:
    """Rounds ``amount`` to twelve places."""
    return amount.quantize(_PLACES, context=_WIDE)


def price_quantity(quantity: float, price: Decimal) -> Decimal:
    """Returns quantity times price, not rounded to money."""
    return quantize_amount(_WIDE.multiply(Decimal(quantity), price))
