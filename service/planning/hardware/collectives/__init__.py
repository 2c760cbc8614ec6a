"""Time of collective communication: alpha-beta over the levels of a cluster.

Sizes and degrees are floats or arrays, one entry for each layout.
"""

from service.planning.hardware.collectives.bandwidth import bus_bandwidth
from service.planning.hardware.collectives.fabric import ClusterFabric, LevelRate, build_fabric, build_rail
from service.planning.hardware.collectives.kinds import Collective, CollectiveAlgorithm
from service.planning.hardware.collectives.times import collective_seconds

__all__ = [
    "ClusterFabric",
    "Collective",
    "CollectiveAlgorithm",
    "LevelRate",
    "build_fabric",
    "build_rail",
    "bus_bandwidth",
    "collective_seconds",
]
