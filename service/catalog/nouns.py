"""The nouns of the catalog."""

from collections.abc import Mapping

from service.catalog.accelerators.schemas import Accelerator, AcceleratorInput, AcceleratorPatch
from service.catalog.accelerators.tables import AcceleratorRow
from service.catalog.exchange_rates.schemas import ExchangeRate, ExchangeRateInput, ExchangeRatePatch
from service.catalog.exchange_rates.service import checked_rate
from service.catalog.exchange_rates.tables import ExchangeRateRow
from service.catalog.grids.schemas import Grid, GridInput, GridPatch
from service.catalog.grids.tables import GridRow
from service.catalog.links.schemas import Link, LinkInput, LinkPatch
from service.catalog.links.tables import LinkRow
from service.catalog.models.schemas import Model, ModelInput, ModelPatch
from service.catalog.models.tables import ModelRow
from service.catalog.offers.schemas import Offer, OfferInput, OfferPatch
from service.catalog.offers.service import prices
from service.catalog.offers.tables import OfferRow
from service.catalog.rows import Document, Noun
from service.catalog.sites.schemas import Site, SiteInput, SitePatch
from service.catalog.sites.tables import SiteRow
from service.catalog.tariffs.schemas import Tariff, TariffInput, TariffPatch
from service.catalog.tariffs.service import checked_terms
from service.catalog.tariffs.tables import TariffRow
from service.catalog.token_prices.schemas import TokenPrice, TokenPriceInput, TokenPricePatch
from service.catalog.token_prices.service import checked_prices
from service.catalog.token_prices.tables import TokenPriceRow
from service.planning.errors import PlanningError
from service.planning.models.profile import profile_of
from service.planning.tariff.calendar import zone_of
from service.schemas.architectures import Architecture, to_planning


def _parameter_counts(document: Document) -> Document:
    try:
        profile = profile_of(to_planning(Architecture.model_validate(document["architecture"])))
    except PlanningError as error:
        raise PlanningError(error.code, f"/architecture{error.pointer}", error.detail) from error
    return {
        "parameter_count": profile.parameter_count,
        "active_parameter_count": profile.active_parameter_count,
    }


def _checked_accelerator(document: Document) -> Document:
    if (made := document.get("embodied_kg_co2e")) and not made["low"] <= made["value"] <= made["high"]:
        raise PlanningError("INTERVAL", "/embodied_kg_co2e", "low <= value <= high is expected")
    return {}


def _checked_grid(document: Document) -> Document:
    """Refuses a series by the clock of a zone that does not exist."""
    if zone := document.get("series", {}).get("time_zone"):
        zone_of(zone, "/series/time_zone")
    return {}


def _checked_site(document: Document) -> Document:
    if "time_zone" in document:
        zone_of(document["time_zone"])
    return {}


LINKS = Noun(name="links", table=LinkRow, created=LinkInput, patched=LinkPatch, resource=Link)
ACCELERATORS = Noun(
    name="accelerators",
    table=AcceleratorRow,
    created=AcceleratorInput,
    patched=AcceleratorPatch,
    resource=Accelerator,
    references={"intra_node_link_id": "links", "inter_node_link_id": "links"},
    derived=_checked_accelerator,
)
MODELS = Noun(
    name="models",
    table=ModelRow,
    created=ModelInput,
    patched=ModelPatch,
    resource=Model,
    derived=_parameter_counts,
)
OFFERS = Noun(
    name="offers",
    table=OfferRow,
    created=OfferInput,
    patched=OfferPatch,
    resource=Offer,
    references={"accelerator_id": "accelerators"},
    derived=prices,
)
GRIDS = Noun(
    name="grids", table=GridRow, created=GridInput, patched=GridPatch, resource=Grid, derived=_checked_grid
)
SITES = Noun(
    name="sites",
    table=SiteRow,
    created=SiteInput,
    patched=SitePatch,
    resource=Site,
    references={"grid_id": "grids", "tariff_id": "tariffs"},
    derived=_checked_site,
)
TARIFFS = Noun(
    name="tariffs",
    table=TariffRow,
    created=TariffInput,
    patched=TariffPatch,
    resource=Tariff,
    derived=checked_terms,
)
EXCHANGE_RATES = Noun(
    name="exchange_rates",
    table=ExchangeRateRow,
    created=ExchangeRateInput,
    patched=ExchangeRatePatch,
    resource=ExchangeRate,
    derived=checked_rate,
)
TOKEN_PRICES = Noun(
    name="token_prices",
    table=TokenPriceRow,
    created=TokenPriceInput,
    patched=TokenPricePatch,
    resource=TokenPrice,
    references={"model_id": "models"},
    derived=checked_prices,
)

_IN_ORDER = (LINKS, ACCELERATORS, MODELS, OFFERS, TOKEN_PRICES, GRIDS, TARIFFS, SITES, EXCHANGE_RATES)
NOUNS: Mapping[str, Noun] = {noun.name: noun for noun in _IN_ORDER}
"""By name; a noun stands behind those that it refers to."""
