"""Time of a collective: by one algorithm, or by the fastest that NCCL chooses from."""

from collections.abc import Mapping
from typing import Final

from service.planning.errors import PlanningError
from service.planning.figures import is_only, smaller
from service.planning.hardware.collectives.algorithms import ALGORITHMS
from service.planning.hardware.collectives.fabric import ClusterFabric
from service.planning.hardware.collectives.groups import build_group
from service.planning.hardware.collectives.kinds import Collective, CollectiveAlgorithm

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
    ways = ALGORITHMS[kind]
    if algorithm is not None and algorithm not in ways:
        raise PlanningError("ALGORITHM_UNAVAILABLE", "", f"there is no {kind} by {algorithm}")
    if is_only(devices, 1.0):
        return 0.0 * message_bytes
    group = build_group(devices, per_domain, fabric)
    if algorithm is not None:
        return (devices > 1.0) * ways[algorithm](message_bytes, group)
    first, *others = _CHOSEN_FROM[kind]
    if kind is Collective.ALL_REDUCE and fabric.in_network is not None:
        others.append(CollectiveAlgorithm.IN_NETWORK)
    seconds = ways[first](message_bytes, group)
    for other in others:
        seconds = smaller(seconds, ways[other](message_bytes, group))
    return (devices > 1.0) * seconds
