"""Shapes of tariffs."""

from typing import TYPE_CHECKING, Annotated

from pydantic import MISSING, Field
from typing_extensions import TypedDict

from service.catalog.rows import RowInput, Versioned
from service.catalog.shapes import ListQuery, Words, patch_of
from service.kit.pages import NextPageToken
from service.questions.base import CurrencyCode, Text
from service.questions.tariffs import TariffTerms, TimeZone


class TariffInput(TariffTerms, RowInput):
    """What electricity is charged by."""

    utility: Text | MISSING = MISSING
    """Who charges by it."""


class Tariff(TariffInput, Versioned):
    """A tariff of the catalog."""


if TYPE_CHECKING:
    TariffPatch = TariffInput
else:
    TariffPatch = patch_of(TariffInput, "TariffPatch")


class TariffPage(TypedDict):
    """A page of tariffs."""

    items: list[Tariff]
    next_page_token: NextPageToken


class TariffQuery(ListQuery):
    """Filters of tariffs."""

    name: Words = []
    """Names to list."""
    utility: Words = []
    """Utilities to list tariffs of."""
    currency_code: Annotated[list[CurrencyCode], Field(max_length=50)] = []
    """Currencies to list tariffs in."""
    time_zone: Annotated[list[TimeZone], Field(max_length=50)] = []
    """Time zones to list tariffs of."""
