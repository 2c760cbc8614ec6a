"""Matching of a measured node to a device of the catalog, and the scope of its figures."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import MISSING

from service.benchmarks.datasheets import find_whole_row, match_row
from service.calibrations.fitting import FittedDevice
from service.planning.hardware.calibration import Calibration
from service.planning.hardware.calibration.measured import MeasuredScope
from service.planning.hardware.cluster import Accelerator
from service.planning.hardware.links import Link, LinkKind
from service.planning.precision import parse_peaks
from service.protocol.nodes import NodeAccelerator as Part
from service.protocol.nodes import NodeInventory

CatalogDocument = Mapping[str, Any]
_DRIVER = "driver"
_NO_ID = re.compile(r"[^a-z0-9._-]")


class DeviceCatalog(NamedTuple):
    """Rows of a tenant that identify parts."""

    accelerators: Iterable[CatalogDocument]
    links: Mapping[str, CatalogDocument]


class MeasuredDevice(NamedTuple):
    """A measured device: the scope of its figures, and the reference that they are compared with."""

    scope: MeasuredScope
    device: FittedDevice


def resolve_device(
    node_id: str, inventory: NodeInventory, part: Part | None, catalog: DeviceCatalog, reference: Calibration
) -> MeasuredDevice:
    """Returns the device that a node has measured; ``part`` is its accelerator, None for a processor."""
    if part is None:
        return MeasuredDevice(MeasuredScope("cpu", node_id, None, None, None, None), FittedDevice(reference))
    row = match_row(part, catalog.accelerators)
    limit = None if part.power_limit_watts is MISSING else part.power_limit_watts
    scope = MeasuredScope("cuda", node_id, None, None, limit, parse_driver_major(inventory))
    if part.mig_profile is not MISSING:
        scope = scope._replace(
            accelerator_id=_name_slice(part.mig_profile, find_whole_row(part, catalog.accelerators))
        )
    if row is None:
        return MeasuredDevice(scope, FittedDevice(reference, power_limit_watts=limit))
    scope = scope._replace(accelerator_id=row["id"], generation=row.get("generation"))
    return MeasuredDevice(
        scope,
        FittedDevice(reference, _build_accelerator(row), limit, *_resolve_links(part, row, catalog.links)),
    )


def _name_slice(profile: str, whole: CatalogDocument | None) -> str:
    """Returns the id of a slice. No row of the catalog has it, so that no other device reads its figures."""
    return _NO_ID.sub("-", f"{whole['id'] if whole else 'unknown'}-mig-{profile}".lower())


def parse_driver_major(inventory: NodeInventory) -> int | None:
    """Returns the major version of the driver."""
    version = next((each.version for each in inventory.software if each.name == _DRIVER), "")
    major = version.partition(".")[0]
    return int(major) if major.isdecimal() else None


def _build_accelerator(row: CatalogDocument) -> Accelerator:
    return Accelerator(
        id=row["id"],
        generation=row.get("generation", ""),
        capacity_bytes=None,
        bandwidth_bytes_per_second=row.get("memory_bandwidth_bytes_per_second"),
        peak_flops_per_second=parse_peaks(row.get("peak_flops_per_second", {})),
        power_limit_watts=row.get("power_limit_watts"),
    )


def _resolve_links(
    part: Part, row: CatalogDocument, links: Mapping[str, CatalogDocument]
) -> tuple[Link | None, Link | None]:
    """Returns the link between devices of the node and the link to the host; without NVLink they are one."""
    generation = row.get("pcie_generation")
    if part.pcie_generation_maximum is not MISSING:
        generation = part.pcie_generation_maximum
    host = _build_link(links.get(f"pcie-{generation}-x16"))
    own = _build_link(links.get(row.get("intra_node_link_id", "")))
    if own is not None and own.kind is LinkKind.NVLINK and part.nvlink_count == 0:
        own = host
    return own, host


def _build_link(row: CatalogDocument | None) -> Link | None:
    if row is None:
        return None
    return Link(
        LinkKind(row["kind"]),
        row["bandwidth_bytes_per_second"],
        row.get("latency_seconds"),
        joined=row.get("joined_count", 1),
        in_network=row.get("in_network_reduction", False),
    )
