"""Effect of compressed gradients on a step."""

from typing import NamedTuple

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.traffic import ReplicaExchange
from service.planning.memory.holdings import count_stage_parameters
from service.planning.models.profile import ModelProfile
from service.planning.operators import sum_work
from service.planning.parallelism import Parallelism, build_placement
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.training.compression import (
    CompressionVerdict,
    build_compressed_exchange,
    build_gradient_shapes,
    compute_compressed_bytes,
)
from service.planning.training.modelled import build_training_machine, estimate_step
from service.planning.training.step import StepSeconds
from service.planning.workload import TrainingWorkload


class CompressionGain(NamedTuple):
    """Ratio of bytes saved, the step without compression, and whether it pays."""

    ratio: float
    plain_seconds: float
    verdict: CompressionVerdict


def estimate_compression_gain(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    step: StepSeconds,
    *,
    cluster: Cluster,
    calibration: Calibration,
    compute_format: NumberFormat,
) -> CompressionGain | None:
    """Returns the time that a workload's compression saves of its step, and its cost on the first stage.

    None without a compression, or where the bandwidth of the device is not known.
    """
    compression, machine = (
        workload.compression,
        build_training_machine(cluster.accelerator, workload, calibration),
    )
    plain = estimate_step(
        profile,
        workload._replace(compression=None),
        layout,
        cluster=cluster,
        calibration=calibration,
        compute_format=compute_format,
    )
    if compression is None or machine is None or plain is None:
        return None
    tensor, width = 1.0 * layout.tensor, ELEMENT_BYTES[workload.recipe.gradients]
    held = count_stage_parameters(profile, layout, 0)
    exchanged = ReplicaExchange(
        held.split / tensor + held.whole, held.expert / (tensor * layout.expert), width, width, 1.0
    )
    placed = build_placement(layout, cluster.domain)
    work = build_compressed_exchange(compression, profile, exchanged, placed, tensor).operators
    cost = sum_work(work, machine).seconds
    return CompressionGain(
        compute_compressed_bytes(compression, build_gradient_shapes(profile), width, tensor).ratio,
        plain.total,
        CompressionVerdict(plain.total - step.total + cost, cost),
    )
