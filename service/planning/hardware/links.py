"""Links between devices: their technology, and the rate of one device over them."""

from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.quantity import EvidenceBasis


class LinkKind(StrEnum):
    """Technology of a link. ``ethernet`` is TCP over it, ``roce`` and ``efa`` are remote memory access."""

    NVLINK = "nvlink"
    PCIE = "pcie"
    INFINIBAND = "infiniband"
    ROCE = "roce"
    EFA = "efa"
    ETHERNET = "ethernet"
    INFINITY_FABRIC = "infinity_fabric"
    ICI = "ici"
    NEURONLINK = "neuronlink"
    HCCS = "hccs"
    C2C = "c2c"


MESHES: Final = frozenset({LinkKind.INFINITY_FABRIC, LinkKind.HCCS})
"""Links without a switch: a device reaches each other one over a separate wire, so that a group of fewer

devices than are joined has only the wires between its members.
"""


class Torus(NamedTuple):
    """Wires along ``axes`` dimensions; an axis of ``ring`` devices or more closes into a ring."""

    axes: int
    ring: int


class Link(NamedTuple):
    """A link as sold.

    ``bytes_per_second`` is the maximum that one device sends in one direction, its share of the interfaces of
    its node where those are shared. ``latency_seconds`` is one way, None where it is not published.
    ``joined`` is the number of devices that it joins; ``in_network`` is true if its switches reduce the data
    that passes through them (NVLink SHARP).
    """

    kind: LinkKind
    bytes_per_second: float
    latency_seconds: float | None = None
    joined: int = 1
    in_network: bool = False
    basis: EvidenceBasis = EvidenceBasis.DATASHEET
    torus: Torus | None = None
