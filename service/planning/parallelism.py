"""Layout of a workload on the devices of a cluster.

Tensor parallelism follows Shoeybi et al. 2019, sequence parallelism Korthikanti et al. 2022, pipeline
schedules Huang et al. 2019 (GPipe) and Narayanan et al. 2021 (1F1B, interleaved), sharding of the training
state Rajbhandari et al. 2020 (ZeRO 1 to 3).
"""

from enum import StrEnum
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.figures import larger, rounded_down, smaller


@lru_cache(maxsize=4096)
def list_divisors(number: int) -> tuple[int, ...]:
    """Returns the whole numbers that divide ``number``, ascending."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return (*small, *(number // d for d in reversed(small) if d * d != number))


class Sharding(StrEnum):
    """Part of the training state that is sharded over the data-parallel devices."""

    NONE = "none"
    ZERO_1 = "zero_1"
    ZERO_2 = "zero_2"
    ZERO_3 = "zero_3"
    HYBRID = "hybrid"


class PipelineSchedule(StrEnum):
    """Order in which the micro-batches of a step pass the pipeline."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "one_f_one_b"
    INTERLEAVED = "interleaved"
    ZERO_BUBBLE = "zero_bubble"


class ShardCounts(NamedTuple):
    """Number of devices over which each part of the training state is sharded."""

    weights: float
    gradients: float
    optimizer_states: float


class Parallelism(NamedTuple):
    """Degrees of each kind of parallelism; tensor x pipeline x data x context = devices.

    Expert parallelism takes its devices from the data-parallel ones. ``sharding_group_size`` is the
    number of data-parallel devices that share one copy of the state under ``hybrid``. The degrees may be
    arrays, one entry for each layout; the choices are the same for all of them.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    sequence_parallel: bool = False
    sharding: Sharding = Sharding.NONE
    sharding_group_size: int | None = None
    pipeline_schedule: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B
    virtual_stages: int = 1
    overlap_expert_communication: bool = False
    """True if tokens travel to their experts and back while another micro-batch computes."""
    overlap_tensor_communication: bool | None = None
    """True if collectives of tensor parallelism are sent in pieces beside the products that need them.

    False if products wait for them. None for the habit of the framework: in pieces in blocks without experts.
    """
    expert_tensor: int | None = None
    """Devices that each expert of a served model is split over, of the tensor x expert that hold all.

    None for ``tensor``.
    """

    @property
    def devices(self) -> int:
        """Number of devices that the layout occupies."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def replicas(self) -> int:
        """Number of devices that hold the same shard of the weights."""
        return self.data * self.context

    def compute_shards(self, replicas: int) -> ShardCounts:
        """Returns the sharding of the state of weights held by ``replicas`` devices."""
        match self.sharding:
            case Sharding.NONE:
                return ShardCounts(1.0, 1.0, 1.0)
            case Sharding.ZERO_1:
                return ShardCounts(1.0, 1.0, 1.0 * replicas)
            case Sharding.ZERO_2:
                return ShardCounts(1.0, 1.0 * replicas, 1.0 * replicas)
            case Sharding.ZERO_3:
                return ShardCounts(1.0 * replicas, 1.0 * replicas, 1.0 * replicas)
            case Sharding.HYBRID:
                group = 1.0 * smaller(self.sharding_group_size or replicas, replicas)
                return ShardCounts(group, group, group)

    def micro_batches_in_flight(self, micro_batches: int, stage: int) -> float:
        """Returns the micro-batches whose activations ``stage`` (0 is the first) holds at its peak.

        GPipe holds all of them. 1F1B holds one for each stage from here to the end (Narayanan et al. 2021,
        section 2.2); zero-bubble H1 (Qi et al. 2023) keeps that bound. Interleaved, a stage holds 2 (p - 1 -
        stage) + (v - 1) p + 1 of its v p model chunks (the warm-up of Megatron-LM), which is p (1 + (p - 1) /
        (p v)) micro-batches on the first stage (Korthikanti et al. 2022, section 4.2.3). A forward pass that
        runs beside the backward pass of another micro-batch adds none: what it stores, the other frees.
        """
        behind = self.pipeline - 1 - stage
        match self.pipeline_schedule:
            case PipelineSchedule.GPIPE:
                return 1.0 * micro_batches
            case PipelineSchedule.INTERLEAVED:
                chunks = 2 * behind + (self.virtual_stages - 1) * self.pipeline + 1
                return smaller(chunks / self.virtual_stages, 1.0 * micro_batches)
            case _:
                return 1.0 * smaller(behind + 1, micro_batches)

    def idle_chunks(self, micro_batches: float) -> float:
        """Returns the chunks for which a stage waits in a step whose last group of micro-batches is small.

        Interleaved, micro-batches pass each chunk in groups of p, so that a stage finishes a group when it
        returns for the next chunk. A group of r < p returns p - r chunks later, v - 1 times. Schedules of
        Megatron-LM and of Narayanan et al. 2021 are for whole groups alone.
        """
        return (self.virtual_stages - 1.0) * (-micro_batches % self.pipeline)

    def bubble_share(self, micro_batches: int) -> float:
        """Returns the share of a step in which a stage waits for others, communication aside.

        (p - 1) / (m v + p - 1) with m micro-batches on p stages of v chunks (Narayanan et al. 2021, section
        2.2), where p divides m; zero-bubble H1 leaves a third of the wait (Qi et al. 2023).
        """
        waiting = self.pipeline - 1 + self.idle_chunks(micro_batches)
        if self.pipeline_schedule is PipelineSchedule.ZERO_BUBBLE:
            waiting /= 3.0
        return waiting / (micro_batches * self.virtual_stages + waiting)


