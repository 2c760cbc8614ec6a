"""Matching of a node's accelerator to the catalog, and the limits of its data sheet."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import MISSING

from service.protocol.nodes import NodeAccelerator

CatalogDocument = Mapping[str, Any]

MEMORY_TOLERANCE = 0.03
"""Tolerance of reported memory. Driver versions differ by less, parts of one name by more."""
_FORMATS: Mapping[str, tuple[str, ...]] = {
    "fp64": ("fp64_tensor", "fp64"),
    "fp32": ("fp32",),
    "tf32": ("tf32",),
    "bf16": ("bf16",),
    "fp16": ("fp16",),
    "fp8_e4m3": ("fp8",),
    "fp4_e2m1": ("fp4",),
    "int8": ("int8",),
}


class Datasheet(NamedTuple):
    """Dense rates and limits of an accelerator of the catalog; None is unknown."""

    accelerator_id: str
    peaks: Mapping[str, float]
    """FLOP/s by number format of the catalog."""
    memory_bytes_per_second: float | None
    link_bytes_per_second: float | None
    """Rate of the link to other accelerators of the node, in one direction."""

    def find_peak(self, dtype: str) -> float | None:
        """Returns the highest dense rate of a type, by tensor cores if they support it."""
        return max((self.peaks[name] for name in _FORMATS[dtype] if name in self.peaks), default=None)


def match_row(part: NodeAccelerator, rows: Iterable[CatalogDocument]) -> CatalogDocument | None:
    """Returns the catalog row of a part, or None.

    Name or alias must match. One name is sold with different memory and power, so both have to agree if both
    sides know them. A slice has no row.
    """
    if part.mig_profile is not MISSING:
        return None
    return next((row for row in rows if part.name in _list_names(row) and _is_compatible(part, row)), None)


def find_whole_row(part: NodeAccelerator, rows: Iterable[CatalogDocument]) -> CatalogDocument | None:
    """Returns the catalog row of the device that a slice is a part of, by its name alone, or None."""
    name = part.name.partition(" MIG ")[0]
    return next((row for row in rows if name in _list_names(row)), None)


def _list_names(row: CatalogDocument) -> set[str]:
    return {row["name"], *row["aliases"]}


def _is_compatible(part: NodeAccelerator, row: CatalogDocument) -> bool:
    reported = row.get("memory_reported_bytes")
    limit, default = row.get("power_limit_watts"), part.power_limit_default_watts
    has_memory = (
        part.memory_bytes is MISSING
        or reported is None
        or abs(part.memory_bytes - reported) <= MEMORY_TOLERANCE * reported
    )
    return has_memory and (default is MISSING or limit is None or default == limit)


def build_datasheet(
    part: NodeAccelerator, accelerators: Iterable[CatalogDocument], links: Iterable[CatalogDocument]
) -> Datasheet | None:
    """Builds the data sheet of a part from the catalog that a tenant sees."""
    row = match_row(part, accelerators)
    if row is None:
        return None
    rates = {link["id"]: link["bandwidth_bytes_per_second"] for link in links}
    return Datasheet(
        accelerator_id=row["id"],
        peaks=row.get("peak_flops_per_second", {}),
        memory_bytes_per_second=row.get("memory_bandwidth_bytes_per_second"),
        link_bytes_per_second=rates.get(row.get("intra_node_link_id")),
    )
