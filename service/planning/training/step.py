"""Time of one optimizer step, in phases that add up to it.

    step = m worst + bubble + gradients + optimizer + host + stragglers + offload + further

with m micro-batches, the seconds of one on the slowest pipeline stage (forward, backward, recomputation,
exposed collectives), and the wait of the stages for each other: the sum of all stages but the slowest, over v
chunks a device (Narayanan et al. 2021, section 2.2), a third of it under zero-bubble H1 (Qi et al. 2023).
Further are passes of other models and generation (``objectives``, ``rollout``). Degrees, micro-batches and
lengths may be arrays, one entry for each layout; choices are common to all of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.planning.figures import doublings, is_only, larger
from service.planning.hardware.calibration.steps import StepRates
from service.planning.hardware.traffic import (
    ReplicaExchange,
    bucket_bytes,
    count_buckets,
    pipeline_messages,
    table_messages,
    tied_embedding,
    vocabulary_messages,
)
from service.planning.memory.holdings import (
    count_adapted_parameters,
    count_outer_parameters,
    count_stage_parameters,
)
from service.planning.memory.stages import count_blocks_within, stage_start
from service.planning.models.architecture import LayerBlock
from service.planning.models.profile import BlockProfile, ModelProfile, StageParameters
from service.planning.models.profile.sampled import count_pooled_elements
from service.planning.operators import NO_WORK, BlockTimes, DeviceMachine, PassWork, TimeBound, sum_work
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import ELEMENT_BYTES
from service.planning.training.communication import (
    NOTHING,
    BlockCommunication,
    BlockTraffic,
    ExposedCommunication,
    GroupLinks,
    PassCommunication,
    ReplicaExchangeTime,
    compute_block_seconds,
    compute_block_traffic,
    compute_both_directions,
    compute_replica_seconds,
    split_exposed,
)
from service.planning.training.compression import build_compressed_exchange
from service.planning.training.compute import MicroBatchCompute, compute_optimizer_work
from service.planning.training.launches import compute_launch_seconds
from service.planning.training.objectives import FurtherPass, list_further_passes
from service.planning.training.offload import HostRates, OffloadTime, estimate_offload
from service.planning.workload import WHOLE_BLOCKS, AdaptationKind, CudaGraphs, TrainingWorkload


class MicroBatch(NamedTuple):
    """Seconds of one micro-batch on one stage.

    Members named after memory are the part of the work that the bandwidth sets; ``tensor`` to ``pipeline``
    are waits for communication, ``launch`` for the host. ``moved_bytes`` pass between memory and
    multiprocessors.
    """

    forward: float = 0.0
    backward: float = 0.0
    recomputation: float = 0.0
    tensor: float = 0.0
    context: float = 0.0
    expert: float = 0.0
    data: float = 0.0
    pipeline: float = 0.0
    launch: float = 0.0
    forward_memory: float = 0.0
    backward_memory: float = 0.0
    recomputation_memory: float = 0.0
    moved_bytes: float = 0.0

    @property
    def total(self) -> float:
        """Sum of all members; the parts set by memory are within the work."""
        computing = self.forward + self.backward + self.recomputation
        communicating = computing + self.tensor + self.context + self.expert + self.data + self.pipeline
        return communicating + self.launch

    def select_where(self, other: "MicroBatch", mask: float) -> "MicroBatch":
        """Returns ``other`` where the mask is 1, else this one."""
        return MicroBatch(*[b * mask + a * (1.0 - mask) for a, b in zip(self, other, strict=True)])


NO_MICRO_BATCH = MicroBatch()


class FurtherPhase(NamedTuple):
    """A part of a step beside the passes of its model."""

    name: str
    seconds: float
    bound: TimeBound


class StepSeconds(NamedTuple):
    """Seconds of a step on the devices of its slowest stage, by phase, and of the whole.

    ``slowest`` is one micro-batch of that stage, taken ``micro_batches`` times. ``transfers`` are waits for
    offloaded state, ``host_update`` is the optimizer where it runs on the host.
    """

    slowest: MicroBatch
    micro_batches: float
    bubble: float
    gradients: float
    optimizer: float
    host: float
    stragglers: float
    transfers: float = 0.0
    host_update: float = 0.0
    further: tuple[FurtherPhase, ...] = ()

    @property
    def launch(self) -> float:
        """Seconds in which the device waits for the host to launch its kernels."""
        return self.slowest.launch * self.micro_batches

    @property
    def total(self) -> float:
        """Seconds of the step."""
        after = self.bubble + self.gradients + self.optimizer + self.host + self.stragglers
        own = self.slowest.total * self.micro_batches + (after + self.transfers + self.host_update)
        return own + sum((phase.seconds for phase in self.further), 0.0)

    def prepend_phases(self, *phases: FurtherPhase) -> "StepSeconds":
        """Returns the step with phases before its own passes."""
        return self._replace(further=(*phases, *self.further))

    def list_phases(self) -> Iterator[tuple[str, float, TimeBound]]:
        """Yields name, seconds and bound of each part of the step, in the order of a step."""
        slowest, times = self.slowest, self.micro_batches
        yield from self.further
        for name in ("forward", "backward", "recomputation"):
            seconds, moving = getattr(slowest, name), getattr(slowest, f"{name}_memory")
            yield name, seconds * times, TimeBound.MEMORY if 2.0 * moving > seconds else TimeBound.COMPUTE
        for name in ("tensor", "context", "expert"):
            yield f"{name}_communication", getattr(slowest, name) * times, TimeBound.COMMUNICATION
        yield "data_communication", slowest.data * times + self.gradients, TimeBound.COMMUNICATION
        yield "pipeline_communication", slowest.pipeline * times, TimeBound.COMMUNICATION
        yield "offload_communication", self.transfers, TimeBound.COMMUNICATION
        yield "bubble", self.bubble, TimeBound.WAITING
        on_host = self.host_update > self.optimizer
        yield "optimizer", self.optimizer + self.host_update, TimeBound.HOST if on_host else TimeBound.MEMORY
        yield "host", self.launch + self.host, TimeBound.HOST
        yield "stragglers", self.stragglers, TimeBound.WAITING


class StepPlatform(NamedTuple):
    """Platform of a step: device, links, software overheads and host."""

    machine: DeviceMachine
    links: GroupLinks
    rates: StepRates
    host: HostRates
    domains: float = 1.0


class _StageTransfers(NamedTuple):
    """Seconds of the messages of one micro-batch beside its blocks, on any stage of the pipeline."""

    vocabulary: PassCommunication
    tables: float
    pipeline: PassCommunication


class _StepContext(NamedTuple):
    """Inputs that the parts of a step share."""

    profile: ModelProfile
    workload: TrainingWorkload
    layout: Parallelism
    compute: MicroBatchCompute
    platform: StepPlatform
    between: "_StageTransfers"
    passes: tuple[FurtherPass, ...] = ()

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch on one device."""
        workload = self.workload
        return workload.sequences * workload.sequence_length / self.layout.context

    @property
    def width(self) -> float:
        """Bytes of a sent element."""
        return ELEMENT_BYTES[self.workload.recipe.activations]

    @property
    def gradient_width(self) -> float:
        """Bytes of a sent gradient."""
        return ELEMENT_BYTES[self.workload.recipe.gradients]

    @property
    def gathers(self) -> bool:
        """True if weights are gathered for each use."""
        return self.layout.sharding in (Sharding.ZERO_3, Sharding.HYBRID)


