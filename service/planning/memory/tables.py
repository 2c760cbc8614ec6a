"""Placement of a recommender's embedding tables, each whole on one replica.

Tables are distributed over replicas (Naumov et al. 2019, section 4), the largest first, each to the replica
that holds the least so far: the greedy balance of Graham 1969, as TorchRec's planner places tables
(``GreedyPerfPartitioner``). Tensor parallelism divides the tables of a replica over its devices.
"""

import heapq
from functools import lru_cache
from typing import cast

import numpy as np

from service.planning.figures import Figure
from service.planning.models.layers import LayerTensor
from service.planning.models.profile import ModelProfile

_TABLE = "table"
"""Name of the tensor of an embedding table."""
_Sizes = tuple[tuple[int, int], ...]


def is_table(tensor: LayerTensor) -> bool:
    """Returns true for the tensor of an embedding table."""
    return tensor.name == _TABLE


def _list_sizes(profile: ModelProfile) -> _Sizes:
    """Returns the parameters of each embedding table, with the number of such tables."""
    return tuple((tensor.size, count) for tensor, count in profile.head_tensors if is_table(tensor))


def count_table_parameters(profile: ModelProfile) -> float:
    """Returns the parameters of all embedding tables."""
    return float(sum(size * count for size, count in _list_sizes(profile)))


def count_fullest_tables(profile: ModelProfile, replicas: Figure) -> float:
    """Returns the parameters of the tables on the replica that holds most of them.

    ``replicas`` is their number, or an array of numbers.
    """
    sizes = _list_sizes(profile)
    if not sizes:
        return 0.0
    if isinstance(replicas, np.ndarray):
        found = [_balance_tables(sizes, round(each)) for each in replicas.ravel().tolist()]
        return cast("float", np.array(found).reshape(replicas.shape))
    return _balance_tables(sizes, round(replicas))


@lru_cache(maxsize=1024)
def _balance_tables(sizes: _Sizes, replicas: int) -> float:
    """Returns the load of the fullest replica by greedy balance.

    Of many equal tables each replica takes as many at once, but for the last two rounds.
    """
    loads = [0] * min(replicas, sum(count for _, count in sizes))
    for size, count in sorted(sizes, reverse=True):
        at_once = max(0, count // len(loads) - 1)
        loads = [load + size * at_once for load in loads]
        heapq.heapify(loads)
        for _ in range(count - at_once * len(loads)):
            heapq.heapreplace(loads, loads[0] + size)
    return float(max(loads))
