"""Groups of devices on a fabric, and the time of a path through one.

Every algorithm is a number of hops and the bytes that one device sends on each level. Its time is

    T = launch + hops + moving + 2 sqrt(filling moving)

with ``moving`` the bytes over the achieved rate on the level where they take longest (both work at a time),
``hops`` the latency of all steps, and the last term the loss of a message that passes the same hops in chunks
of the best size (``filling``: the chunk's own seconds on all of them; Sanders, Speck and Traeff 2009, section
2). Zero latency gives bytes over rate, infinite bandwidth the latency, one device zero.
"""

import math
from typing import NamedTuple

from service.planning.figures import larger, natural_log, rounded_up, smaller, square_root
from service.planning.hardware.collectives.fabric import ClusterFabric, LevelRate
from service.planning.hardware.links import Torus


class FabricGroup(NamedTuple):
    """A group of devices on a fabric: their number, the number in each domain, and the number of domains."""

    devices: float
    inside: float
    domains: float
    intra: LevelRate
    inter: LevelRate
    in_network: LevelRate | None
    launch_seconds: float


def _compute_torus_share(inside: float, slice_devices: int, torus: Torus) -> float:
    """Share of the wires of a device that a group of ``inside`` devices of a slice can use.

    A group lies along one axis or fills several, and uses their wires only. An axis shorter than a ring is a
    line, whose ends have half of the wires.
    """
    axes = torus.axes * natural_log(inside) / math.log(slice_devices)
    used = smaller(larger(axes, 1.0), 1.0 * torus.axes) / torus.axes
    return used * (1.0 if slice_devices ** (1.0 / torus.axes) > torus.ring - 0.5 else 0.5)


def build_group(devices: float, per_domain: float, fabric: ClusterFabric) -> FabricGroup:
    """Returns a group of ``devices`` with the rates that its own wires of a mesh or torus have."""
    inside = smaller(1.0 * devices, 1.0 * per_domain)
    intra = fabric.intra
    if fabric.mesh:
        wires = larger(inside - 1.0, 1.0) / max(fabric.mesh - 1, 1)
        intra = intra._replace(bytes_per_second=intra.bytes_per_second * wires)
    elif fabric.torus is not None and fabric.domain > 1:
        share = _compute_torus_share(inside, fabric.domain, fabric.torus)
        intra = intra._replace(bytes_per_second=intra.bytes_per_second * share)
    domains = rounded_up(devices / inside)
    return FabricGroup(
        devices, inside, domains, intra, fabric.inter, fabric.in_network, fabric.launch_seconds
    )


class CollectivePath(NamedTuple):
    """Bytes that one device sends in a collective, and hops that it takes, on either level."""

    intra_bytes: float
    inter_bytes: float
    intra_hops: float
    inter_hops: float


def compute_path_seconds(path: CollectivePath, group: FabricGroup, intra: LevelRate | None = None) -> float:
    """Returns the seconds of a path; ``intra`` replaces the level inside domains."""
    intra, inter = intra or group.intra, group.inter
    moving = larger(path.intra_bytes / intra.bytes_per_second, path.inter_bytes / inter.bytes_per_second)
    hops = path.intra_hops * intra.hop_seconds + path.inter_hops * inter.hop_seconds
    filling = path.intra_hops * intra.chunk_seconds + path.inter_hops * inter.chunk_seconds
    return group.launch_seconds + hops + moving + 2.0 * square_root(filling * moving)