def _compute_moving_mask(at: _StepContext) -> float:
    """Returns 1 where weights are sent for every micro-batch; those of a pipeline stay gathered in a step."""
    return at.gathers * (at.layout.pipeline == 1) * 1.0


def _compute_trained_mask(at: _StepContext) -> float:
    """Returns 1 where all parameters have gradients.

    Those of small ones beside frozen weights are negligible.
    """
    return 1.0 * (at.workload.adaptation.kind is AdaptationKind.FULL)


def _build_exchanged(at: _StepContext, parameters: StageParameters) -> ReplicaExchange:
    """Returns the exchange of ``parameters`` between replicas, as one part."""
    dense = parameters.split / at.layout.tensor + parameters.whole
    expert = parameters.expert / (at.layout.tensor * at.layout.expert)
    return ReplicaExchange(dense, expert, at.width, at.gradient_width, 1.0)


_NOT_MOVED = ReplicaExchangeTime(0.0, 0.0, 0.0)


def _compute_gathered_exchange(at: _StepContext, parameters: StageParameters) -> ReplicaExchangeTime:
    """Returns the exchange of weights and gradients for every micro-batch: those of ZeRO 3."""
    if not at.gathers:
        return _NOT_MOVED
    found = compute_replica_seconds(at.platform.links, at.layout, _build_exchanged(at, parameters), 1.0)
    moves, trained = _compute_moving_mask(at), _compute_trained_mask(at)
    return ReplicaExchangeTime(
        moves * found.gathered_forward, moves * found.gathered_backward, moves * trained * found.gradients
    )


