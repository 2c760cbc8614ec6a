"""The host of a node: what its accelerators share, for state that is offloaded."""

from pydantic import MISSING

from service.planning.hardware.cluster import ASSUMED_HOST, HostHardware
from service.planning.hardware.links import Link, LinkKind
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis
from service.planning.workload import Offload, TrainingStateLocation, TrainingWorkload
from service.resolve.catalog import CatalogView
from service.schemas.host import HostInput

_MEMORY = {3: 256e9, 4: 409.6e9, 5: 614.4e9, 6: 614.4e9}
"""Two sockets by generation of PCI Express, as the vendor's data sheets have them: six channels of DDR4-2666
each (DGX-2), eight of DDR4-3200 (DGX A100), eight of DDR5-4800 (DGX H100, and taken for what came after)."""


def find_host_link(catalog: CatalogView, name: str) -> Link | None:
    """The link between an accelerator and its host; None where its generation is not known."""
    known = catalog.accelerators.get(name)
    link = catalog.links.get(f"pcie-{known.pcie_generation}-x16") if known else None
    return link.link if link else None


def resolve_host(given: HostInput | MISSING, accelerator_id: str, catalog: CatalogView) -> HostHardware:
    """The host as the question has it, else as machines of the accelerator's generation do."""
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
        # Times the share that links of this kind reach it is the rate that was measured.
        achieved = catalog.curves.links.value.links[link.kind].rate
        link = link._replace(bytes_per_second=copied / achieved)
    # What a stream reaches stands for the data sheet of a memory that nobody gave.
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
"""Measured figures that stand for those of the host."""


def note_host(
    given: HostInput | MISSING,
    host: HostHardware,
    workload: TrainingWorkload,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> None:
    """Warn of the rates that are assumed and enter the time, or of a host that does not."""
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
            detail = f"{rate / 1e9:.4g} GB/s are taken: machines of this generation have them"
            notes.warn("HOST_ASSUMED", f"/cluster/host/{name}", detail)
