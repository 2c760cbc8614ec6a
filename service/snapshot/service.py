"""Builds snapshots, and swaps the current one when the catalog's revision changes."""

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeVar

from service.catalog import service as catalog
from service.catalog.rows import Document
from service.catalog.shipped import shipped_documents
from service.evidence.service import reference_curves
from service.kit.database import Database
from service.kit.problems import Unavailable
from service.planning.cluster import Accelerator, Server, memory_capacity
from service.planning.curves import ReferenceCurves
from service.planning.precision import NumberFormat
from service.planning.profile import profile_of
from service.questions.architectures import Architecture, to_planning
from service.questions.base import Source
from service.questions.catalog import (
    KnownAccelerator,
    KnownGrid,
    KnownLink,
    KnownModel,
    KnownOffer,
    KnownSite,
)

log = logging.getLogger(__name__)

WAIT_SECONDS = 2.0
"""How long a request waits for a snapshot as new as the revision that it sends."""

_NUMBER_FORMATS = frozenset(NumberFormat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every live row as planning values, by id and alias, as of one revision."""

    revision: int
    curves: ReferenceCurves
    models: Mapping[str, KnownModel]
    accelerators: Mapping[str, KnownAccelerator]
    links: Mapping[str, KnownLink]
    offers: Mapping[str, KnownOffer]
    grids: Mapping[str, KnownGrid]
    sites: Mapping[str, KnownSite]


_Kind = Literal["model", "accelerator", "link", "offer", "grid", "site"]
_CITATIONS_SHOWN = 3
_CITATION_LENGTH = 100


def _short(citation: str) -> str:
    """A citation up to its first detail; the row itself has the whole."""
    head = re.split(r"[:;(]", citation, maxsplit=1)[0].strip()
    return head if len(head) <= _CITATION_LENGTH else f"{head[:_CITATION_LENGTH]}..."


def _source(kind: _Kind, row: Document) -> Source:
    cited = dict.fromkeys(f"{_short(s['citation'])}, {s['as_of']}" for s in row["sources"])
    shown = "; ".join(list(cited)[:_CITATIONS_SHOWN])
    if len(cited) > _CITATIONS_SHOWN:
        shown += f"; and {len(cited) - _CITATIONS_SHOWN} more"
    version = row.get("version", 1)
    return {"pointer": "", "kind": kind, "id": row["id"], "version": version, "citation": shown}


def _model(row: Document) -> KnownModel:
    architecture = Architecture.model_validate(row["architecture"])
    profile = profile_of(to_planning(architecture))
    return KnownModel(profile, row.get("context_tokens"), _source("model", row))


def _accelerator(row: Document) -> KnownAccelerator:
    server = row.get("server")
    rates = row.get("peak_flops_per_second", {})
    accelerator = Accelerator(
        id=row["id"],
        generation=row.get("generation", ""),
        capacity_bytes=memory_capacity(
            label_gb=row.get("memory_label_gb"),
            label_reading=row.get("memory_label_reading", "unknown"),
            reported_bytes=row.get("memory_reported_bytes"),
            reported_share=reference_curves().reported_memory,
        ),
        bandwidth_bytes_per_second=row.get("memory_bandwidth_bytes_per_second"),
        peak_flops_per_second={
            NumberFormat(name): float(rate) for name, rate in rates.items() if name in _NUMBER_FORMATS
        },
        power_limit_watts=row.get("power_limit_watts"),
        server=Server(**server) if server else None,
    )
    return KnownAccelerator(accelerator, _source("accelerator", row))


def _link(row: Document) -> KnownLink:
    return KnownLink(_source("link", row))


def _offer(row: Document) -> KnownOffer:
    price = row["price_per_instance_hour"]
    return KnownOffer(
        accelerator_id=row["accelerator_id"],
        purchase_option=row["purchase_option"],
        price_per_device_hour=Decimal(price["amount"]) / row.get("accelerator_count", 1),
        currency_code=price["currency_code"],
        as_of=row["as_of"],
        source=_source("offer", row),
    )


def _grid(row: Document) -> KnownGrid:
    return KnownGrid(
        carbon_intensity_kg_co2e_per_kwh=row["carbon_intensity_kg_co2e_per_kwh"],
        accounting=row["accounting"],
        water_liters_per_kwh=row.get("water_liters_per_kwh"),
        source=_source("grid", row),
    )


def _site(row: Document) -> KnownSite:
    onsite = row.get("water_usage_effectiveness_liters_per_kwh")
    return KnownSite(row["pue"], row.get("grid_id"), onsite, _source("site", row))


_Known = TypeVar("_Known")


def _named(rows: list[Document], build: Callable[[Document], _Known]) -> dict[str, _Known]:
    known: dict[str, _Known] = {}
    for row in rows:
        known.update(dict.fromkeys([row["id"], *row.get("aliases", [])], build(row)))
    return known


def build_snapshot(revision: int, rows: catalog.Documents) -> Snapshot:
    """The snapshot of ``rows``."""
    return Snapshot(
        revision=revision,
        curves=reference_curves(),
        models=_named(rows["models"], _model),
        accelerators=_named(rows["accelerators"], _accelerator),
        links=_named(rows["links"], _link),
        offers=_named(rows["offers"], _offer),
        grids=_named(rows["grids"], _grid),
        sites=_named(rows["sites"], _site),
    )


def shipped_snapshot() -> Snapshot:
    """The snapshot of the shipped files, without a database."""
    return build_snapshot(0, shipped_documents())


class SnapshotStore:
    """The current snapshot of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._current: Snapshot | None = None
        self._lock = threading.Lock()

    @property
    def current(self) -> Snapshot:
        """The newest snapshot; 503 before the first."""
        if self._current is None:
            raise Unavailable("The catalog is not loaded", headers={"Retry-After": "1"})
        return self._current

    @property
    def is_ready(self) -> bool:
        """Whether there is a snapshot of a loaded catalog."""
        return self._current is not None

    def refresh(self) -> None:
        """Build a snapshot if the catalog has changed since the last."""
        with self._lock, self._database.reading() as session:
            known = self._current.revision if self._current else 0
            if catalog.revision(session) == known:
                return
            revision, rows = catalog.documents(session)
            self._current = build_snapshot(revision, rows)

    async def keep_fresh(self, interval_seconds: float = 1.0) -> None:
        """Refresh for ever; a failed attempt is tried again."""
        while True:
            try:
                await asyncio.to_thread(self.refresh)
            except Exception:
                log.exception("the snapshot could not be refreshed")
            await asyncio.sleep(interval_seconds)

    async def at_least(self, revision: int) -> Snapshot:
        """A snapshot that contains ``revision``; 503 if none comes in time."""
        deadline = time.monotonic() + WAIT_SECONDS
        while self.current.revision < revision:
            if time.monotonic() > deadline:
                detail = "No snapshot as new as the revision asked for came in time"
                raise Unavailable(detail, headers={"Retry-After": "1"})
            await asyncio.to_thread(self.refresh)
            await asyncio.sleep(0.05)
        return self.current
