"""Algorithms of collectives, each with its bytes and hops.

Ring (Patarasuk and Yuan 2009), tree as NCCL has it (two complementary trees over the domains, a chain inside
each; Sanders et al. 2009), halving-doubling (Rabenseifner 2004; Thakur et al. 2005), hierarchical (reduce
inside, exchange between, gather inside, one after the other), and in-network reduction (NVLS: the switch
adds; Klenk et al. 2020), joined by a tree over several domains as in NCCL. One- and two-shot all-reduce are
the kernels of serving engines for short messages: every device reads from all others at once, the whole
message or its part of it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from service.planning.errors import PlanningError
from service.planning.figures import doublings, larger, power_of_two, rounded_up, smaller
from service.planning.hardware.collectives.groups import CollectivePath, FabricGroup, compute_path_seconds
from service.planning.hardware.collectives.kinds import Collective, CollectiveAlgorithm


def _compute_ring_seconds(message_bytes: float, group: FabricGroup, rounds: float) -> float:
    """Returns the seconds of rings through all devices, ``rounds`` times; each interface carries one ring.

    A round is n - 1 steps of 1/n of the message, one step for each other domain between domains. The share
    1/inside of the bytes of a device leaves the domain.
    """
    devices, inside, domains = group.devices, group.inside, group.domains
    sent = rounds * (devices - 1.0) / devices * message_bytes
    leaving = (domains > 1.0) * sent / inside
    return compute_path_seconds(
        CollectivePath(sent - leaving, leaving, rounds * (devices - domains), rounds * (domains - 1.0)),
        group,
    )


def _ring_all_reduce(message_bytes: float, group: FabricGroup) -> float:
    """Bytes 2 (n - 1) / n of the message, hops 2 (n - 1)."""
    return _compute_ring_seconds(message_bytes, group, 2.0)


def _ring_gather(message_bytes: float, group: FabricGroup) -> float:
    """Bytes (n - 1) / n of the message, hops n - 1; the reverse for reduce-scatter."""
    return _compute_ring_seconds(message_bytes, group, 1.0)


def _build_tree_path(message_bytes: float, group: FabricGroup, ways: float) -> CollectivePath:
    """Returns the path of trees over domains and chains inside.

    A device passes the message ``ways`` times.
    """
    passed = ways * message_bytes
    return CollectivePath(
        (group.inside > 1.0) * passed,
        (group.domains > 1.0) * passed / group.inside,
        ways * (group.inside - 1.0),
        ways * doublings(group.domains),
    )


def _tree_all_reduce(message_bytes: float, group: FabricGroup) -> float:
    """Bytes twice the message, hops 2 (inside - 1) and 2 log2 of the domains."""
    return compute_path_seconds(_build_tree_path(message_bytes, group, 2.0), group)


def _tree_broadcast(message_bytes: float, group: FabricGroup) -> float:
    """The message once, hops inside - 1 and log2 of the domains."""
    return compute_path_seconds(_build_tree_path(message_bytes, group, 1.0), group)


def _ring_broadcast(message_bytes: float, group: FabricGroup) -> float:
    """The message once through a chain of all devices, in chunks."""
    path = _build_tree_path(message_bytes, group, 1.0)
    return compute_path_seconds(
        path._replace(intra_hops=group.devices - group.domains, inter_hops=group.domains - 1.0), group
    )


def _in_network_all_reduce(message_bytes: float, group: FabricGroup) -> float:
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
    path = CollectivePath(
        several * (group.inside + 1.0) / group.inside * message_bytes,
        tree.inter_bytes,
        several * 2.0,
        tree.inter_hops,
    )
    return compute_path_seconds(path, group, group.in_network)


def _one_shot_all_reduce(message_bytes: float, group: FabricGroup) -> float:
    """Every device reads the message of each other one and adds them: (n - 1) of it in one hop."""
    others = group.devices - 1.0
    away = (group.devices - group.inside) / larger(others, 1.0)
    return compute_path_seconds(
        CollectivePath(
            (1.0 - away) * others * message_bytes, away * others * message_bytes, 1.0, 1.0 * (away > 0.0)
        ),
        group,
    )


def _two_shot_all_reduce(message_bytes: float, group: FabricGroup) -> float:
    """Every device reads and adds its 1/n of all others' messages, then reads their sums: two hops."""
    sent = 2.0 * message_bytes / group.devices
    path = CollectivePath(
        (group.inside - 1.0) * sent,
        (group.devices - group.inside) * sent,
        2.0,
        2.0 * (group.devices > group.inside),
    )
    return compute_path_seconds(path, group)


