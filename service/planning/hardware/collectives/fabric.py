"""Levels of a cluster as collectives see them.

A cluster has two levels: devices inside a domain joined by one link (NVLink through switches, PCI Express,
meshes), and domains joined by another (InfiniBand, RoCE, Ethernet), each device with its share of the
interfaces of its node. Domains are rail-optimised: the interfaces of a node work side by side.
"""

from typing import NamedTuple

from service.planning.hardware.calibration.links import LinkCalibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.links import MESHES, Link, LinkKind, Torus


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
