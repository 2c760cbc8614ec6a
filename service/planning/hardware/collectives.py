"""Time of collective communication: alpha-beta over the levels of a cluster.

A cluster has two levels: devices inside a domain joined by one link (NVLink through switches, PCI Express,
meshes), and domains joined by another (InfiniBand, RoCE, Ethernet), each device with its share of the
interfaces of its node. Domains are rail-optimised: the interfaces of a node work side by side.

Every algorithm is a number of hops and the bytes that one device sends on each level. Its time is

    T = launch + hops + moving + 2 sqrt(filling moving)

with ``moving`` the bytes over the achieved rate on the level where they take longest (both work at a time),
``hops`` the latency of all steps, and the last term the loss of a message that passes the same hops in chunks
of the best size (``filling``: the chunk's own seconds on all of them; Sanders, Speck and Traeff 2009, section
2). Zero latency gives bytes over rate, infinite bandwidth the latency, one device zero.

Algorithms: ring (Patarasuk and Yuan 2009), tree as NCCL has it (two complementary trees over the domains, a
chain inside each; Sanders et al. 2009), halving-doubling (Rabenseifner 2004; Thakur et al. 2005),
hierarchical (reduce inside, exchange between, gather inside, one after the other), and in-network reduction
(NVLS: the switch adds; Klenk et al. 2020), joined by a tree over several domains as in NCCL. One- and
two-shot all-reduce are the kernels of serving engines for short messages: every device reads from all others
at once, the whole message or its part of it.

Sizes and degrees are floats or arrays, one entry for each layout.
"""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.errors import PlanningError
from service.planning.figures import (
    doublings,
    is_only,
    larger,
    natural_log,
    power_of_two,
    rounded_up,
    smaller,
    square_root,
)
from service.planning.hardware.calibration.links import LinkCalibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import MESHES, Link, LinkKind, Torus


