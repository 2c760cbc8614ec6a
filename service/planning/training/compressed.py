"""What compressing the gradients changes in a step."""

from typing import NamedTuple

from service.planning.hardware.calibration import Calibration
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.traffic import Exchanged
from service.planning.memory.holdings import stage_parameters
from service.planning.models.profile import Profile
from service.planning.operators import work_of
from service.planning.parallelism import Parallelism, placement
from service.planning.precision import ELEMENT_BYTES, NumberFormat
from service.planning.training.compression import Verdict, compressed, compressed_exchange, gradient_shapes
from service.planning.training.modelled import machine_under, modelled_step
from service.planning.training.step import StepSeconds
from service.planning.workload import TrainingWorkload


class CompressionGain(NamedTuple):
    """How many times fewer bytes replicas send, the step without, and whether that pays."""

    ratio: float
    plain_seconds: float
    verdict: Verdict


def compression_gain(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    step: StepSeconds,
    *,
    cluster: Cluster,
    calibration: Calibration,
    compute_format: NumberFormat,
) -> CompressionGain | None:
    """What the compression of a workload saves of its step, and what it costs on the first stage.

    None without a compression, or where the bandwidth of the device is not known.
    """
    compression, machine = workload.compression, machine_under(cluster.accelerator, workload, calibration)
    plain = modelled_step(
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
    held = stage_parameters(profile, layout, 0)
    exchanged = Exchanged(
        held.split / tensor + held.whole, held.expert / (tensor * layout.expert), width, width, 1.0
    )
    placed = placement(layout, cluster.domain)
    work = compressed_exchange(compression, profile, exchanged, placed, tensor).operators
    cost = work_of(work, machine).seconds
    return CompressionGain(
        compressed(compression, gradient_shapes(profile), width, tensor).ratio,
        plain.total,
        Verdict(plain.total - step.total + cost, cost),
    )
