"""Machines that a workload runs on: accelerators, hosts and clusters."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from service.planning.hardware.calibration.shares import AchievedShare
from service.planning.hardware.links import Link, LinkKind
from service.planning.precision import NumberFormat
from service.planning.quantity import EvidenceBasis, Quantity, exact
from service.planning.units import GIBIBYTE_BYTES, GIGABYTE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceServer:
    """The vendor's reference server: its number of accelerators and its maximum power."""

    name: str
    accelerator_count: int
    power_limit_watts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One accelerator as sold; rates are dense and per second. A member is None where it is unknown."""

    id: str
    generation: str
    capacity_bytes: Quantity | None
    bandwidth_bytes_per_second: float | None
    peak_flops_per_second: Mapping[NumberFormat, float]
    power_limit_watts: float | None
    server: ReferenceServer | None = None
    embodied_kg_co2e: Quantity | None = None
    """Emissions of making one accelerator."""
    is_on_chip: bool = False
    """True if its only memory is on the chip, so that many of them hold a model in a compiled schedule."""

    def find_peak(self, *formats: NumberFormat) -> tuple[NumberFormat, float] | None:
        """Returns the first of ``formats`` that this accelerator has a known rate for, with the rate."""
        for number_format in formats:
            rate = self.peak_flops_per_second.get(number_format)
            if rate:
                return number_format, rate
        return None


ASSUMED_INTRA_LINK: Final = Link(LinkKind.PCIE, 31.5e9, basis=EvidenceBasis.ASSUMED)
ASSUMED_INTER_LINK: Final = Link(LinkKind.ETHERNET, 12.5e9, basis=EvidenceBasis.ASSUMED)
"""Links where neither question nor catalog gives any: PCI Express 4, and 100 Gbit/s of Ethernet."""


class HostHardware(NamedTuple):
    """Hardware that the accelerators of a node share: data-sheet rates of memory and of all drives together.

    ``link`` joins one accelerator with it.
    """

    link: Link
    memory_bytes_per_second: float
    drive_bytes_per_second: float


ASSUMED_HOST: Final = HostHardware(ASSUMED_INTRA_LINK, 409.6e9, 25e9)
"""PCI Express 4, two processors with eight channels of DDR4-3200 each (DGX A100), and the drives of a DGX-2
(ZeRO-Infinity, figure 2b: 16 devices at 1.6 GB/s)."""


class Cluster(NamedTuple):
    """Equal accelerators in equal nodes.

    ``host_power_watts`` is the power of a node beside its accelerators, if it is given. ``intra_node_link``
    joins the devices of a domain, ``inter_node_link`` the domains.
    """

    accelerator: Accelerator
    accelerator_count: int
    accelerators_per_node: int
    host_power_watts: Quantity | None
    intra_node_link: Link = ASSUMED_INTRA_LINK
    inter_node_link: Link = ASSUMED_INTER_LINK
    host: HostHardware = ASSUMED_HOST

    @property
    def node_count(self) -> int:
        """Number of nodes, the last of which may be partly filled."""
        return math.ceil(self.accelerator_count / self.accelerators_per_node)

    @property
    def domain(self) -> int:
        """Devices that the faster link joins: those of a node, or of several behind the same switches."""
        return min(self.accelerator_count, max(self.accelerators_per_node, self.intra_node_link.joined))


def unnamed_cluster(device_count: int) -> Cluster:
    """Returns a cluster of unknown devices, all in one node."""
    device = Accelerator(
        id="",
        generation="",
        capacity_bytes=None,
        bandwidth_bytes_per_second=None,
        peak_flops_per_second={},
        power_limit_watts=None,
    )
    return Cluster(device, device_count, device_count, None)


def memory_capacity(
    *, label_gb: float | None, label_reading: str, reported_bytes: int | None, reported_share: AchievedShare
) -> Quantity | None:
    """Returns the memory in bytes that a process finds on a device.

    The driver's report is exact. A label alone is uncertain: its gigabytes may be decimal or binary, and the
    driver reserves a part (error correction in GDDR takes 6%). ``reported_share`` is the reported memory over
    a label read as binary; a label known to be decimal caps it.
    """
    if reported_bytes is not None:
        return exact(float(reported_bytes))
    if label_gb is None:
        return None
    binary = label_gb * GIBIBYTE_BYTES
    most = label_gb * GIGABYTE_BYTES if label_reading == "decimal" else binary
    return Quantity(
        min(most, binary * reported_share.value),
        min(most, binary * reported_share.low),
        min(most, binary * reported_share.high),
        EvidenceBasis.DATASHEET,
    )
