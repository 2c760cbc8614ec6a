"""Wait of a step for the host, where parts of its state lie in host memory or on drives.

Weights arrive for every use, activations leave in the forward pass and return in the backward pass, gradients
leave as they are computed; all of it is issued behind the work of blocks. The optimizer then runs on the
processors of the host, at the rate at which their memory serves its reads and writes (ZeRO-Offload: Ren et
al. 2021, sections 4 and 5.1; ZeRO-Infinity: Rajbhandari et al. 2021, sections 3 to 6: drives are read and
written while the processors work).

    update = max(bytes read and written / memory rate, weights back / link rate, 2 states / drive rate)

A link sends in both directions at a time. Rates are the share of one device.
"""

from typing import NamedTuple

from service.planning.figures import larger, smaller
from service.planning.hardware.calibration.steps import StepRates
from service.planning.hardware.cluster import Cluster, HostHardware
from service.planning.memory.activations import compute_stage_activations
from service.planning.memory.holdings import (
    compute_stage_states,
    count_adapted_parameters,
    count_stage_parameters,
)
from service.planning.memory.states import shard_parameters
from service.planning.memory.training import is_gradient_offloaded
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES
from service.planning.workload import AdaptationKind, Offload, TrainingStateLocation, TrainingWorkload


class HostRates(NamedTuple):
    """Bytes per second of one device's share of its host.

    Each direction of its link, of memory, of drives.
    """

    link: float
    memory: float
    drives: float


def compute_host_rates(
    host: HostHardware, cluster: Cluster, link_share: float, memory_share: float
) -> HostRates:
    """Returns each device's share of ``host`` when all devices of a node transfer at a time.

    Shares are the achieved ones of the rate of the link and of the memory.
    """
    devices = min(cluster.accelerators_per_node, cluster.accelerator_count)
    return HostRates(
        link=host.link.bytes_per_second * link_share,
        memory=host.memory_bytes_per_second * memory_share / devices,
        drives=host.drive_bytes_per_second / devices,
    )


class OffloadTime(NamedTuple):
    """Seconds that a step waits for transfers, and seconds of its optimizer on the host."""

    transfers: float
    update: float


NOT_MOVED = OffloadTime(0.0, 0.0)


class _MicroBatchTraffic(NamedTuple):
    """Seconds of one micro-batch on the link of a device, by pass and direction, before any overlap."""

    forward_in: float
    forward_out: float
    backward_in: float
    backward_out: float


def _compute_traffic(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    host: HostRates,
) -> _MicroBatchTraffic:
    offload = workload.offload
    weights = kept = gradients = 0.0
    if offload.parameters is not TrainingStateLocation.NONE:
        base = count_stage_parameters(profile, layout, stage)
        rate = (
            smaller(host.link, host.drives) if offload.parameters is TrainingStateLocation.NVME else host.link
        )
        weights = compute_stage_states(profile, workload, layout, stage, base).weights / rate
    if offload.activations is not TrainingStateLocation.NONE:
        held = compute_stage_activations(profile, workload, layout, stage).offloaded.compute_bytes(
            workload.sequence_length
        )
        in_flight = layout.micro_batches_in_flight(workload.micro_batches, stage)
        tokens = workload.micro_batch_size * workload.sequence_length / layout.context
        kept = held * tokens / in_flight / host.link
    if is_gradient_offloaded(workload, layout):
        gradients = _count_updated_parameters(profile, workload, layout, stage)
        gradients *= ELEMENT_BYTES[workload.recipe.gradients] / host.link
    return _MicroBatchTraffic(weights, kept, weights + kept, gradients)


def _count_updated_parameters(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, stage: int
) -> float:
    """Returns the parameters that one device updates."""
    if workload.adaptation.kind is AdaptationKind.FULL:
        trained = count_stage_parameters(profile, layout, stage)
    else:
        trained = count_adapted_parameters(profile, workload, layout, stage)
    return shard_parameters(trained, layout).states


def _compute_update_seconds(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    host: HostRates,
) -> float:
    offload, recipe = workload.offload, workload.recipe
    if offload.optimizer is TrainingStateLocation.NONE:
        return 0.0
    base = count_stage_parameters(profile, layout, stage)
    state = compute_stage_states(profile, workload, layout, stage, base)
    updated = _count_updated_parameters(profile, workload, layout, stage)
    states = state.master_weights + state.optimizer_states
    sent = updated * ELEMENT_BYTES[recipe.weights]
    touched = updated * ELEMENT_BYTES[recipe.gradients] + 2.0 * states + sent
    # Weights that live on the host are not sent back.
    back = sent / host.link * (offload.parameters is TrainingStateLocation.NONE)
    drives = 2.0 * states / host.drives * (offload.optimizer is TrainingStateLocation.NVME)
    return larger(larger(touched / host.memory, back), drives)


def estimate_offload(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    *,
    forward_seconds: float,
    backward_seconds: float,
    host: HostRates,
    rates: StepRates,
) -> OffloadTime:
    """Returns the wait of one step of a stage, given the work of one micro-batch in either direction."""
    if workload.offload == Offload():
        return NOT_MOVED
    sent = _compute_traffic(profile, workload, layout, stage, host)

    def compute_wait(seconds: float, behind: float) -> float:
        return seconds - smaller(rates.gather_overlap * seconds, behind)

    each = compute_wait(larger(sent.forward_in, sent.forward_out), forward_seconds)
    each += compute_wait(larger(sent.backward_in, sent.backward_out), backward_seconds)
    transfers = each * workload.micro_batches
    if workload.offload.optimizer is not TrainingStateLocation.NONE and not is_gradient_offloaded(
        workload, layout
    ):
        # Gradients that stay on the device leave once a step, after its last backward pass.
        leaving = _count_updated_parameters(profile, workload, layout, stage)
        leaving *= ELEMENT_BYTES[workload.recipe.gradients] / host.link
        transfers += compute_wait(leaving, backward_seconds)
    return OffloadTime(transfers, _compute_update_seconds(profile, workload, layout, stage, host))
