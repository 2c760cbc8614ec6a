"""Collective operations, and the algorithms that do them."""

from enum import StrEnum


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