class _BlockPass(NamedTuple):
    """One direction through a block: its work, and its waits."""

    work: PassWork
    tensor: ExposedCommunication
    context: ExposedCommunication
    expert: ExposedCommunication
    data: ExposedCommunication

    def to_micro_batch(self, rates: StepRates, launch_seconds: float, routed: float = 0.0) -> MicroBatch:
        """Returns the seconds, with gaps between kernels, contention, and waits for the host.

        ``launch_seconds`` are those in which the host launches the kernels, ``routed`` those in which tokens
        are sorted by their experts, beside operators.
        """
        waits = (self.tensor, self.context, self.expert, self.data)
        behind = sum((wait.hidden for wait in waits), 0.0)
        lost = 1.0 + rates.lost_share
        seconds = self.work.seconds * lost + routed + rates.contention * behind
        waited = sum((wait.seconds for wait in waits), 0.0)
        host = larger(0.0, launch_seconds - seconds - waited)
        return MicroBatch(
            forward=seconds,
            tensor=self.tensor.seconds,
            context=self.context.seconds,
            expert=self.expert.seconds,
            data=self.data.seconds,
            launch=host,
            forward_memory=(self.work.seconds - self.work.compute_bound_seconds) * lost + routed,
            moved_bytes=self.work.moved_bytes,
        )


def _to_backward(of: MicroBatch) -> MicroBatch:
    return of._replace(
        forward=0.0, forward_memory=0.0, backward=of.forward, backward_memory=of.forward_memory
    )


def _to_recomputation(of: MicroBatch) -> MicroBatch:
    return of._replace(
        forward=0.0, forward_memory=0.0, recomputation=of.forward, recomputation_memory=of.forward_memory
    )


def _sum_micro_batches(parts: Sequence[MicroBatch], counts: Sequence[float] | None = None) -> MicroBatch:
    sums = [0.0] * len(MicroBatch._fields)
    for part, times in zip(parts, counts or [1.0] * len(parts), strict=True):
        sums = [total + each * times for total, each in zip(sums, part, strict=True)]
    return MicroBatch(*sums)


class _ExpertCover(NamedTuple):
    """Share of the experts' exchange that is issued behind work, and the seconds of that work."""

    overlap: float
    behind: float


def _find_expert_cover(at: _StepContext, work: PassWork, times: BlockTimes, routed: float) -> _ExpertCover:
    """Returns the work that hides the exchange of a pass: its own, or that of another micro-batch.

    Where a forward pass runs beside the backward pass of another micro-batch, the exchanges of both hide
    behind the work of both, but for the first and the last of a step (DeepSeek-V3 2024, section 3.2.1).
    """
    own = at.platform.rates.expert_overlap
    if not at.layout.overlap_expert_communication:
        return _ExpertCover(own, work.seconds)
    lost = 1.0 + at.platform.rates.lost_share
    both = (times.forward.seconds + times.backward.seconds) * lost / 2.0 + routed
    return _ExpertCover(larger(own, 1.0 - 1.0 / at.workload.micro_batches), both)