def _compute_halving_seconds(message_bytes: float, group: FabricGroup, ways: float) -> float:
    """Halving, doubling or both inside domains, then the rest of the message between them."""
    between = CollectivePath(
        0.0,
        ways * (group.domains - 1.0) / group.domains * message_bytes / group.inside,
        0.0,
        ways * doublings(group.domains),
    )
    within = CollectivePath(
        ways * (group.inside - 1.0) / group.inside * message_bytes, 0.0, ways * doublings(group.inside), 0.0
    )
    started = group._replace(launch_seconds=0.0)
    return compute_path_seconds(within, group) + compute_path_seconds(between, started)


def _count_folds(count: float) -> float:
    """1 where ``count`` is no power of two, else 0."""
    return 1.0 * (power_of_two(doublings(count)) > count)


def _halving_doubling_all_reduce(message_bytes: float, group: FabricGroup) -> float:
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
        + inside * compute_path_seconds(CollectivePath(2.0 * message_bytes, 0.0, 2.0, 0.0), started)
        + domains
        * compute_path_seconds(CollectivePath(0.0, 2.0 * message_bytes / group.inside, 0.0, 2.0), started)
    )


def _doubling_gather(message_bytes: float, group: FabricGroup) -> float:
    """Bytes (n - 1) / n of the message in log2 n hops; the reverse for reduce-scatter."""
    return _compute_halving_seconds(message_bytes, group, 1.0)


def _split_levels(group: FabricGroup) -> tuple[FabricGroup, FabricGroup]:
    """Returns the devices of one domain, and one device of each domain."""
    one = 0.0 * group.inside + 1.0
    within = group._replace(devices=group.inside, domains=one)
    between = group._replace(devices=group.domains, inside=one)
    return within, between


def _hierarchical_all_reduce(message_bytes: float, group: FabricGroup) -> float:
    """Reduce-scatter inside, all-reduce of 1/inside between the domains, all-gather inside."""
    within, between = _split_levels(group)
    part = message_bytes / group.inside
    across = smaller(_ring_all_reduce(part, between), _tree_all_reduce(part, between))
    return 2.0 * (group.inside > 1.0) * _ring_gather(message_bytes, within) + (group.domains > 1.0) * across


def _hierarchical_gather(message_bytes: float, group: FabricGroup) -> float:
    """Each device gathers its part between the domains, then the domain gathers; or the reverse."""
    within, between = _split_levels(group)
    across = _ring_gather(message_bytes / group.inside, between)
    return (group.inside > 1.0) * _ring_gather(message_bytes, within) + (group.domains > 1.0) * across


_AT_A_TIME: Final = 8.0
"""Exchanges that NCCL runs concurrently (NCCL_MAX_DEV_WORK_P2P_PER_BATCH)."""


def _direct_all_to_all(message_bytes: float, group: FabricGroup) -> float:
    """1/n of the buffer to each other device, some of them at a time."""
    devices, inside = group.devices, group.inside
    path = CollectivePath(
        (inside - 1.0) / devices * message_bytes,
        (devices - inside) / devices * message_bytes,
        rounded_up((inside - 1.0) / _AT_A_TIME),
        rounded_up((devices - inside) / _AT_A_TIME),
    )
    return compute_path_seconds(path, group)


def _hierarchical_all_to_all(message_bytes: float, group: FabricGroup) -> float:
    """First inside domains to the device of the right rail, then along the rails."""
    within, between = _split_levels(group)
    inside = (group.inside > 1.0) * _direct_all_to_all(message_bytes, within)
    return inside + (group.domains > 1.0) * _direct_all_to_all(message_bytes, between)


def _compute_send_seconds(message_bytes: float, group: FabricGroup) -> float:
    """Returns the seconds of sending the message once over the level that both devices share."""
    near = 1.0 * (group.inside > 1.0)
    return compute_path_seconds(
        CollectivePath(near * message_bytes, (1.0 - near) * message_bytes, near, 1.0 - near), group
    )


_CollectiveTime = Callable[[float, FabricGroup], float]
_GATHERS: Final[Mapping[CollectiveAlgorithm, _CollectiveTime]] = {
    CollectiveAlgorithm.RING: _ring_gather,
    CollectiveAlgorithm.HALVING_DOUBLING: _doubling_gather,
    CollectiveAlgorithm.HIERARCHICAL: _hierarchical_gather,
}
ALGORITHMS: Final[Mapping[Collective, Mapping[CollectiveAlgorithm, _CollectiveTime]]] = {
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