class Collective(StrEnum):
    """Collective operation of a group of devices; point-to-point is between two of them."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    POINT_TO_POINT = "point_to_point"


class CollectiveAlgorithm(StrEnum):
    """Algorithm of a collective."""

    RING = "ring"
    TREE = "tree"
    HALVING_DOUBLING = "halving_doubling"
    HIERARCHICAL = "hierarchical"
    IN_NETWORK = "in_network"
    DIRECT = "direct"
    ONE_SHOT = "one_shot"
    TWO_SHOT = "two_shot"


class LevelRate(NamedTuple):
    """Performance of one device on one level: bytes per second in one direction, and seconds of a hop.

    ``chunk_seconds`` is the cost of each chunk of a message on a hop, in addition to its bytes.
    """

    bytes_per_second: float
    hop_seconds: float
    chunk_seconds: float = 0.0


class ClusterFabric(NamedTuple):
    """Levels of a cluster as collectives see them.

    ``domain`` devices are joined by ``intra``; ``in_network`` is the same link through reducing switches,
    None without them. A mesh joins ``mesh`` devices, each to each other one by a separate wire, and the rate
    is that of all wires of a device; 0 where switches join them.
    """

    intra: LevelRate
    inter: LevelRate
    domain: int
    launch_seconds: float = 0.0
    in_network: LevelRate | None = None
    mesh: int = 0
    torus: Torus | None = None
    reads_peers: bool = True
    """True if a kernel of one device reads the memory of others. Cores for communication alone move what
    NeuronCores exchange, from one device to the next (AWS Neuron, Collectives)."""


def build_rail(link: Link, calibration: LinkCalibration, share: float | None = None) -> LevelRate:
    """Returns one link at the rate that software achieves on it, or at a ``share`` of its rate."""
    achieved = calibration.links[link.kind]
    return LevelRate(
        link.bytes_per_second * (achieved.rate if share is None else share),
        achieved.hop_seconds if link.latency_seconds is None else link.latency_seconds,
        calibration.chunk_seconds,
    )


def build_fabric(cluster: Cluster, calibration: LinkCalibration) -> ClusterFabric:
    """Returns the levels of a cluster at the rates that its links achieve."""
    intra, inter = cluster.intra_node_link, cluster.inter_node_link
    through_switch = None
    if intra.in_network:
        generation = cluster.accelerator.generation
        share = calibration.in_network.get(generation, calibration.in_network_pooled)
        through_switch = build_rail(intra, calibration, share)
    return ClusterFabric(
        intra=build_rail(intra, calibration),
        inter=build_rail(inter, calibration),
        domain=cluster.domain,
        launch_seconds=calibration.launch_seconds,
        in_network=through_switch,
        reads_peers=intra.kind is not LinkKind.NEURONLINK,
        mesh=max(intra.joined, cluster.domain) if intra.kind in MESHES else 0,
        torus=intra.torus,
    )


class _FabricGroup(NamedTuple):
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


def _build_group(devices: float, per_domain: float, fabric: ClusterFabric) -> _FabricGroup:
    inside = smaller(1.0 * devices, 1.0 * per_domain)
    intra = fabric.intra
    if fabric.mesh:
        wires = larger(inside - 1.0, 1.0) / max(fabric.mesh - 1, 1)
        intra = intra._replace(bytes_per_second=intra.bytes_per_second * wires)
    elif fabric.torus is not None and fabric.domain > 1:
        share = _compute_torus_share(inside, fabric.domain, fabric.torus)
        intra = intra._replace(bytes_per_second=intra.bytes_per_second * share)
    domains = rounded_up(devices / inside)
    return _FabricGroup(
        devices, inside, domains, intra, fabric.inter, fabric.in_network, fabric.launch_seconds
    )


class _CollectivePath(NamedTuple):
    """Bytes that one device sends in a collective, and hops that it takes, on either level."""

    intra_bytes: float
    inter_bytes: float
    intra_hops: float
    inter_hops: float


def _compute_path_seconds(
    path: _CollectivePath, group: _FabricGroup, intra: LevelRate | None = None
) -> float:
    intra, inter = intra or group.intra, group.inter
    moving = larger(path.intra_bytes / intra.bytes_per_second, path.inter_bytes / inter.bytes_per_second)
    hops = path.intra_hops * intra.hop_seconds + path.inter_hops * inter.hop_seconds
    filling = path.intra_hops * intra.chunk_seconds + path.inter_hops * inter.chunk_seconds
    return group.launch_seconds + hops + moving + 2.0 * square_root(filling * moving)


def _compute_ring_seconds(message_bytes: float, group: _FabricGroup, rounds: float) -> float:
    """Returns the seconds of rings through all devices, ``rounds`` times; each interface carries one ring.

    A round is n - 1 steps of 1/n of the message, one step for each other domain between domains. The share
    1/inside of the bytes of a device leaves the domain.
    """
    devices, inside, domains = group.devices, group.inside, group.domains
    sent = rounds * (devices - 1.0) / devices * message_bytes
    leaving = (domains > 1.0) * sent / inside
    return _compute_path_seconds(
        _CollectivePath(sent - leaving, leaving, rounds * (devices - domains), rounds * (domains - 1.0)),
        group,
    )


def _ring_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Bytes 2 (n - 1) / n of the message, hops 2 (n - 1)."""
    return _compute_ring_seconds(message_bytes, group, 2.0)


def _ring_gather(message_bytes: float, group: _FabricGroup) -> float:
    """Bytes (n - 1) / n of the message, hops n - 1; the reverse for reduce-scatter."""
    return _compute_ring_seconds(message_bytes, group, 1.0)


def _build_tree_path(message_bytes: float, group: _FabricGroup, ways: float) -> _CollectivePath:
    """Returns the path of trees over domains and chains inside.

    A device passes the message ``ways`` times.
    """
    passed = ways * message_bytes
    return _CollectivePath(
        (group.inside > 1.0) * passed,
        (group.domains > 1.0) * passed / group.inside,
        ways * (group.inside - 1.0),
        ways * doublings(group.domains),
    )


