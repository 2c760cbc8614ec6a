"""Resolution of the host of a node, whose link, memory and drives offloaded state uses."""

from pydantic import MISSING

from service.planning.hardware.cluster import ASSUMED_HOST, HostHardware
from service.planning.hardware.links import Link, LinkKind
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.planning.workload import Offload, TrainingStateLocation, TrainingWorkload
from service.resolve.catalog import CatalogView
from service.schemas.host import HostInput

_MEMORY = {3: 256e9, 4: 409.6e9, 5: 614.4e9, 6: 614.4e9}
"""Memory bandwidth of two sockets in bytes per second, by generation of PCI Express, from vendors' data
sheets: six channels of DDR4-2666 each (DGX-2), eight of DDR4-3200 (DGX A100), eight of DDR5-4800 (DGX H100,
also used for later generations).
"""


def find_host_link(catalog: CatalogView, name: str) -> Link | None:
    """Returns the link between an accelerator and its host, or None if its generation is unknown.

    A card that reaches the others over PCI Express reaches the host over the same lanes, of which some cards
    have eight; others have sixteen.
    """
    known = catalog.accelerators.get(name)
    if known is None or known.pcie_generation is None:
        return None
    own = catalog.links.get(known.links.intra_node_link_id or "")
    link = own if own and own.link.kind is LinkKind.PCIE else None
    link = link or catalog.links.get(f"pcie-{known.pcie_generation}-x16")
    return link.link if link else None


def resolve_host(given: HostInput | MISSING, accelerator_id: str, catalog: CatalogView) -> HostHardware:
    """Returns the host of the question, with the measured or usual figures of its generation as defaults."""
    asked = HostInput() if given is MISSING else given
    known = catalog.accelerators.get(accelerator_id)
    generation = known.pcie_generation if known else None
    link = find_host_link(catalog, accelerator_id) or ASSUMED_HOST.link
    if asked.link_bandwidth_bytes_per_second is not MISSING:
        link = Link(LinkKind.PCIE, asked.link_bandwidth_bytes_per_second, basis=EvidenceBasis.ASSUMED)
    memory = _MEMORY.get(generation or 0, ASSUMED_HOST.memory_bytes_per_second)
    drives = ASSUMED_HOST.drive_bytes_per_second
    measured = catalog.constants
    if (copied := measured.get_value("host_link_bytes_per_second")) is not None:
        # Bandwidth times the achieved share of this kind of link equals the measured rate.
        achieved = catalog.curves.links.value.links[link.kind].rate
        link = link._replace(bytes_per_second=copied / achieved)
    # A measured stream rate replaces the data-sheet bandwidth of a memory that the question leaves out.
    memory = measured.get_value("host_memory_bytes_per_second") or memory
    ways = (measured.get_value(f"storage_{way}_bytes_per_second") for way in ("read", "write"))
    drives = min((rate for rate in ways if rate is not None), default=drives)
    if asked.memory_bandwidth_bytes_per_second is not MISSING:
        memory = asked.memory_bandwidth_bytes_per_second
    if asked.drive_bandwidth_bytes_per_second is not MISSING:
        drives = asked.drive_bandwidth_bytes_per_second
    return HostHardware(link, memory, drives)


_MEASURED = {
    "link_bandwidth_bytes_per_second": ("host_link_bytes_per_second",),
    "memory_bandwidth_bytes_per_second": ("host_memory_bytes_per_second",),
    "drive_bandwidth_bytes_per_second": ("storage_read_bytes_per_second", "storage_write_bytes_per_second"),
}
"""Measured figures that replace those of the host."""


def note_host(
    given: HostInput | MISSING,
    host: HostHardware,
    workload: TrainingWorkload,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> None:
    """Warns of assumed rates that enter the time, or of a host that is not used."""
    offload = workload.offload
    if offload == Offload():
        if given is not MISSING:
            notes.warn("NOT_USED", "/cluster/host", "nothing is offloaded to the host")
        return
    asked = HostInput() if given is MISSING else given
    used = {
        "link_bandwidth_bytes_per_second": (True, host.link.bytes_per_second),
        "memory_bandwidth_bytes_per_second": (
            offload.optimizer is not TrainingStateLocation.NONE,
            host.memory_bytes_per_second,
        ),
        "drive_bandwidth_bytes_per_second": (
            TrainingStateLocation.NVME in offload,
            host.drive_bytes_per_second,
        ),
    }
    for name, (enters, rate) in used.items():
        if not enters or getattr(asked, name) is not MISSING:
            continue
        if ids := catalog.constants.list_calibration_ids(_MEASURED[name]):
            notes.record_calibrations(ids)
        else:
            detail = f"{rate / 1e9:.4g} GB/s is assumed, as usual for hosts of this generation"
            notes.warn("HOST_ASSUMED", f"/cluster/host/{name}", detail)
