"""What a step waits for the host, where parts of its state lie in host memory or on drives.

Weights come for every use, activations leave in the forward pass and come back in the backward pass,
gradients leave as they are made; all of it is issued behind the work of blocks. The optimizer then runs on
the processors of the host, as fast as their memory delivers what it reads and writes (ZeRO-Offload: Ren et
al. 2021, sections 4 and 5.1; ZeRO-Infinity: Rajbhandari et al. 2021, sections 3 to 6: drives are read and
written while the processors work).

    update = max(bytes read and written / memory rate, weights back / link rate, 2 states / drive rate)

A link sends in both directions at a time. Rates are the share of one device.
"""

from typing import NamedTuple

from service.planning.figures import larger, smaller
from service.planning.hardware.calibration.steps import StepRates
from service.planning.hardware.cluster import Cluster, Host
from service.planning.memory.activations import stage_activations
from service.planning.memory.holdings import adapted_parameters, stage_parameters, stage_states
from service.planning.memory.states import held_parameters
from service.planning.memory.training import offloads_gradients
from service.planning.models.profile import Profile
from service.planning.parallelism import Parallelism
from service.planning.precision import ELEMENT_BYTES
from service.planning.workload import AdaptationKind, Offload, Place, TrainingWorkload


class HostRates(NamedTuple):
    """Bytes per second that one device gets of its host: each way of its link, of memory, of drives."""

    link: float
    memory: float
    drives: float


def host_rates(host: Host, cluster: Cluster, link_share: float, memory_share: float) -> HostRates:
    """What each of the devices of a node gets of ``host`` when all of them move at a time.

    Shares are what is achieved of the rate of the link and of the memory.
    """
    devices = min(cluster.accelerators_per_node, cluster.accelerator_count)
    return HostRates(
        link=host.link.bytes_per_second * link_share,
        memory=host.memory_bytes_per_second * memory_share / devices,
        drives=host.drive_bytes_per_second / devices,
    )


class Moved(NamedTuple):
    """Seconds that a step waits for what moves, and seconds of its optimizer on the host."""

    transfers: float
    update: float


NOT_MOVED = Moved(0.0, 0.0)


class _Traffic(NamedTuple):
    """Seconds of one micro-batch on the link of a device, by pass and direction, before any overlap."""

    forward_in: float
    forward_out: float
    backward_in: float
    backward_out: float


def _traffic(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    host: HostRates,
) -> _Traffic:
    offload = workload.offload
    weights = kept = gradients = 0.0
    if offload.parameters is not Place.NONE:
        base = stage_parameters(profile, layout, stage)
        rate = smaller(host.link, host.drives) if offload.parameters is Place.NVME else host.link
        weights = stage_states(profile, workload, layout, stage, base).weights / rate
    if offload.activations is not Place.NONE:
        held = stage_activations(profile, workload, layout, stage).offloaded.at(workload.sequence_length)
        in_flight = layout.micro_batches_in_flight(workload.micro_batches, stage)
        tokens = workload.micro_batch_size * workload.sequence_length / layout.context
        kept = held * tokens / in_flight / host.link
    if offloads_gradients(workload, layout):
        gradients = _updated(profile, workload, layout, stage)
        gradients *= ELEMENT_BYTES[workload.recipe.gradients] / host.link
    return _Traffic(weights, kept, weights + kept, gradients)


def _updated(profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int) -> float:
    """Parameters that one device updates."""
    if workload.adaptation.kind is AdaptationKind.FULL:
        trained = stage_parameters(profile, layout, stage)
    else:
        trained = adapted_parameters(profile, workload, layout, stage)
    return held_parameters(trained, layout).states


def _update_seconds(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    host: HostRates,
) -> float:
    offload, recipe = workload.offload, workload.recipe
    if offload.optimizer is Place.NONE:
        return 0.0
    base = stage_parameters(profile, layout, stage)
    state = stage_states(profile, workload, layout, stage, base)
    updated = _updated(profile, workload, layout, stage)
    states = state.master_weights + state.optimizer_states
    sent = updated * ELEMENT_BYTES[recipe.weights]
    touched = updated * ELEMENT_BYTES[recipe.gradients] + 2.0 * states + sent
    # Weights that live on the host are not sent back.
    back = sent / host.link * (offload.parameters is Place.NONE)
    drives = 2.0 * states / host.drives * (offload.optimizer is Place.NVME)
    return larger(larger(touched / host.memory, back), drives)


def moved(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    stage: int,
    *,
    forward_seconds: float,
    backward_seconds: float,
    host: HostRates,
    rates: StepRates,
) -> Moved:
    """What one step of a stage waits, given the work of one micro-batch in either direction."""
    if workload.offload == Offload():
        return NOT_MOVED
    sent = _traffic(profile, workload, layout, stage, host)

    def waits(seconds: float, behind: float) -> float:
        return seconds - smaller(rates.gather_overlap * seconds, behind)

    each = waits(larger(sent.forward_in, sent.forward_out), forward_seconds)
    each += waits(larger(sent.backward_in, sent.backward_out), backward_seconds)
    transfers = each * workload.micro_batches
    if workload.offload.optimizer is not Place.NONE and not offloads_gradients(workload, layout):
        # Those that stay on the device leave once a step, behind its last backward pass.
        leaving = _updated(profile, workload, layout, stage)
        leaving *= ELEMENT_BYTES[workload.recipe.gradients] / host.link
        transfers += waits(leaving, backward_seconds)
    return Moved(transfers, _update_seconds(profile, workload, layout, stage, host))