def _tree_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Bytes twice the message, hops 2 (inside - 1) and 2 log2 of the domains."""
    return _compute_path_seconds(_build_tree_path(message_bytes, group, 2.0), group)


def _tree_broadcast(message_bytes: float, group: _FabricGroup) -> float:
    """The message once, hops inside - 1 and log2 of the domains."""
    return _compute_path_seconds(_build_tree_path(message_bytes, group, 1.0), group)


def _ring_broadcast(message_bytes: float, group: _FabricGroup) -> float:
    """The message once through a chain of all devices, in chunks."""
    path = _build_tree_path(message_bytes, group, 1.0)
    return _compute_path_seconds(
        path._replace(intra_hops=group.devices - group.domains, inter_hops=group.domains - 1.0), group
    )


def _in_network_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Returns the seconds in which the switch reads the message from every device and writes it to all.

    A device is read whole and writes its reduced 1/inside to the switch: (inside + 1) / inside of the
    message, against 2 (n - 1) / n of a ring. That is why the bus bandwidth, which divides the bytes of a ring
    by the time, exceeds the link. Over several domains a tree joins their reduced messages.
    """
    if group.in_network is None:
        raise PlanningError(
            "ALGORITHM_UNAVAILABLE", "/cluster/intra_node_link", "the link has no switches that reduce"
        )
    tree = _build_tree_path(message_bytes, group, 2.0)
    several = group.inside > 1.0
    path = _CollectivePath(
        several * (group.inside + 1.0) / group.inside * message_bytes,
        tree.inter_bytes,
        several * 2.0,
        tree.inter_hops,
    )
    return _compute_path_seconds(path, group, group.in_network)


def _one_shot_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Every device reads the message of each other one and adds them: (n - 1) of it in one hop."""
    others = group.devices - 1.0
    away = (group.devices - group.inside) / larger(others, 1.0)
    return _compute_path_seconds(
        _CollectivePath(
            (1.0 - away) * others * message_bytes, away * others * message_bytes, 1.0, 1.0 * (away > 0.0)
        ),
        group,
    )


def _two_shot_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Every device reads and adds its 1/n of all others' messages, then reads their sums: two hops."""
    sent = 2.0 * message_bytes / group.devices
    path = _CollectivePath(
        (group.inside - 1.0) * sent,
        (group.devices - group.inside) * sent,
        2.0,
        2.0 * (group.devices > group.inside),
    )
    return _compute_path_seconds(path, group)


def _compute_halving_seconds(message_bytes: float, group: _FabricGroup, ways: float) -> float:
    """Halving, doubling or both inside domains, then the rest of the message between them."""
    between = _CollectivePath(
        0.0,
        ways * (group.domains - 1.0) / group.domains * message_bytes / group.inside,
        0.0,
        ways * doublings(group.domains),
    )
    within = _CollectivePath(
        ways * (group.inside - 1.0) / group.inside * message_bytes, 0.0, ways * doublings(group.inside), 0.0
    )
    started = group._replace(launch_seconds=0.0)
    return _compute_path_seconds(within, group) + _compute_path_seconds(between, started)


def _count_folds(count: float) -> float:
    """1 where ``count`` is no power of two, else 0."""
    return 1.0 * (power_of_two(doublings(count)) > count)