def _build_pass(
    at: _StepContext,
    work: PassWork,
    sent: BlockCommunication,
    direction: str,
    *,
    times: float,
    weights: float,
    routed: float,
    tensor_overlap: float,
    cover: _ExpertCover,
) -> MicroBatch:
    """Builds one direction through a block whose collectives take place ``times`` times."""
    rates, behind = at.platform.rates, work.seconds

    def expose_messages(
        both: PassCommunication, overlap: float, behind: float = behind
    ) -> ExposedCommunication:
        return split_exposed(getattr(both, direction) * times, overlap=overlap, behind=behind)

    return _BlockPass(
        work,
        expose_messages(sent.tensor, tensor_overlap),
        expose_messages(sent.context, rates.context_overlap),
        expose_messages(sent.expert, *cover),
        split_exposed(weights, overlap=rates.gather_overlap, behind=behind),
    ).to_micro_batch(rates, compute_launch_seconds(at.workload, work, at.platform.rates), routed)


class _MicroBatchPasses(NamedTuple):
    """One micro-batch of a part of the model: its forward pass, and its whole training."""

    forward: MicroBatch
    whole: MicroBatch


def _compute_routing_seconds(at: _StepContext, traffic: BlockTraffic) -> float:
    """Returns the seconds in which one direction through a block permutes tokens beside operators.

    Experts whose number of tokens is known ahead have no counts to wait for.
    """
    if not traffic.expert_elements:
        return 0.0
    rates, machine = at.platform.rates, at.platform.machine
    spread = at.layout.tensor if at.layout.sequence_parallel else 1.0
    rows = at.tokens * traffic.experts.chosen * traffic.experts.padding
    copied = rows * at.width * traffic.expert_elements / spread
    known = traffic.experts.is_limited or at.workload.graphs is CudaGraphs.ITERATION
    waited = 0.0 if known else rates.routing_seconds
    return rates.routing_copies * copied / machine.bandwidth_bytes_per_second + waited


def _find_tensor_overlap(at: _StepContext, traffic: BlockTraffic) -> float:
    """Returns the share of a block's tensor-parallel collectives that is issued behind its products.

    Collectives in pieces overlap with the products of single matrices, not with the grouped ones of experts.
    Where the layout leaves it open, blocks with experts have none, as in the recipes that divide them.
    """
    stated, share = at.layout.overlap_tensor_communication, at.platform.rates.tensor_overlap
    if stated is None:
        return 0.0 if traffic.expert_elements else share
    if not stated or not traffic.pairs:
        return 0.0
    return share * (traffic.pairs - traffic.grouped_pairs) / traffic.pairs


def _time_block(at: _StepContext, times: BlockTimes, block: BlockProfile) -> _MicroBatchPasses:
    """Times one block of one micro-batch in both directions."""
    sizes = StageParameters(block.split_parameters, block.whole_parameters, block.expert_parameters)
    rates, traffic = at.platform.rates, compute_block_traffic(block.block)
    sent = compute_block_seconds(
        at.platform.links, at.layout, traffic, at.tokens * at.width, rates.expert_imbalance
    )
    routed = _compute_routing_seconds(at, traffic)
    tensor_overlap = _find_tensor_overlap(at, traffic)
    moves = _compute_gathered_exchange(at, sizes)
    again = 1.0 if at.workload.recomputation in WHOLE_BLOCKS else 0.0
    behind = moves.gathered_backward + moves.gradients

    def build_pass(work: PassWork, direction: str, repeats: float, weights: float) -> MicroBatch:
        cover = _find_expert_cover(at, work, times, routed)
        return _build_pass(
            at,
            work,
            sent,
            direction,
            times=repeats,
            weights=weights,
            routed=routed * repeats,
            tensor_overlap=tensor_overlap,
            cover=cover,
        )

    forward = build_pass(times.forward, "forward", 1.0, moves.gathered_forward)
    backward = build_pass(times.backward, "backward", 1.0, behind)
    recomputed = build_pass(times.recomputed, "forward", again, 0.0)
    return _MicroBatchPasses(
        forward, _sum_micro_batches([forward, _to_backward(backward), _to_recomputation(recomputed)])
    )


