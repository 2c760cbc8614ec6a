"""Rows of the catalog as planning values, with their names and the keys by which estimates look them up."""

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter

from service.catalog.hardware_prices.service import compute_device_price
from service.catalog.offers.service import compute_instance_price, get_currency, parse_term
from service.catalog.rows import RowDocument
from service.evidence.service import load_reference_curves
from service.formats.instances import InstanceType
from service.planning.cost.exchange import ExchangeRate
from service.planning.cost.prices import device_price
from service.planning.energy.carbon import IntensitySeries
from service.planning.hardware.cluster import Accelerator, ReferenceServer, memory_capacity
from service.planning.hardware.links import Link, LinkKind, Torus
from service.planning.precision import parse_peaks
from service.planning.quantity import EvidenceBasis, Quantity
from service.resolve.catalog import (
    KnownAccelerator,
    KnownGrid,
    KnownHardwarePrice,
    KnownLink,
    KnownLinks,
    KnownModel,
    KnownOffer,
    KnownSite,
    KnownSystem,
    KnownTariff,
    KnownTokenPrice,
)
from service.resolve.model_names import list_model_keys
from service.resolve.row_layers import NamedRow, build_named_row
from service.schemas.base import EstimateSource, SourceKind
from service.schemas.carbon import (
    CarbonIntensitySeriesInput,
    HoursOfYearIntensityInput,
    IntervalIntensityInput,
    MonthHoursIntensityInput,
)
from service.schemas.carbon import to_planning as series_of
from service.schemas.tariffs import TariffTerms

_ON_CHIP = "SRAM"
"""Kind of a memory that lies on the chip."""


SHADOWED = "shadows_shipped_version"
_CITATIONS_SHOWN = 3
_CITATION_LENGTH = 100


@lru_cache(maxsize=8192)
def _shorten_citation(citation: str) -> str:
    """Returns a citation up to its first detail; the row itself has the whole text."""
    head = re.split(r"[:;(]", citation, maxsplit=1)[0].strip()
    return head if len(head) <= _CITATION_LENGTH else f"{head[:_CITATION_LENGTH]}..."


def _build_source(kind: SourceKind, row: RowDocument) -> EstimateSource:
    # No figure follows from the source of a name.
    told = [source for source in row["sources"] if source["pointers"] != ["/aliases"]]
    cited = dict.fromkeys(f"{_shorten_citation(s['citation'])}, {s['as_of']}" for s in told)
    shown = "; ".join(list(cited)[:_CITATIONS_SHOWN])
    if len(cited) > _CITATIONS_SHOWN:
        shown += f"; and {len(cited) - _CITATIONS_SHOWN} more"
    source: EstimateSource = {
        "pointer": "",
        "kind": kind,
        "id": row["id"],
        "version": row.get("version", 1),
        "origin": row.get("origin", "shipped"),
        "citation": shown,
    }
    if SHADOWED in row:
        source["shadows_shipped_version"] = row[SHADOWED]
    return source


def _build_model(row: RowDocument) -> KnownModel:
    return KnownModel(
        row["architecture"],
        row.get("context_tokens"),
        _build_source("model", row),
        row.get("quantization_config"),
    )


def _build_embodied(figure: RowDocument | None) -> Quantity | None:
    if figure is None:
        return None
    return Quantity(figure["value"], figure["low"], figure["high"], EvidenceBasis.DATASHEET)


def _build_links(members: RowDocument) -> KnownLinks:
    return KnownLinks(
        members.get("intra_node_link_id"),
        members.get("inter_node_link_id"),
        members.get("network_interfaces_per_device", 1.0),
    )


def _build_accelerator(row: RowDocument) -> KnownAccelerator:
    server = row.get("server")
    accelerator = Accelerator(
        id=row["id"],
        generation=row.get("generation", ""),
        capacity_bytes=memory_capacity(
            label_gb=row.get("memory_label_gb"),
            label_reading=row.get("memory_label_reading", "unknown"),
            reported_bytes=row.get("memory_reported_bytes"),
            reported_share=load_reference_curves().reported_memory,
        ),
        bandwidth_bytes_per_second=row.get("memory_bandwidth_bytes_per_second"),
        peak_flops_per_second=parse_peaks(row.get("peak_flops_per_second", {})),
        power_limit_watts=row.get("power_limit_watts"),
        server=ReferenceServer(**server) if server else None,
        embodied_kg_co2e=_build_embodied(row.get("embodied_kg_co2e")),
        is_on_chip=row.get("memory_kind") == _ON_CHIP,
    )
    systems = tuple(
        KnownSystem(each["name"], each["accelerators_per_node"], _build_links(row | each))
        for each in row.get("systems", [])
    )
    source = _build_source("accelerator", row)
    return KnownAccelerator(accelerator, source, _build_links(row), systems, row.get("pcie_generation"))


def _build_link(row: RowDocument) -> KnownLink:
    link = Link(
        LinkKind(row["kind"]),
        row["bandwidth_bytes_per_second"],
        row.get("latency_seconds"),
        joined=row.get("joined_count", 1),
        in_network=row.get("in_network_reduction", False),
        torus=Torus(row["torus"]["axes"], row["torus"]["ring_count"]) if "torus" in row else None,
    )
    return KnownLink(link, _build_source("link", row))