def _halving_doubling_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Reduce-scatter by halves, all-gather by doubles: 2 (n - 1) / n of the message in 2 log2 n hops.

    Devices above a power of two first add their message to a neighbour's and have the sum back at the end.
    """
    inside, domains = _count_folds(group.inside), _count_folds(group.domains)
    paired = group._replace(
        inside=power_of_two(doublings(group.inside) - inside),
        domains=power_of_two(doublings(group.domains) - domains),
    )
    started = group._replace(launch_seconds=0.0)
    return (
        _compute_halving_seconds(message_bytes, paired, 2.0)
        + inside * _compute_path_seconds(_CollectivePath(2.0 * message_bytes, 0.0, 2.0, 0.0), started)
        + domains
        * _compute_path_seconds(_CollectivePath(0.0, 2.0 * message_bytes / group.inside, 0.0, 2.0), started)
    )


def _doubling_gather(message_bytes: float, group: _FabricGroup) -> float:
    """Bytes (n - 1) / n of the message in log2 n hops; the reverse for reduce-scatter."""
    return _compute_halving_seconds(message_bytes, group, 1.0)


def _split_levels(group: _FabricGroup) -> tuple[_FabricGroup, _FabricGroup]:
    """Returns the devices of one domain, and one device of each domain."""
    one = 0.0 * group.inside + 1.0
    within = group._replace(devices=group.inside, domains=one)
    between = group._replace(devices=group.domains, inside=one)
    return within, between


def _hierarchical_all_reduce(message_bytes: float, group: _FabricGroup) -> float:
    """Reduce-scatter inside, all-reduce of 1/inside between the domains, all-gather inside."""
    within, between = _split_levels(group)
    part = message_bytes / group.inside
    across = smaller(_ring_all_reduce(part, between), _tree_all_reduce(part, between))
    return 2.0 * (group.inside > 1.0) * _ring_gather(message_bytes, within) + (group.domains > 1.0) * across


def _hierarchical_gather(message_bytes: float, group: _FabricGroup) -> float:
    """Each device gathers its part between the domains, then the domain gathers; or the reverse."""
    within, between = _split_levels(group)
    across = _ring_gather(message_bytes / group.inside, between)
    return (group.inside > 1.0) * _ring_gather(message_bytes, within) + (group.domains > 1.0) * across


_AT_A_TIME: Final = 8.0
"""Exchanges that NCCL runs concurrently (NCCL_MAX_DEV_WORK_P2P_PER_BATCH)."""


def _direct_all_to_all(message_bytes: float, group: _FabricGroup) -> float:
    """1/n of the buffer to each other device, some of them at a time."""
    devices, inside = group.devices, group.inside
    path = _CollectivePath(
        (inside - 1.0) / devices * message_bytes,
        (devices - inside) / devices * message_bytes,
        rounded_up((inside - 1.0) / _AT_A_TIME),
        rounded_up((devices - inside) / _AT_A_TIME),
    )
    return _compute_path_seconds(path, group)


def _hierarchical_all_to_all(message_bytes: float, group: _FabricGroup) -> float:
    """First inside domains to the device of the right rail, then along the rails."""
    within, between = _split_levels(group)
    inside = (group.inside > 1.0) * _direct_all_to_all(message_bytes, within)
    return inside + (group.domains > 1.0) * _direct_all_to_all(message_bytes, between)


def _compute_send_seconds(message_bytes: float, group: _FabricGroup) -> float:
    """Returns the seconds of sending the message once over the level that both devices share."""
    near = 1.0 * (group.inside > 1.0)
    return _compute_path_seconds(
        _CollectivePath(near * message_bytes, (1.0 - near) * message_bytes, near, 1.0 - near), group
    )


_CollectiveTime = Callable[[float, _FabricGroup], float]

_GATHERS: Final[Mapping[CollectiveAlgorithm, _CollectiveTime]] = {
    CollectiveAlgorithm.RING: _ring_gather,
    CollectiveAlgorithm.HALVING_DOUBLING: _doubling_gather,
    CollectiveAlgorithm.HIERARCHICAL: _hierarchical_gather,
}

_WAYS: Final[Mapping[Collective, Mapping[CollectiveAlgorithm, _CollectiveTime]]] = {
    Collective.ALL_REDUCE: {
        CollectiveAlgorithm.RING: _ring_all_reduce,
        CollectiveAlgorithm.TREE: _tree_all_reduce,
        CollectiveAlgorithm.IN_NETWORK: _in_network_all_reduce,
        CollectiveAlgorithm.HALVING_DOUBLING: _halving_doubling_all_reduce,
        CollectiveAlgorithm.HIERARCHICAL: _hierarchical_all_reduce,
        CollectiveAlgorithm.ONE_SHOT: _one_shot_all_reduce,
        CollectiveAlgorithm.TWO_SHOT: _two_shot_all_reduce,
    },
    Collective.ALL_GATHER: _GATHERS,
    Collective.REDUCE_SCATTER: _GATHERS,
    Collective.ALL_TO_ALL: {
        CollectiveAlgorithm.DIRECT: _direct_all_to_all,
        CollectiveAlgorithm.HIERARCHICAL: _hierarchical_all_to_all,
    },
    Collective.BROADCAST: {
        CollectiveAlgorithm.RING: _ring_broadcast,
        CollectiveAlgorithm.TREE: _tree_broadcast,
    },
    Collective.POINT_TO_POINT: {CollectiveAlgorithm.DIRECT: _compute_send_seconds},
}

_CHOSEN_FROM: Final[Mapping[Collective, tuple[CollectiveAlgorithm, ...]]] = {
    Collective.ALL_REDUCE: (CollectiveAlgorithm.RING, CollectiveAlgorithm.TREE),
    Collective.ALL_GATHER: (CollectiveAlgorithm.RING,),
    Collective.REDUCE_SCATTER: (CollectiveAlgorithm.RING,),
    Collective.ALL_TO_ALL: (CollectiveAlgorithm.DIRECT,),
    Collective.BROADCAST: (CollectiveAlgorithm.RING,),
    Collective.POINT_TO_POINT: (CollectiveAlgorithm.DIRECT,),
}
"""Algorithms that NCCL chooses from; for all-reduce also in-network reduction, where available."""


def collective_seconds(
    kind: Collective,
    message_bytes: float,
    *,
    devices: float,
    per_domain: float,
    fabric: ClusterFabric,
    algorithm: CollectiveAlgorithm | None = None,
) -> float:
    """Returns the seconds of one collective of ``devices`` devices, ``per_domain`` of them in each domain.

    ``message_bytes`` is the whole buffer: the reduced buffer, the gathered result, the buffer before it is
    scattered, or, in an all-to-all, the bytes that each device holds for all others. Without an
    ``algorithm``, the fastest of those that NCCL chooses from is taken. One device takes no time. Raises
    :class:`PlanningError` for an algorithm that the collective or the link does not have.
    """
    ways = _WAYS[kind]
    if algorithm is not None and algorithm not in ways:
        raise PlanningError("ALGORITHM_UNAVAILABLE", "", f"there is no {kind} by {algorithm}")
    if is_only(devices, 1.0):
        return 0.0 * message_bytes
    group = _build_group(devices, per_domain, fabric)
    if algorithm is not None:
        return (devices > 1.0) * ways[algorithm](message_bytes, group)
    first, *others = _CHOSEN_FROM[kind]
    if kind is Collective.ALL_REDUCE and fabric.in_network is not None:
        others.append(CollectiveAlgorithm.IN_NETWORK)
    seconds = ways[first](message_bytes, group)
    for other in others:
        seconds = smaller(seconds, ways[other](message_bytes, group))
    return (devices > 1.0) * seconds


BUS_FACTORS: Final[Mapping[Collective, Callable[[float], float]]] = {
    Collective.ALL_REDUCE: lambda devices: 2.0 * (devices - 1.0) / devices,
    Collective.ALL_GATHER: lambda devices: (devices - 1.0) / devices,
    Collective.REDUCE_SCATTER: lambda devices: (devices - 1.0) / devices,
    Collective.ALL_TO_ALL: lambda devices: (devices - 1.0) / devices,
    Collective.BROADCAST: lambda _devices: 1.0,
    Collective.POINT_TO_POINT: lambda _devices: 1.0,
}


def bus_bandwidth(kind: Collective, message_bytes: float, devices: float, seconds: float) -> float:
    """Returns the bytes per second that a ring would send in this time, as NCCL's tests print a collective.

    The message over the time, by 2 (n - 1) / n for an all-reduce, (n - 1) / n for gathers, scatters and
    all-to-all, 1 for a broadcast (nccl-tests, PERFORMANCE.md).
    """
    return message_bytes / seconds * BUS_FACTORS[kind](devices)
