"""Worked examples of communication, computed by planning."""

import math

from service.planning.hardware.collectives import (
    ClusterFabric,
    Collective,
    CollectiveAlgorithm,
    LevelRate,
    collective_seconds,
)
from service.planning.hardware.traffic import (
    CollectiveMessage,
    ReplicaExchange,
    compute_message_seconds,
    replica_messages,
    total_seconds,
)
from service.planning.parallelism import DeviceGroup, Parallelism, Sharding, build_placement
from service.planning.training.communication import split_exposed
from tests.worked import example

MANY = 1e12
"""Devices of the texts' factor of 2, which is the limit of 2 (n - 1) / n."""


def between_nodes(bandwidth: float, latency: float = 0.0) -> ClusterFabric:
    """Devices that are alone in their nodes."""
    return ClusterFabric(LevelRate(math.inf, 0.0), LevelRate(bandwidth, latency), 1)


def reduced(message: float, devices: float, bandwidth: float, latency: float = 0.0) -> float:
    return collective_seconds(
        Collective.ALL_REDUCE,
        message,
        devices=devices,
        per_domain=1,
        fabric=between_nodes(bandwidth, latency),
        algorithm=CollectiveAlgorithm.RING,
    )


@example("network-wall")
def wall(i):
    """In GB and GB/s."""
    exchanged = ReplicaExchange(i["params_b"], 0.0, i["bytes_per_param"], i["bytes_per_param"], 1.0)
    layout = Parallelism(data=1024)
    (gradients,) = replica_messages(exchanged, layout, build_placement(layout, 1), 1.0)
    return {
        "gradient_size_gb": gradients.message_bytes,
        "allreduce_gb": reduced(gradients.message_bytes, MANY, 1.0),
        "time_s": reduced(gradients.message_bytes, MANY, i["network_bw_gbs"]),
    }


@example("network-wall-exact-ring")
def exact(i):
    return {
        "factor": reduced(1.0, i["N"], 1.0),
        "volume_gb": reduced(i["gradient_gb"], i["N"], 1.0),
        "time_s": reduced(i["gradient_gb"], i["N"], i["bw"]),
    }


@example("network-wall-nvlink")
def nvlink(i):
    fast, slow = (reduced(i["volume_gb"] / 2, MANY, i[name]) for name in ("nvlink", "ib"))
    return {"time_s": fast, "ratio": slow / fast}


@example("network-wall-verdict")
def verdict_of_the_wall(i):
    compute, communication = i["t_compute"], i["t_comm"]
    serial, hidden = (
        compute + split_exposed(communication, overlap=share, behind=compute).seconds for share in (0.0, 1.0)
    )
    return {
        "network_bound": hidden > compute,
        "step_no_overlap": serial,
        "step_full_overlap": hidden,
        "comm_fraction_no_overlap": communication / serial,
    }


@example("ga-gpt2-comm")
def accumulated(i):
    """Plain replicas exchange once a step, however many micro-batches it has."""
    layout, exchanged = (
        Parallelism(data=8, sharding=Sharding.NONE),
        ReplicaExchange(1.5e9, 0.0, 2.0, 2.0, 1.0),
    )
    every = between_nodes(25e9)

    def sent(micro_batches: float) -> float:
        messages = replica_messages(exchanged, layout, build_placement(layout, 1), micro_batches)
        return total_seconds(messages, every)

    steps = i["accum_steps"]
    return {"comm_reduction_pct": 100 * (1 - sent(steps) / (steps * sent(1.0)))}


def sending(bandwidth: float) -> float:
    message = CollectiveMessage("tensor", Collective.POINT_TO_POINT, DeviceGroup(2, 1), 1e9)
    return compute_message_seconds(message, between_nodes(bandwidth))


@example("nvlink-vs-pcie")
def against_pcie(i):
    near = sending(i["nv"])
    return {"vs_pcie5": sending(i["pcie5"]) / near, "vs_pcie3": sending(i["pcie3"]) / near}


@example("internode-vs-nvlink")
def against_networks(i):
    near, slow, fast = sending(i["nv"]), i["lo"] / 8, i["hi"] / 8
    return {
        "lo_gbs": slow,
        "hi_gbs": fast,
        "ratio_hi": sending(fast) / near,
        "ratio_lo": sending(slow) / near,
    }


@example("allreduce-factor")
def factors(i):
    del i
    return {f"f{n}": reduced(1.0, n, 1.0) for n in (2, 4, 8, 64, 1024)}


@example("mlsys-ring-allreduce")
def ring(i):
    return {"t": reduced(i["M"], i["N"], i["beta"], i["alpha"])}


@example("mlsys-tree-allreduce")
def tree(i):
    """The package's tree is not pipelined: every level waits for the whole message, up and down."""
    fabric = between_nodes(i["beta"], i["alpha"])
    message = CollectiveMessage(
        "tree", Collective.POINT_TO_POINT, DeviceGroup(2, 1), i["M"], 2 * math.log2(i["N"])
    )
    return {"t": compute_message_seconds(message, fabric)}


@example("mlsys-network-latency")
def fibre(i):
    """Light passes 200,000 km of fibre a second; a round trip is two messages of no size."""
    there = i["d"] / 200_000
    message = CollectiveMessage("ping", Collective.POINT_TO_POINT, DeviceGroup(2, 1), 0.0, 2.0)
    return {"ms": 1000 * compute_message_seconds(message, between_nodes(1e9, there))}
