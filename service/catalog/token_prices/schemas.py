"""Requests and answers of token prices."""

from typing import Annotated, Literal

from pydantic import MISSING, Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.offers.schemas import LONGEST_CONTENT, PriceListSource, RefusedRow, RefusedRowCount
from service.catalog.rows import EXAMPLE_SOURCES, DateText, RowDocument, RowInput, Versioned
from service.catalog.shapes import IdentifierFilter, ListQuery, TextFilter
from service.schemas.base import Integer, MoneyInput, ResourceId, StrictModel, Text


class TokenPriceRequest(RowInput):
    """A provider's list price for tokens of a model, for comparison."""

    provider: Text
    """Provider that serves the model."""
    model_name: Text
    """The provider's name of the model."""
    model_id: ResourceId | MISSING = MISSING
    """Model of the catalog with the same architecture."""
    input_price_per_million_tokens: MoneyInput
    """Price of a million input tokens."""
    output_price_per_million_tokens: MoneyInput
    """Price of a million generated tokens."""
    cached_input_price_per_million_tokens: MoneyInput | MISSING = MISSING
    """Price of a million input tokens that are found in a cache."""
    as_of: DateText
    """Date of the price."""
    doubt: Text | MISSING = MISSING
    """Reason why the price may be wrong."""


class TokenPrice(TokenPriceRequest, Versioned):
    """A token price of the catalog."""


class TokenPriceQuery(ListQuery):
    """Filters of token prices."""

    provider: TextFilter = []
    """Providers to list."""
    model_id: IdentifierFilter = []
    """Models of the catalog to list prices of."""


TokenPriceFormat = TypeAliasType("TokenPriceFormat", Literal["litellm", "dated_csv"])


class TokenPriceImportRequest(StrictModel):
    """A list of token prices in the format of its publisher."""

    format: TokenPriceFormat
    """Format of the content: model_prices_and_context_window.json of litellm, or a CSV of dated prices whose
    rows name their date and source."""
    content: Annotated[str, Field(min_length=1, max_length=LONGEST_CONTENT)]
    """The file as text."""
    provider: Text | MISSING = MISSING
    """Provider whose prices to import, as the list names it. Defaults to all providers."""
    as_of: DateText
    """Date of the prices. Rows of dated_csv state their own."""
    source: PriceListSource


@with_config(use_attribute_docstrings=True)
class ImportedTokenPrices(TypedDict):
    """Result of importing a list of token prices."""

    created: list[ResourceId]
    """Ids of new token prices."""
    changed: list[ResourceId]
    """Ids of token prices that have a new version."""
    unchanged: list[ResourceId]
    """Ids of token prices that were already stored with the same content."""
    refused: list[RefusedRow]
    """First thousand models without a price of tokens, with the reason."""
    refused_reasons: list[RefusedRowCount]
    """All refused models by reason."""
    row_count: Integer
    """Number of models that were read."""


EXAMPLE: RowDocument = {
    "id": "example-cloud-example-decoder",
    "name": "Example Cloud, example decoder",
    "provider": "example-cloud",
    "model_name": "example/decoder",
    "model_id": "llama-3.3-70b",
    "input_price_per_million_tokens": {"amount": "0.59", "currency_code": "USD"},
    "output_price_per_million_tokens": {"amount": "0.79", "currency_code": "USD"},
    "as_of": "2026-11-20",
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {
    "output_price_per_million_tokens": {"amount": "0.75", "currency_code": "USD"},
    "as_of": "2026-11-21",
}
