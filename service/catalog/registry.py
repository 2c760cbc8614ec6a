"""Registry of the catalog's resources, each with its schema, its table, its data and its rules."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from typing_extensions import TypedDict

from service.catalog.accelerators import schemas as accelerators
from service.catalog.accelerators.service import check_accelerator
from service.catalog.accelerators.tables import AcceleratorRow
from service.catalog.exchange_rates import schemas as exchange_rates
from service.catalog.exchange_rates.service import check_rate
from service.catalog.exchange_rates.tables import ExchangeRateRow
from service.catalog.grids import schemas as grids
from service.catalog.grids.service import check_grid
from service.catalog.grids.tables import GridRow
from service.catalog.hardware_prices import schemas as hardware_prices
from service.catalog.hardware_prices.service import derive_price
from service.catalog.hardware_prices.tables import HardwarePriceRow
from service.catalog.links import schemas as links
from service.catalog.links.tables import LinkRow
from service.catalog.models import schemas as models
from service.catalog.models.service import add_architecture, count_parameters
from service.catalog.models.tables import ModelRow
from service.catalog.offers import schemas as offers
from service.catalog.offers.service import derive_prices
from service.catalog.offers.tables import OfferRow
from service.catalog.rows import CatalogRow, RowDocument, RowInput
from service.catalog.shapes import ListQuery
from service.catalog.sites import schemas as sites
from service.catalog.sites.service import check_site
from service.catalog.sites.tables import SiteRow
from service.catalog.tariffs import schemas as tariffs
from service.catalog.tariffs.service import check_terms
from service.catalog.tariffs.tables import TariffRow
from service.catalog.token_prices import schemas as token_prices
from service.catalog.token_prices.service import check_prices
from service.catalog.token_prices.tables import TokenPriceRow
from service.kit.database.search import fold_case
from service.kit.http.pages import NextPageToken
from service.schemas.base import StrictModel
from service.schemas.patches import build_patch_shape


def _derive_nothing(_document: RowDocument) -> RowDocument:
    return {}


class RowReference(NamedTuple):
    """Id of a row of the resource ``target``, at a pointer of the row that refers to it."""

    pointer: str
    target: str
    row_id: str


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One kind of row. Its table names it in addresses, scopes, operations and the folder of its data.

    ``references`` maps a member to the resource whose id it holds; ``list/member`` names a member of each
    object of a list. ``searched`` are members, written alike, by which a list finds rows, beside id, name and
    aliases.
    ``derive`` computes members that the table keeps and the answer has, but callers do not
    send, and raises :class:`PlanningError` for a row that contradicts itself. ``read`` turns an entry of the
    shipped file into a row.
    """

    description: str
    table: type[CatalogRow]
    schema: type[StrictModel]
    input: type[RowInput]
    query: type[ListQuery]
    example: RowDocument
    """Example body that creates a row."""
    example_patch: RowDocument
    """Example body that changes the row."""
    references: Mapping[str, str] = field(default_factory=dict)
    searched: tuple[str, ...] = ()
    derive: Callable[[RowDocument], RowDocument] = _derive_nothing
    read: Callable[[RowDocument], RowDocument] = dict

    @property
    def name(self) -> str:
        """Name of the resource, in the plural."""
        name: str = self.table.__tablename__
        return name

    def has_words(self, document: RowDocument, text: str) -> bool:
        """Returns true if a row has every word of ``text`` where a list searches for it."""
        searched = fold_case(" ".join(map(str, self._list_searched(document))))
        return all(word in searched for word in fold_case(text).split())

    def _list_searched(self, document: RowDocument) -> Iterator[object]:
        for name in ("id", "name", *self.searched):
            outer, _, inner = name.rpartition("/")
            objects = document.get(outer, []) if outer else [document]
            yield from (one[inner] for one in objects if inner in one)
        yield from document.get("aliases", ())

    def list_references(self, document: RowDocument) -> Iterator[RowReference]:
        """Yields the ids of other rows that a row holds."""
        for member, target in self.references.items():
            outer, _, inner = member.rpartition("/")
            objects = document.get(outer, []) if outer else [document]
            for index, each in enumerate(objects):
                if inner in each:
                    yield RowReference(
                        f"/{outer}/{index}/{inner}" if outer else f"/{inner}", target, each[inner]
                    )

    @property
    def kind(self) -> str:
        """Name of one row."""
        return self.name.removesuffix("s")

    @property
    def path(self) -> str:
        """Name of the resource in addresses and scopes."""
        return self.name.replace("_", "-")

    @cached_property
    def patch(self) -> type[StrictModel]:
        """Shape of a change."""
        return build_patch_shape(self.input, f"{self.schema.__name__}Patch")

    @cached_property
    def page(self) -> Any:  # noqa: ANN401
        """Shape of a page."""
        members = {"items": list[self.schema], "next_page_token": NextPageToken}  # type: ignore[name-defined]
        page = TypedDict(f"{self.schema.__name__}Page", members)  # type: ignore[misc]
        page.__doc__ = f"A page of {self.name.replace('_', ' ')}."
        return page


