"""Snapshots of the catalog and calibrations of a tenant, rebuilt when a revision that it sees changes."""

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from typing import Annotated, Any, NamedTuple

from fastapi import Request
from pydantic import TypeAdapter

from service.calibrations import service as calibrations
from service.catalog import service as catalog
from service.catalog.hardware_prices.service import compute_device_price
from service.catalog.offers.service import compute_instance_price, get_currency, parse_term
from service.catalog.rows import RowDocument
from service.catalog.shipped import list_shipped_documents
from service.evidence.service import load_reference_curves
from service.kit.database.engine import Database
from service.kit.http.problems import BadRequest, FieldError, Unavailable
from service.kit.http.web import from_state
from service.kit.security.principals import SHIPPED_TENANT
from service.nodes import service as nodes
from service.planning.cost.exchange import ExchangeRate, ExchangeRates
from service.planning.cost.prices import device_price
from service.planning.energy.carbon import IntensitySeries
from service.planning.hardware.cluster import Accelerator, ReferenceServer, memory_capacity
from service.planning.hardware.links import Link, LinkKind, Torus
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity
from service.resolve.accelerator_names import AcceleratorRows
from service.resolve.catalog import (
    CatalogView,
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
from service.resolve.instances import list_instances
from service.resolve.model_names import ModelRows
from service.resolve.names import NamedRow, NamedRows, build_named_row
from service.schemas.base import EstimateSource, SourceKind
from service.schemas.carbon import (
    CarbonIntensitySeriesInput,
    HoursOfYearIntensityInput,
    IntervalIntensityInput,
    MonthHoursIntensityInput,
)
from service.schemas.carbon import to_planning as series_of
from service.schemas.tariffs import TariffTerms

WAIT_SECONDS = 2.0
"""Longest time that a request waits for a snapshot as new as the revision that it sends."""

_NUMBER_FORMATS = frozenset(NumberFormat)
_ON_CHIP = "SRAM"
"""Kind of a memory that lies on the chip."""


_SHADOWED = "shadows_shipped_version"
_CITATIONS_SHOWN = 3
_CITATION_LENGTH = 100


def _shorten_citation(citation: str) -> str:
    """Returns a citation up to its first detail; the row itself has the whole text."""
    head = re.split(r"[:;(]", citation, maxsplit=1)[0].strip()
    return head if len(head) <= _CITATION_LENGTH else f"{head[:_CITATION_LENGTH]}..."


def _build_source(kind: SourceKind, row: RowDocument) -> EstimateSource:
    cited = dict.fromkeys(f"{_shorten_citation(s['citation'])}, {s['as_of']}" for s in row["sources"])
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
    if _SHADOWED in row:
        source["shadows_shipped_version"] = row[_SHADOWED]
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
    rates = row.get("peak_flops_per_second", {})
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
        peak_flops_per_second={
            NumberFormat(name): float(rate) for name, rate in rates.items() if name in _NUMBER_FORMATS
        },
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


class _RowEntry(NamedTuple):
    """A row as a planning value, with all its names."""

    id: str
    version: int
    named: NamedRow


_RowLayer = Mapping[str, Sequence[_RowEntry]]
"""Rows of one owner, by the name of their resource."""

_BUILDERS: Mapping[str, Callable[[RowDocument], Any]] = {
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


def _name_row(resource: str, row: RowDocument) -> NamedRow:
    traits: tuple[str, ...] = ()
    if resource == "accelerators":
        size = f"{row['memory_label_gb']:g}GB" if "memory_label_gb" in row else ""
        traits = (row.get("form_factor", ""), row.get("memory_kind", ""), size)
    title = row["name"] if resource in ("accelerators", "models") else None
    named = build_named_row(row["id"], row.get("aliases", ()), _BUILDERS[resource](row), title, traits)
    return replace(named, title=str(row.get("name") or row["id"]))


def _build_layer(rows: catalog.DocumentsByNoun) -> _RowLayer:
    return {
        name: [_RowEntry(row["id"], row.get("version", 1), _name_row(name, row)) for row in rows[name]]
        for name in _BUILDERS
    }


def _add_shadowed_versions(rows: catalog.DocumentsByNoun, shipped: _RowLayer) -> catalog.DocumentsByNoun:
    """Returns the rows of a tenant, each with the version of the shipped row that it shadows."""
    marked = {}
    for name, entries in shipped.items():
        behind = {entry.id: entry.version for entry in entries}
        marked[name] = [
            {**row, _SHADOWED: behind[row["id"]]} if row["id"] in behind else row for row in rows[name]
        ]
    return marked


_INTERPRETED = {"models", "accelerators"}
"""Resources whose names are read, not only looked up."""


def _index_rows(names: Iterable[str], shipped: _RowLayer, own: _RowLayer) -> dict[str, Any]:
    """Returns the rows of resources by any of their names, those of a tenant before the shipped ones."""
    layers = {
        name: [[entry.named for entry in layer.get(name, ())] for layer in (shipped, own)] for name in names
    }
    found: dict[str, Any] = {name: NamedRows(*of) for name, of in layers.items() if name not in _INTERPRETED}
    if "exchange_rates" in found:
        # The tenant's rates come last: of two rates for one pair and day the later one is used.
        found["exchange_rates"] = ExchangeRates(found["exchange_rates"].values())
    if "models" in layers:
        found["models"] = ModelRows(
            *layers["models"], store=lambda model, form: model.store_as(form.quantization_config)
        )
    if "accelerators" in layers:
        found["accelerators"] = _name_accelerators(layers["accelerators"], found["offers"])
    return found


def _build_common_snapshot(revision: int, shipped: _RowLayer) -> CatalogView:
    """Builds the snapshot of the shipped rows alone."""
    return CatalogView(
        revision=revision, curves=load_reference_curves(), **_index_rows(_BUILDERS, shipped, {})
    )


def _build_tenant_snapshot(
    common: CatalogView,
    revision: int,
    shipped: _RowLayer,
    own: _RowLayer,
    measured: calibrations.TenantMeasurements,
) -> CatalogView:
    """Builds the snapshot of a tenant: its own rows before the shipped ones, and its measurements.

    A resource of which the tenant has no row of its own is that of the common snapshot.
    """
    changed = {name for name, rows in own.items() if rows}
    if "offers" in changed or "accelerators" in changed:
        # An accelerator is found by the instance types that offers name.
        changed |= {"offers", "accelerators"}
    return replace(
        common,
        revision=revision,
        calibrations=measured.calibrations,
        measured_answers=measured.answers,
        **_index_rows(changed, shipped, own),
    )


def _name_accelerators(
    layers: Sequence[Sequence[NamedRow]], offers: Mapping[str, KnownOffer]
) -> AcceleratorRows:
    accelerators = {entry.id: entry.row for layer in layers for entry in layer}
    return AcceleratorRows(*layers, instances=list_instances(accelerators, offers.values()))


@cache
def build_shipped_snapshot(revision: int = 0) -> CatalogView:
    """Builds the snapshot of the shipped files, without a database."""
    return _build_common_snapshot(revision, _build_layer(list_shipped_documents()))


REVISION_DIGITS = 15
"""Most digits of a catalog revision."""


class SnapshotStore:
    """The current snapshots of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shipped: _RowLayer = {}
        self._revisions: Mapping[str, int] = {}
        self._common: CatalogView | None = None
        self._tenants: Mapping[str, CatalogView] = {}
        self._census = nodes.NodeCensus(0, None)
        self._nodes: Mapping[str, frozenset[str]] = {}
        self._lock = threading.Lock()

    def get_current(self, tenant_id: str) -> CatalogView:
        """Returns the newest snapshot of a tenant; 503 before the first."""
        found = self._tenants.get(tenant_id, self._common)
        if found is None:
            raise Unavailable("The catalog is not loaded yet", headers={"Retry-After": "1"})
        return found

    def newest(self, tenant_id: str) -> CatalogView:
        """Returns a current snapshot of a tenant, including recent writes of other processes."""
        self.refresh()
        return self.get_current(tenant_id)

    @property
    def is_ready(self) -> bool:
        """True if there is a snapshot of a loaded catalog."""
        return self._common is not None

    def refresh(self) -> None:
        """Rebuilds the snapshots of tenants whose rows have changed since the last refresh."""
        with self._lock, self._database.open_reader() as session:
            revisions = catalog.list_own_revisions(session)
            base = revisions.get(SHIPPED_TENANT, 0)
            census = nodes.read_census(session)
            if not base or (revisions == self._revisions and census == self._census):
                return
            own_nodes = self._nodes if census == self._census else nodes.list_ids_by_tenant(session)
            tenants = {name: seen for name, seen in self._tenants.items() if name in revisions}
            common = self._common
            if common is None or common.revision != base:
                self._shipped = _build_layer(catalog.list_own_documents(session, SHIPPED_TENANT))
                common = replace(_build_common_snapshot(base, self._shipped), node_ids=frozenset())
                tenants = {}
            stale = {name for name in revisions if revisions[name] != self._revisions.get(name)}
            for tenant_id in (stale | (revisions.keys() - tenants.keys())) - {SHIPPED_TENANT}:
                rows = _add_shadowed_versions(catalog.list_own_documents(session, tenant_id), self._shipped)
                measured = calibrations.build_planning_values(session, tenant_id)
                revision = base + revisions[tenant_id]
                tenants[tenant_id] = _build_tenant_snapshot(
                    common, revision, self._shipped, _build_layer(rows), measured
                )
            for tenant_id in tenants.keys() | own_nodes.keys():
                seen, own = tenants.get(tenant_id, common), own_nodes.get(tenant_id, frozenset())
                tenants[tenant_id] = seen if seen.node_ids == own else replace(seen, node_ids=own)
            # The common snapshot is set last, so that it never appears in an incomplete state.
            self._tenants, self._common = tenants, common
            self._revisions, self._census, self._nodes = revisions, census, own_nodes

    async def get_requested(self, scope: Mapping[str, Any]) -> CatalogView:
        """Returns the snapshot of the caller, as new as the `Catalog-Revision` that the request sends."""
        tenant_id = scope["state"]["subject"].tenant_id
        asked = next((value for name, value in scope["headers"] if name == b"catalog-revision"), None)
        if asked is None:
            return self.get_current(tenant_id)
        if not asked.isdigit() or len(asked) > REVISION_DIGITS:
            detail = "Catalog-Revision must be a whole number"
            raise BadRequest(detail, FieldError("/header/Catalog-Revision", "INTEGER", detail))
        return await self.await_revision(tenant_id, int(asked))

    async def await_revision(self, tenant_id: str, revision: int) -> CatalogView:
        """Returns a snapshot of a tenant that contains ``revision``; 503 if none is ready in time."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.get_current(tenant_id).revision < revision:
            if time.monotonic() > deadline:
                detail = "No snapshot of the requested revision was ready in time"
                raise Unavailable(detail, headers={"Retry-After": "1"})
            await asyncio.to_thread(self.refresh)
            await asyncio.sleep(0.05)
        return self.get_current(tenant_id)


Snapshots = Annotated[SnapshotStore, from_state("snapshots")]


async def get_requested_snapshot(request: Request) -> CatalogView:
    """Returns the snapshot that the caller of a request sees."""
    store: SnapshotStore = request.app.state.snapshots
    return await store.get_requested(request.scope)


@lru_cache(maxsize=1)
def get_store(database: Database) -> SnapshotStore:
    """Returns the store of this process for a database, shared by requests and jobs to save memory."""
    return SnapshotStore(database)