def _time_blocks(at: _StepContext) -> list[_MicroBatchPasses]:
    """Times every block in the order of the profile, those of the same content once."""
    known: dict[tuple[int, LayerBlock], _MicroBatchPasses] = {}
    found = []
    for times, block in zip(at.compute.blocks, at.profile.blocks, strict=True):
        key = (id(times), block.block)
        if key not in known:
            known[key] = _time_block(at, times, block)
        found.append(known[key])
    return found


def _time_stage_boundaries(
    profile: ModelProfile, layout: Parallelism, links: GroupLinks, tokens: float, width: float
) -> _StageTransfers:
    """Times the transfers of ``tokens`` of a micro-batch on one device, elements ``width`` bytes wide."""
    hidden, placed = profile.widest_elements * tokens * width, links.placement
    ends = vocabulary_messages(hidden, tokens, placed, sequence=layout.sequence_parallel)
    crossing = pipeline_messages(hidden, layout, placed, 1.0 * layout.virtual_stages)
    return _StageTransfers(
        compute_both_directions(ends, links),
        _time_table_exchange(profile, links, tokens * width),
        compute_both_directions(crossing, links),
    )


def _time_table_exchange(profile: ModelProfile, links: GroupLinks, element_bytes: float) -> float:
    """Returns the seconds in which devices exchange looked-up embedding rows, in one direction."""
    architecture = profile.sampled
    if profile.sample is None or architecture is None:
        return 0.0
    pooled = count_pooled_elements(architecture)
    if not pooled:
        return 0.0
    return links.compute_seconds(table_messages(pooled * element_bytes, links.placement).forward)


def _time_ends(at: _StepContext, stage: int) -> _MicroBatchPasses:
    """Times table, head and loss of one micro-batch, on the stages that hold them."""
    first, last = (stage == 0) * 1.0, (stage == at.layout.pipeline - 1) * 1.0
    rates, compute = at.platform.rates, at.compute
    passes, tables = at.between.vocabulary, at.between.tables
    held = first + last - first * last
    moves = _compute_gathered_exchange(at, count_outer_parameters(at.profile, at.layout, stage))

    def build_micro_batch(work: PassWork, tensor: float, weights: float) -> MicroBatch:
        hidden = split_exposed(weights, overlap=rates.gather_overlap, behind=work.seconds)
        return _BlockPass(work, ExposedCommunication(tensor, 0.0), NOTHING, NOTHING, hidden).to_micro_batch(
            rates, compute_launch_seconds(at.workload, work, at.platform.rates)
        )

    forward = NO_WORK.add_scaled(compute.table.forward, first).add_scaled(compute.head.forward, last)
    backward = NO_WORK.add_scaled(compute.table.backward, first).add_scaled(compute.head.backward, last)
    behind = moves.gathered_backward + moves.gradients
    ahead = build_micro_batch(forward, held * passes.forward + first * tables, moves.gathered_forward)
    back = build_micro_batch(backward, held * passes.backward + first * tables, behind)
    return _MicroBatchPasses(ahead, _sum_micro_batches([ahead, _to_backward(back)]))


