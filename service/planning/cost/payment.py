"""Sum of what is paid for a run: its devices, and the electricity of own devices."""

from collections.abc import Sequence

from service.planning.cost.charges import CurrencyCharges, sum_charges
from service.planning.errors import PlanningError


def sum_payments(parts: Sequence[CurrencyCharges]) -> CurrencyCharges:
    """Returns the sum of payments; refuses none at all and amounts in different currencies, at /total."""
    if len({part.currency_code for part in parts}) > 1:
        detail = "the amounts are in different currencies: give currency_code"
        raise PlanningError("CURRENCY_MISMATCH", "/total", detail)
    whole = sum_charges(parts)
    if whole is None:
        raise PlanningError("PRICE_REQUIRED", "/total", "nothing says what is paid")
    return whole
