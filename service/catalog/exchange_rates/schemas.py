"""Shapes of exchange rates."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from service.catalog.rows import RowInput, Versioned
from service.catalog.shapes import ListQuery
from service.kit.http.pages import NextPageToken
from service.schemas.base import CurrencyCode
from service.schemas.patches import patch_of
from service.schemas.tariffs import Day

Rate = Annotated[
    str,
    Field(pattern=r"^([0-9]*[1-9][0-9]*(\.[0-9]+)?|[0-9]+\.[0-9]*[1-9][0-9]*)$", max_length=32),
]
"""A decimal number above zero as text."""
CurrencyCodes = Annotated[list[CurrencyCode], Field(max_length=50)]


class ExchangeRateInput(RowInput):
    """What one unit of a currency was worth in another on a day."""

    from_currency_code: CurrencyCode
    """Currency of the one unit (ISO 4217)."""
    to_currency_code: CurrencyCode
    """Currency that the rate counts."""
    rate: Rate
    """Units of the second currency for one of the first, as decimal text above zero."""
    as_of: Day
    """Day of the rate. It holds until a newer one of the same pair."""


class ExchangeRate(ExchangeRateInput, Versioned):
    """An exchange rate of the catalog."""


if TYPE_CHECKING:
    ExchangeRatePatch = ExchangeRateInput
else:
    ExchangeRatePatch = patch_of(ExchangeRateInput, "ExchangeRatePatch")


class ExchangeRatePage(TypedDict):
    """A page of exchange rates."""

    items: list[ExchangeRate]
    next_page_token: NextPageToken


class ExchangeRateQuery(ListQuery):
    """Filters of exchange rates."""

    from_currency_code: CurrencyCodes = []
    """Currencies to list rates from."""
    to_currency_code: CurrencyCodes = []
    """Currencies to list rates into."""