MODELS = Resource(
    description="Models: architectures with a name.",
    table=ModelRow,
    schema=models.Model,
    input=models.ModelRequest,
    query=models.ModelQuery,
    searched=("hub_id",),
    example=models.EXAMPLE,
    example_patch=models.EXAMPLE_PATCH,
    derive=count_parameters,
    read=add_architecture,
)
ACCELERATORS = Resource(
    description="Accelerators as sold.",
    table=AcceleratorRow,
    schema=accelerators.Accelerator,
    input=accelerators.AcceleratorRequest,
    query=accelerators.AcceleratorQuery,
    searched=("vendor", "generation", "form_factor", "systems/name"),
    example=accelerators.EXAMPLE,
    example_patch=accelerators.EXAMPLE_PATCH,
    references={
        "intra_node_link_id": "links",
        "inter_node_link_id": "links",
        "systems/intra_node_link_id": "links",
        "systems/inter_node_link_id": "links",
    },
    derive=check_accelerator,
)
LINKS = Resource(
    description="Links between accelerators and between nodes.",
    table=LinkRow,
    schema=links.Link,
    input=links.LinkRequest,
    query=links.LinkQuery,
    searched=("kind",),
    example=links.EXAMPLE,
    example_patch=links.EXAMPLE_PATCH,
)
OFFERS = Resource(
    description="Dated prices of instances with accelerators.",
    table=OfferRow,
    schema=offers.Offer,
    input=offers.OfferRequest,
    query=offers.OfferQuery,
    searched=("provider", "region", "zone", "instance_type", "accelerator_id", "purchase_option"),
    example=offers.EXAMPLE,
    example_patch=offers.EXAMPLE_PATCH,
    references={"accelerator_id": "accelerators"},
    derive=derive_prices,
)
TOKEN_PRICES = Resource(
    description="List prices of tokens by provider, for comparison.",
    table=TokenPriceRow,
    schema=token_prices.TokenPrice,
    input=token_prices.TokenPriceRequest,
    query=token_prices.TokenPriceQuery,
    searched=("provider", "model_name", "model_id"),
    example=token_prices.EXAMPLE,
    example_patch=token_prices.EXAMPLE_PATCH,
    references={"model_id": "models"},
    derive=check_prices,
)
HARDWARE_PRICES = Resource(
    description="Dated prices of buying accelerators, servers and racks.",
    table=HardwarePriceRow,
    schema=hardware_prices.HardwarePrice,
    input=hardware_prices.HardwarePriceRequest,
    query=hardware_prices.HardwarePriceQuery,
    example=hardware_prices.EXAMPLE,
    example_patch=hardware_prices.EXAMPLE_PATCH,
    references={"accelerator_id": "accelerators"},
    derive=derive_price,
)
TARIFFS = Resource(
    description="Electricity tariffs: dated charges on a local clock.",
    table=TariffRow,
    schema=tariffs.Tariff,
    input=tariffs.TariffRequest,
    query=tariffs.TariffQuery,
    searched=("utility", "time_zone", "currency_code"),
    example=tariffs.EXAMPLE,
    example_patch=tariffs.EXAMPLE_PATCH,
    derive=check_terms,
)
EXCHANGE_RATES = Resource(
    description="Exchange rates of currencies by day.",
    table=ExchangeRateRow,
    schema=exchange_rates.ExchangeRate,
    input=exchange_rates.ExchangeRateRequest,
    query=exchange_rates.ExchangeRateQuery,
    searched=("from_currency_code", "to_currency_code", "as_of"),
    example=exchange_rates.EXAMPLE,
    example_patch=exchange_rates.EXAMPLE_PATCH,
    derive=check_rate,
)
GRIDS = Resource(
    description="Carbon intensity and water of electricity grids.",
    table=GridRow,
    schema=grids.Grid,
    input=grids.GridRequest,
    query=grids.GridQuery,
    searched=("code", "kind"),
    example=grids.EXAMPLE,
    example_patch=grids.EXAMPLE_PATCH,
    derive=check_grid,
)
SITES = Resource(
    description="Buildings that house devices, with their grid and tariff.",
    table=SiteRow,
    schema=sites.Site,
    input=sites.SiteRequest,
    query=sites.SiteQuery,
    searched=("grid_id", "tariff_id", "time_zone"),
    example=sites.EXAMPLE,
    example_patch=sites.EXAMPLE_PATCH,
    references={"grid_id": "grids", "tariff_id": "tariffs"},
    derive=check_site,
)

_IN_ORDER = (
    MODELS,
    ACCELERATORS,
    LINKS,
    OFFERS,
    TOKEN_PRICES,
    HARDWARE_PRICES,
    TARIFFS,
    EXCHANGE_RATES,
    GRIDS,
    SITES,
)
RESOURCES: Mapping[str, Resource] = {resource.name: resource for resource in _IN_ORDER}
"""Resources by name, in the order of the API document."""
KINDS: Mapping[str, Resource] = {resource.kind: resource for resource in _IN_ORDER}
"""Resources by the name of one row."""