def _time_stage(at: _StepContext, blocks: Sequence[_MicroBatchPasses], stage: int) -> _MicroBatchPasses:
    """Times one micro-batch on one stage."""
    start, end = stage_start(at.profile, at.layout, stage), stage_start(at.profile, at.layout, stage + 1)
    counts = [count_blocks_within(block, start, end) for block in at.profile.blocks]
    forward, backward = at.between.pipeline
    shown = 1.0 - at.platform.rates.pipeline_overlap
    ends, counts = _time_ends(at, stage), [*counts, 1.0, 1.0]

    def sum_parts(parts: Sequence[MicroBatch], crossing: float) -> MicroBatch:
        return _sum_micro_batches([*parts, MicroBatch(pipeline=crossing * shown)], counts)

    whole = sum_parts([*(block.whole for block in blocks), ends.whole], forward + backward)
    if not at.passes:
        return _MicroBatchPasses(NO_MICRO_BATCH, whole)
    return _MicroBatchPasses(sum_parts([*(block.forward for block in blocks), ends.forward], forward), whole)


_LEFT_OF_ZERO_BUBBLE = 1.0 / 3.0


def _compute_bubble(
    layout: Parallelism, stages: Sequence[MicroBatch], slowest: float, micro_batches: float
) -> float:
    """Returns the seconds that the slowest stage waits.

    For others to fill and drain, and for small groups.
    """
    first, middle, last = (stages[place].total for place in (0, len(stages) // 2, -1))
    whole = first + (layout.pipeline > 1) * last + larger(0.0, layout.pipeline - 2.0) * middle
    idle = slowest * layout.idle_chunks(micro_batches)
    waiting = (larger(0.0, whole - slowest) + idle) / layout.virtual_stages
    if layout.pipeline_schedule is PipelineSchedule.ZERO_BUBBLE:
        waiting *= _LEFT_OF_ZERO_BUBBLE
    return waiting


def _time_compressed_gradients(at: _StepContext, exchanged: ReplicaExchange) -> tuple[float, float] | None:
    """Returns seconds of the exchange and of the work of compressed gradients.

    Plain replicas alone have them.
    """
    compression, links = at.workload.compression, at.platform.links
    if compression is None or at.layout.sharding is not Sharding.NONE:
        return None
    found = build_compressed_exchange(
        compression, at.profile, exchanged, links.placement, 1.0 * at.layout.tensor
    )
    return links.compute_seconds(found.messages), sum_work(found.operators, at.platform.machine).seconds


def _time_gradients(at: _StepContext, stage: int, of: MicroBatch) -> float:
    """Returns the exposed exchange of gradients and updated weights in one step of a stage.

    Sharded weights of a pipeline are gathered once a step, those of other layouts block by block.
    """
    layout, links, rates = at.layout, at.platform.links, at.platform.rates
    if at.workload.adaptation.kind is AdaptationKind.FULL:
        parameters = count_stage_parameters(at.profile, layout, stage)
    else:
        parameters = count_adapted_parameters(at.profile, at.workload, layout, stage)
    times, overlap = 1.0, rates.gather_overlap if at.gathers else rates.gradient_overlap
    if layout.sharding is Sharding.ZERO_2:
        times = 1.0 * at.workload.micro_batches
    exchanged = _build_exchanged(at, parameters)
    found = compute_replica_seconds(links, layout, exchanged, times)
    behind = (of.backward + of.recomputation) * times
    gradients, compressing = _time_compressed_gradients(at, exchanged) or (found.gradients, 0.0)
    waits = split_exposed(gradients, overlap=overlap, behind=behind).seconds
    # The last bucket is full when the pass ends.
    count = count_buckets(
        exchanged.dense + exchanged.expert,
        at.gradient_width,
        bucket_bytes(at.workload.framework, at.gradient_width),
    )
    waits = larger(waits, gradients / count) + compressing
    waits += split_exposed(found.gathered_forward, overlap=overlap, behind=of.forward).seconds
    if at.gathers:
        waits *= (layout.pipeline > 1) * 1.0
    if at.profile.tied_parameters:
        several = (layout.pipeline > 1) * 1.0
        tied = at.profile.tied_parameters / layout.tensor
        waits += several * links.compute_seconds([tied_embedding(tied, at.gradient_width, links.placement)])
    return waits


def _estimate_offload_wait(at: _StepContext, stage: int, of: MicroBatch) -> OffloadTime:
    """Returns the wait of a stage's step for the host, where a part of its state lies there."""
    return estimate_offload(
        at.profile,
        at.workload,
        at.layout,
        stage,
        forward_seconds=of.forward,
        backward_seconds=of.backward + of.recomputation,
        host=at.platform.host,
        rates=at.platform.rates,
    )


def _time_optimizer(at: _StepContext, stage: int) -> float:
    """Returns the update of one device's state; one that runs in the backward pass takes as long."""
    return compute_optimizer_work(at.profile, at.workload, at.layout, stage, at.platform.machine).seconds


def _list_further_phases(
    at: _StepContext, forwards: Sequence[MicroBatch], trained: float
) -> Iterator[FurtherPhase]:
    """Yields passes of other models over the sequences of a step, in the layout of the model.

    They take as long as those of the model by their parameters; ``trained`` is the time of an optimizer step
    of it.
    """
    if not at.passes:
        return
    slowest = forwards[0]
    for stage in forwards[1:]:
        slowest = slowest.select_where(stage, (stage.total > slowest.total) * 1.0)
    times = at.workload.micro_batches
    seconds = slowest.total * times + _compute_bubble(at.layout, forwards, slowest.total, times)
    for each in at.passes:
        taken = each.size * each.times * (trained if each.trained else seconds)
        yield FurtherPhase(each.name, taken, TimeBound.COMPUTE)


def estimate_step_seconds(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    compute: MicroBatchCompute,
    platform: StepPlatform,
) -> StepSeconds:
    """Estimates the seconds of one step by phase.

    ``compute`` is the work of the operators on one device of ``layout``.
    """
    tokens = workload.sequences * workload.sequence_length / layout.context
    width = ELEMENT_BYTES[workload.recipe.activations]
    between = _time_stage_boundaries(profile, layout, platform.links, tokens, width)
    at = _StepContext(
        profile, workload, layout, compute, platform, between, list_further_passes(profile, workload)
    )
    blocks = _time_blocks(at)
    last = layout.pipeline - 1
    # With one stage all three are the same.
    places = (0,) if is_only(layout.pipeline, 1.0) else (0 * layout.pipeline, layout.pipeline // 2, last)
    passes = [_time_stage(at, blocks, stage) for stage in places]
    stages = [stage.whole for stage in passes]
    slowest = stages[0]
    gradients = _time_gradients(at, places[0], stages[0])
    optimizer = _time_optimizer(at, places[0])
    leaves = _estimate_offload_wait(at, places[0], stages[0])
    for stage, place in zip(stages[1:], places[1:], strict=True):
        slowest = slowest.select_where(stage, (stage.total > slowest.total) * 1.0)
        gradients = larger(gradients, _time_gradients(at, place, stage))
        optimizer = larger(optimizer, _time_optimizer(at, place))
        leaves = OffloadTime(*map(larger, leaves, _estimate_offload_wait(at, place, stage)))
    rates, times = platform.rates, 1.0 * workload.micro_batches
    bubble = _compute_bubble(layout, stages, slowest.total, times)
    trained = slowest.total * times + bubble + gradients + optimizer + sum(leaves)
    further = tuple(_list_further_phases(at, [stage.forward for stage in passes], trained))
    made = trained + rates.step_seconds + sum((phase.seconds for phase in further), 0.0)
    return StepSeconds(
        slowest=slowest,
        micro_batches=times,
        bubble=bubble,
        gradients=gradients,
        optimizer=optimizer,
        host=rates.step_seconds,
        stragglers=made * rates.stragglers * doublings(platform.domains),
        transfers=leaves.transfers,
        host_update=leaves.update,
        further=further,
    )