class DeviceGroup(NamedTuple):
    """A group of communicating devices, and the number of them in each domain."""

    devices: float
    per_domain: float


class GroupPlacement(NamedTuple):
    """The groups that a device belongs to.

    ``replicas`` hold the same shard of the weights, ``expert_replicas`` the same experts; ``shards`` spread
    one copy of the training state (all replicas but under hybrid sharding), ``shard_replicas`` hold the same
    part of it; ``expert_`` are those of experts.
    ``ends`` are the first and the last pipeline stage.
    """

    tensor: DeviceGroup
    context: DeviceGroup
    expert: DeviceGroup
    replicas: DeviceGroup
    expert_replicas: DeviceGroup
    shards: DeviceGroup
    shard_replicas: DeviceGroup
    expert_shards: DeviceGroup
    expert_shard_replicas: DeviceGroup
    pipeline: DeviceGroup
    ends: DeviceGroup


def _build_group(devices: float, stride: float, per_domain: float) -> DeviceGroup:
    """Builds a group of devices ``stride`` apart, with the number of them in a domain."""
    return DeviceGroup(1.0 * devices, larger(1.0, smaller(1.0 * devices, rounded_down(per_domain / stride))))


def build_placement(layout: Parallelism, per_domain: float) -> GroupPlacement:
    """Places the groups of a layout on domains of ``per_domain`` devices.

    Ranks are numbered as in Megatron-Core: tensor innermost, then context, data, and pipeline outermost;
    experts take theirs from context and data, innermost first (order tp-cp-ep-dp-pp of its rank generators,
    of which the experts' one has no context).
    """
    tensor, replicas = 1.0 * layout.tensor, 1.0 * layout.replicas
    stage = tensor * replicas
    experts = smaller(layout.expert, replicas)
    shards = smaller(layout.sharding_group_size or replicas, replicas)
    spread = smaller(shards, replicas / experts)

    def build_group(devices: float, stride: float) -> DeviceGroup:
        return _build_group(devices, stride, per_domain)

    return GroupPlacement(
        tensor=build_group(tensor, 1.0),
        context=build_group(layout.context, tensor),
        expert=build_group(experts, tensor),
        replicas=build_group(replicas, tensor),
        expert_replicas=build_group(replicas / experts, tensor * experts),
        shards=build_group(shards, tensor),
        shard_replicas=build_group(replicas / shards, tensor * shards),
        expert_shards=build_group(spread, tensor * experts),
        expert_shard_replicas=build_group(replicas / (experts * spread), tensor * experts * spread),
        pipeline=_build_pair(layout.pipeline, stage, per_domain),
        ends=_build_pair(layout.pipeline, stage * (layout.pipeline - 1.0), per_domain),
    )


def _build_pair(stages: float, distance: float, per_domain: float) -> DeviceGroup:
    """Builds two devices ``distance`` apart; one where there is one stage."""
    devices = smaller(1.0 * stages, 2.0)
    return DeviceGroup(devices, smaller(devices, 1.0 + (distance < per_domain)))


def check_layout(layout: Parallelism, *, device_count: int) -> None:
    """Refuses a layout that does not fit the cluster or contradicts itself.

    Raises :class:`PlanningError` naming the field at fault.
    """
    product = layout.devices
    if product != device_count:
        raise PlanningError(
            "PARALLELISM_MISMATCH",
            "/parallelism",
            f"tensor {layout.tensor} x pipeline {layout.pipeline} x data {layout.data} x context "
            f"{layout.context} = {product} devices, but the cluster has {device_count}",
        )
    interleaved = layout.pipeline_schedule is PipelineSchedule.INTERLEAVED
    if interleaved != (layout.virtual_stages > 1):
        raise PlanningError(
            "VIRTUAL_STAGES",
            "/parallelism/virtual_stages",
            "virtual_stages above 1 belongs to the interleaved schedule, and that schedule needs it",
        )
    if layout.data % layout.expert:
        raise PlanningError(
            "EXPERT_PARALLELISM",
            "/parallelism/expert",
            f"expert {layout.expert} does not divide data {layout.data}, whose devices it uses",
        )
    holders = layout.tensor * layout.expert
    if layout.expert_tensor is not None and holders % layout.expert_tensor:
        raise PlanningError(
            "EXPERT_PARALLELISM",
            "/parallelism/expert_tensor",
            f"expert_tensor {layout.expert_tensor} does not divide the {holders} devices that hold experts",
        )
    group = layout.sharding_group_size
    if (group is not None) != (layout.sharding is Sharding.HYBRID):
        raise PlanningError(
            "SHARDING_GROUP",
            "/parallelism/sharding_group_size",
            "sharding_group_size belongs to hybrid sharding, and hybrid sharding needs it",
        )
    if group is not None and layout.replicas % group:
        raise PlanningError(
            "SHARDING_GROUP",
            "/parallelism/sharding_group_size",
            f"sharding_group_size {group} does not divide the {layout.replicas} data-parallel devices",
        )
