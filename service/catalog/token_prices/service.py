"""Rules of token prices."""

from service.catalog.offers.service import check_days
from service.catalog.rows import RowDocument
from service.planning.errors import PlanningError

_PRICES = (
    "input_price_per_million_tokens",
    "output_price_per_million_tokens",
    "cached_input_price_per_million_tokens",
)


def check_prices(document: RowDocument) -> RowDocument:
    """Returns no members. Raises :class:`PlanningError` for mixed currencies, a zero or a bad date."""
    check_days(document)
    amounts = {member: document[member] for member in _PRICES if member in document}
    code = document[_PRICES[0]]["currency_code"]
    for member, money in amounts.items():
        if money["currency_code"] != code:
            detail = "the amounts of a price are of one currency"
            raise PlanningError("CURRENCY_MISMATCH", f"/{member}/currency_code", detail)
        if not money["amount"].strip("0."):
            raise PlanningError("PRICE_ZERO", f"/{member}", "a price of 0 is an unknown price")
    return {}