def _build_offer(row: RowDocument) -> KnownOffer:
    count = row.get("accelerator_count", 1)
    each = compute_instance_price(row)
    includes = row.get("includes")
    return KnownOffer(
        accelerator_id=row["accelerator_id"],
        purchase_option=row["purchase_option"],
        price_per_device_hour=device_price(each, count),
        currency_code=get_currency(row),
        as_of=row["as_of"],
        source=_build_source("offer", row),
        provider=row["provider"],
        price_per_instance_hour=each,
        accelerator_count=count,
        region=row.get("region"),
        zone=row.get("zone"),
        instance_type=row.get("instance_type"),
        term=parse_term(row),
        billing_increment_seconds=row.get("billing_increment_seconds"),
        minimum_billed_seconds=row.get("minimum_billed_seconds"),
        includes=None if includes is None else frozenset(includes),
        valid_from=row.get("valid_from"),
        valid_until=row.get("valid_until"),
        doubt=row.get("doubt"),
    )


def _build_token_price(row: RowDocument) -> KnownTokenPrice:
    def parse_amount(member: str) -> Decimal:
        return Decimal(row[f"{member}_price_per_million_tokens"]["amount"])

    return KnownTokenPrice(
        provider=row["provider"],
        model_name=row["model_name"],
        model_id=row.get("model_id"),
        input_per_million=parse_amount("input"),
        output_per_million=parse_amount("output"),
        cached_input_per_million=(
            parse_amount("cached_input") if "cached_input_price_per_million_tokens" in row else None
        ),
        currency_code=row["input_price_per_million_tokens"]["currency_code"],
        as_of=row["as_of"],
        source=_build_source("token_price", row),
    )


def _build_hardware_price(row: RowDocument) -> KnownHardwarePrice:
    price = compute_device_price(row)
    return KnownHardwarePrice(
        accelerator_id=row["accelerator_id"],
        accelerator_count=row.get("accelerator_count", 1),
        price_per_device=price.amount,
        currency_code=price.currency_code,
        as_of=row["as_of"],
        source=_build_source("hardware_price", row),
        low=price.low,
        high=price.high,
        has_host="host" in row.get("includes", ()),
        doubt=row.get("doubt"),
    )


_SERIES: TypeAdapter[HoursOfYearIntensityInput | MonthHoursIntensityInput | IntervalIntensityInput] = (
    TypeAdapter(CarbonIntensitySeriesInput)
)


def _parse_series(given: RowDocument) -> IntensitySeries:
    return series_of(_SERIES.validate_json(json.dumps(given)), "/series")


def _build_grid(row: RowDocument) -> KnownGrid:
    return KnownGrid(
        carbon_intensity_kg_co2e_per_kwh=row["carbon_intensity_kg_co2e_per_kwh"],
        accounting=row["accounting"],
        water_liters_per_kwh=row.get("water_liters_per_kwh"),
        source=_build_source("grid", row),
        emission_rate=row["emission_rate"],
        series=_parse_series(row["series"]) if "series" in row else None,
    )


def _build_site(row: RowDocument) -> KnownSite:
    onsite = row.get("water_usage_effectiveness_liters_per_kwh")
    return KnownSite(
        row["pue"],
        row.get("grid_id"),
        onsite,
        _build_source("site", row),
        tariff_id=row.get("tariff_id"),
        time_zone=row.get("time_zone"),
    )


def _build_tariff(row: RowDocument) -> KnownTariff:
    terms = {name: row[name] for name in TariffTerms.model_fields if name in row}
    return KnownTariff(row["name"], terms, _build_source("tariff", row))


def _build_exchange_rate(row: RowDocument) -> ExchangeRate:
    source = _build_source("exchange_rate", row)
    return ExchangeRate(
        row["from_currency_code"],
        row["to_currency_code"],
        Decimal(row["rate"]),
        date.fromisoformat(row["as_of"]),
        source["citation"],
        source,
    )


BUILDERS: Mapping[str, Callable[[RowDocument], Any]] = {
    "models": _build_model,
    "accelerators": _build_accelerator,
    "links": _build_link,
    "offers": _build_offer,
    "token_prices": _build_token_price,
    "hardware_prices": _build_hardware_price,
    "grids": _build_grid,
    "sites": _build_site,
    "tariffs": _build_tariff,
    "exchange_rates": _build_exchange_rate,
}
"""Functions that build planning values from rows, by resource. Estimates read no other resources."""


def _list_keys(resource: str, row: RowDocument) -> Iterator[tuple[str, Hashable]]:
    """Yields the values by which estimates look a row up, beside its names."""
    if resource == "models":
        yield from list_model_keys((row["id"], *row.get("aliases", ())))
    if resource == "exchange_rates":
        yield "pair", (row["from_currency_code"], row["to_currency_code"])
    if resource in ("offers", "token_prices"):
        yield "as_of", row["as_of"]
    if resource == "token_prices" and "model_id" in row:
        yield "model_id", row["model_id"]
    if resource == "offers":
        yield "accelerator_id", row["accelerator_id"]
        if "instance_type" in row:
            count = row.get("accelerator_count", 1)
            yield "instance_type", InstanceType(row["instance_type"], row["accelerator_id"], count)


def name_row(resource: str, row: RowDocument) -> NamedRow:
    """Returns a row as a planning value, with its names and keys."""
    traits: tuple[str, ...] = ()
    if resource == "accelerators":
        size = f"{row['memory_label_gb']:g}GB" if "memory_label_gb" in row else ""
        traits = (row.get("form_factor", ""), row.get("memory_kind", ""), size)
    return build_named_row(
        row["id"],
        row.get("aliases", ()),
        BUILDERS[resource](row),
        row["name"] if resource in ("accelerators", "models") else None,
        traits,
        shown=str(row.get("name") or row["id"]),
        version=row.get("version", 1),
        keys=_list_keys(resource, row),
    )
