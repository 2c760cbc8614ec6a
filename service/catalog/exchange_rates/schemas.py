"""Requests and answers of exchange rates."""

from typing import Annotated

from pydantic import Field

from service.catalog.rows import EXAMPLE_SOURCES, RowDocument, RowInput, Versioned
from service.catalog.shapes import ListQuery
from service.schemas.base import CurrencyCode
from service.schemas.tariffs import Day

RateText = Annotated[
    str,
    Field(pattern=r"^([0-9]*[1-9][0-9]*(\.[0-9]+)?|[0-9]+\.[0-9]*[1-9][0-9]*)$", max_length=32),
]
"""A decimal number above zero as text."""
CurrencyCodes = Annotated[list[CurrencyCode], Field(max_length=50)]


class ExchangeRateRequest(RowInput):
    """Value of one unit of a currency in another currency on a day."""

    from_currency_code: CurrencyCode
    """Currency of the one unit that is converted (ISO 4217)."""
    to_currency_code: CurrencyCode
    """Currency that the rate is counted in (ISO 4217)."""
    rate: RateText
    """Units of the second currency for one of the first, as decimal text above zero."""
    as_of: Day
    """Day of the rate. The rate applies until a newer one of the same pair."""


class ExchangeRate(ExchangeRateRequest, Versioned):
    """An exchange rate of the catalog."""


class ExchangeRateQuery(ListQuery):
    """Filters of exchange rates."""

    from_currency_code: CurrencyCodes = []
    """Currencies to list rates from."""
    to_currency_code: CurrencyCodes = []
    """Currencies to list rates into."""


EXAMPLE: RowDocument = {
    "id": "example-eur-usd-2026-11-20",
    "name": "Example rate, euro in US dollars",
    "from_currency_code": "EUR",
    "to_currency_code": "USD",
    "rate": "1.1512",
    "as_of": "2026-11-20",
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {"rate": "1.1521"}
