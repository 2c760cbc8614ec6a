"""The time of one optimizer step, in phases that add up to it.

    step = m worst + bubble + gradients + optimizer + host + stragglers + data

with m micro-batches, the seconds of one on the slowest pipeline stage (forward, backward, what is computed
again, collectives that it waits for), and the wait of the stages for each other: the sum of all stages but
the slowest, over v chunks a device (Narayanan et al. 2021, section 2.2), a third of it under zero-bubble H1
(Qi et al. 2023). Degrees, micro-batches and lengths may be arrays, one entry for each layout; choices are one
for all of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.planning.calibration.steps import StepRates
from service.planning.figures import doublings, larger, rounded_up
from service.planning.memory.stages import blocks_within, stage_start
from service.planning.memory.training import adapted_parameters, outer_parameters, stage_parameters
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import ELEMENT_BYTES
from service.planning.profile import BlockProfile, Profile, StageParameters
from service.planning.training.communication import (
    NOTHING,
    Exposed,
    Links,
    Sharded,
    block_traffic,
    context_seconds,
    expert_seconds,
    exposed,
    gather_seconds,
    pipeline_seconds,
    reduce_seconds,
    spread_seconds,
    sum_seconds,
    tensor_seconds,
    tied_seconds,
)
from service.planning.operators import NO_WORK, Machine, Work
from service.planning.training.compute import Compute, optimizer_work
from service.planning.workload import WHOLE_BLOCKS, AdaptationKind, TrainingWorkload


class MicroBatch(NamedTuple):
    """Seconds of one micro-batch on one stage.

    Those named after memory are the part of the work that the bandwidth sets; ``tensor`` to ``pipeline`` are
    waits for communication, ``launch`` for the host.
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

    @property
    def total(self) -> float:
        """All of them; the parts set by memory are within the work."""
        return sum(self[:9], 0.0)

    def chosen(self, other: "MicroBatch", mask: float) -> "MicroBatch":
        """``other`` where the mask is 1, else this one."""
        return MicroBatch(*[b * mask + a * (1.0 - mask) for a, b in zip(self, other, strict=True)])


class StepSeconds(NamedTuple):
    """Seconds of a step on the devices of its slowest stage, by phase, and of the whole.

    ``slowest`` is one micro-batch of that stage, taken ``micro_batches`` times.
    """

    slowest: MicroBatch
    micro_batches: float
    bubble: float
    gradients: float
    optimizer: float
    host: float
    stragglers: float
    data: float

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return self.slowest.total * self.micro_batches + sum(self[2:], 0.0)

    def phases(self) -> Iterator[tuple[str, float, str]]:
        """Name, seconds and bound of each part of the step, in the order of a step."""
        slowest, times = self.slowest, self.micro_batches
        for name in ("forward", "backward", "recomputation"):
            seconds, moving = getattr(slowest, name), getattr(slowest, f"{name}_memory")
            yield name, seconds * times, "memory" if 2.0 * moving > seconds else "compute"
        for name in ("tensor", "context", "expert"):
            yield f"{name}_communication", getattr(slowest, name) * times, "communication"
        yield "data_communication", slowest.data * times + self.gradients, "communication"
        yield "pipeline_communication", slowest.pipeline * times, "communication"
        yield "bubble", self.bubble, "schedule"
        yield "optimizer", self.optimizer, "memory"
        yield "host", slowest.launch * times + self.host, "host"
        yield "stragglers", self.stragglers, "stragglers"
        yield "data", self.data, "data"


class Platform(NamedTuple):
    """What a step runs on, beside what its operators take: links, and what software loses."""

    machine: Machine
    links: Links
    rates: StepRates
    nodes: float = 1.0
    supply_seconds: float = 0.0
    """Seconds in which the data pipeline makes a step's samples ready, while the step before it runs."""


class _Context(NamedTuple):
    """What the parts of a step share."""

    profile: Profile
    workload: TrainingWorkload
    layout: Parallelism
    compute: Compute
    platform: Platform

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch on one device."""
        workload = self.workload
        return workload.micro_batch_size * workload.sequence_length / self.layout.context

    @property
    def width(self) -> float:
        """Bytes of an element that is sent."""
        return ELEMENT_BYTES[self.workload.recipe.activations]

    @property
    def gradient_width(self) -> float:
        """Bytes of a gradient that is sent."""
        return ELEMENT_BYTES[self.workload.recipe.gradients]

    @property
    def gathers(self) -> bool:
        """Whether weights are gathered for each use."""
        return self.layout.sharding in (Sharding.ZERO_3, Sharding.HYBRID)


def _sharded(parameters: StageParameters, layout: Parallelism) -> Sharded:
    dense = parameters.split / layout.tensor + parameters.whole
    return Sharded(dense, parameters.expert / (layout.tensor * layout.expert))


class _Sent(NamedTuple):
    """Seconds of a block's collectives in one direction, before any overlap."""

    tensor: float
    context: float
    expert: float


def _sent(at: _Context, block: BlockProfile) -> _Sent:
    traffic, links, layout = block_traffic(block.block), at.platform.links, at.layout
    element_bytes = at.tokens * at.width
    return _Sent(
        tensor_seconds(
            links,
            layout,
            collectives=traffic.tensor_collectives,
            message_bytes=element_bytes * traffic.width,
        ),
        context_seconds(links, layout, element_bytes * traffic.key_value_elements)
        if traffic.key_value_elements
        else 0.0,
        expert_seconds(
            links,
            layout,
            element_bytes * traffic.expert_elements,
            chosen=traffic.chosen_experts,
            imbalance=at.platform.rates.expert_imbalance,
        )
        if traffic.expert_elements
        else 0.0,
    )


def _moves_weights(at: _Context) -> float:
    """Whether weights travel for every micro-batch: those of a pipeline stay gathered through a step."""
    return at.gathers * (at.layout.pipeline == 1) * 1.0


def _trained(at: _Context) -> float:
    """1 where all parameters have gradients; small ones beside frozen weights send next to nothing."""
    return 1.0 * (at.workload.adaptation.kind is AdaptationKind.FULL)


class _Pass(NamedTuple):
    """One direction through a block: its work, and what the work waits for."""

    work: Work
    tensor: Exposed
    context: Exposed
    expert: Exposed
    data: Exposed

    def within(self, rates: StepRates) -> MicroBatch:
        """As seconds: gaps between kernels, work slowed by what hides behind it, waits for the host."""
        waits = (self.tensor, self.context, self.expert, self.data)
        behind = sum((wait.hidden for wait in waits), 0.0)
        seconds = self.work.seconds * (1.0 + rates.lost_share) + rates.contention * behind
        waited = sum((wait.seconds for wait in waits), 0.0)
        host = larger(0.0, self.work.kernels * rates.launch_seconds - seconds - waited)
        return MicroBatch(
            forward=seconds,
            tensor=self.tensor.seconds,
            context=self.context.seconds,
            expert=self.expert.seconds,
            data=self.data.seconds,
            launch=host,
            forward_memory=(self.work.seconds - self.work.compute_bound_seconds) * (1.0 + rates.lost_share),
        )


def _backward(of: MicroBatch) -> MicroBatch:
    return of._replace(
        forward=0.0, forward_memory=0.0, backward=of.forward, backward_memory=of.forward_memory
    )


def _again(of: MicroBatch) -> MicroBatch:
    return of._replace(
        forward=0.0, forward_memory=0.0, recomputation=of.forward, recomputation_memory=of.forward_memory
    )


def _added(parts: Sequence[tuple[MicroBatch, float]]) -> MicroBatch:
    sums = [0.0] * len(MicroBatch._fields)
    for part, times in parts:
        sums = [total + each * times for total, each in zip(sums, part, strict=True)]
    return MicroBatch(*sums)


def _pass(
    at: _Context, work: Work, sent: _Sent, *, times: float, weights_seconds: float
) -> MicroBatch:
    """One direction through a block whose collectives take place ``times`` times."""
    rates = at.platform.rates
    behind = work.seconds
    return _Pass(
        work,
        exposed(sent.tensor * times, overlap=rates.tensor_overlap, behind=behind),
        exposed(sent.context * times, overlap=rates.context_overlap, behind=behind),
        exposed(sent.expert * times, overlap=rates.expert_overlap, behind=behind),
        exposed(weights_seconds, overlap=rates.gather_overlap, behind=behind),
    ).within(rates)


def _block(at: _Context, index: int, block: BlockProfile) -> MicroBatch:
    """One block of one micro-batch in both directions."""
    sizes = StageParameters(block.split_parameters, block.whole_parameters, block.expert_parameters)
    sent, times = _sent(at, block), at.compute.blocks[index]
    gathered = spread = 0.0
    if at.gathers:
        parameters, links = _sharded(sizes, at.layout), at.platform.links
        moves = _moves_weights(at)
        gathered = moves * gather_seconds(links, at.layout, parameters, at.width)
        spread = moves * _trained(at) * spread_seconds(links, at.layout, parameters, at.gradient_width)
    repeats = 1.0 if at.workload.recomputation in WHOLE_BLOCKS else 0.0
    return _added(
        [
            (_pass(at, times.forward, sent, times=1.0, weights_seconds=gathered), 1.0),
            (
                # Keys and values travel again, and their gradients with them.
                _backward(
                    _pass(at, times.backward, sent._replace(context=2.0 * sent.context), times=1.0,
                          weights_seconds=gathered + spread)
                ),
                1.0,
            ),
            (_again(_pass(at, times.recomputed, sent, times=repeats, weights_seconds=0.0)), 1.0),
        ]
    )


def _ends(at: _Context, stage: float) -> MicroBatch:
    """Table, head and loss of one micro-batch, on the stages that hold them."""
    first, last = (stage == 0) * 1.0, (stage == at.layout.pipeline - 1) * 1.0
    width = at.profile.widest_elements * at.tokens * at.width
    rates, links = at.platform.rates, at.platform.links
    summed = sum_seconds(links, at.layout, width)
    compute = at.compute
    outer = _sharded(outer_parameters(at.profile, at.layout, stage), at.layout)
    gathered = spread = 0.0
    if at.gathers:
        moves = _moves_weights(at)
        gathered = moves * gather_seconds(links, at.layout, outer, at.width)
        spread = moves * _trained(at) * spread_seconds(links, at.layout, outer, at.gradient_width)

    def one(work: Work, tensor: float, weights: float) -> MicroBatch:
        return _Pass(
            work,
            Exposed(tensor, 0.0),
            NOTHING,
            NOTHING,
            exposed(weights, overlap=rates.gather_overlap, behind=work.seconds),
        ).within(rates)

    forward = NO_WORK.plus(compute.table.forward, first).plus(compute.head.forward, last)
    backward = NO_WORK.plus(compute.table.backward, first).plus(compute.head.backward, last)
    return _added(
        [
            (one(forward, first * summed, gathered), 1.0),
            (_backward(one(backward, last * summed, gathered + spread)), 1.0),
        ]
    )


def _stage(at: _Context, blocks: Sequence[MicroBatch], stage: float) -> MicroBatch:
    """One micro-batch on one stage."""
    start, end = stage_start(at.profile, at.layout, stage), stage_start(at.profile, at.layout, stage + 1)
    parts = [
        (each, blocks_within(block, start, end))
        for block, each in zip(at.profile.blocks, blocks, strict=True)
    ]
    boundary = at.profile.widest_elements * at.tokens * at.width
    sent = pipeline_seconds(at.platform.links, at.layout, boundary)
    # One exchange in each direction and chunk, in the middle of a pipeline.
    crossing = 2.0 * at.layout.virtual_stages * sent * (1.0 - at.platform.rates.pipeline_overlap)
    several = (at.layout.pipeline > 1) * 1.0
    return _added([*parts, (_ends(at, stage), 1.0), (MicroBatch(pipeline=crossing * several), 1.0)])


_LEFT_OF_ZERO_BUBBLE = 1.0 / 3.0


def _bubble(layout: Parallelism, stages: Sequence[MicroBatch], slowest: float) -> float:
    """Seconds that the slowest stage waits for the others to fill and to drain."""
    first, middle, last = (stage.total for stage in stages)
    whole = first + (layout.pipeline > 1) * last + larger(0.0, layout.pipeline - 2.0) * middle
    waiting = larger(0.0, whole - slowest) / layout.virtual_stages
    if layout.pipeline_schedule is PipelineSchedule.ZERO_BUBBLE:
        waiting *= _LEFT_OF_ZERO_BUBBLE
    return waiting


def _gradients(at: _Context, stage: float, of: MicroBatch) -> float:
    """Exchange of gradients, and of the weights that were updated, that one step of a stage waits for."""
    layout, links, rates = at.layout, at.platform.links, at.platform.rates
    if at.workload.adaptation.kind is AdaptationKind.FULL:
        parameters = stage_parameters(at.profile, layout, stage)
    else:
        parameters = adapted_parameters(at.profile, at.workload, layout, stage)
    held, overlap = _sharded(parameters, layout), rates.gradient_overlap
    behind = of.backward + of.recomputation
    tied = at.profile.tied_parameters * at.gradient_width
    ends = tied_seconds(links, layout, tied) if at.profile.tied_parameters else 0.0
    match layout.sharding:
        case Sharding.NONE:
            sums = reduce_seconds(links, held, at.gradient_width)
            return exposed(sums, overlap=overlap, behind=behind).seconds + ends
        case Sharding.ZERO_1 | Sharding.ZERO_2:
            sums = spread_seconds(links, layout, held, at.gradient_width)
            weights = gather_seconds(links, layout, held, at.width)
            waits = exposed(sums, overlap=overlap, behind=behind).seconds
            return waits + exposed(weights, overlap=overlap, behind=of.forward).seconds + ends
        case _:
            once = (layout.pipeline > 1) * 1.0
            sums = spread_seconds(links, layout, held, at.gradient_width)
            weights = gather_seconds(links, layout, held, at.width)
            waits = exposed(sums, overlap=rates.gather_overlap, behind=behind).seconds
            return once * (waits + exposed(weights, overlap=rates.gather_overlap, behind=of.forward).seconds + ends)


def _optimizer(at: _Context, stage: float) -> float:
    """The update of what one device of a stage holds; one that runs in the backward pass takes as long."""
    return optimizer_work(at.profile, at.workload, at.layout, stage, at.platform.machine).seconds


def step_seconds(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, compute: Compute, platform: Platform
) -> StepSeconds:
    """Seconds of one step by phase.

    ``compute`` is what the operators take on one device of ``layout``.
    """
    at = _Context(profile, workload, layout, compute, platform)
    blocks = [_block(at, index, block) for index, block in enumerate(profile.blocks)]
    last = layout.pipeline - 1
    places = (0 * layout.pipeline, layout.pipeline // 2, last)
    stages = [_stage(at, blocks, stage) for stage in places]
    slowest = stages[0]
    gradients = _gradients(at, places[0], stages[0])
    optimizer = _optimizer(at, places[0])
    for stage, place in zip(stages[1:], places[1:], strict=True):
        slowest = slowest.chosen(stage, (stage.total > slowest.total) * 1.0)
        gradients = larger(gradients, _gradients(at, place, stage))
        optimizer = larger(optimizer, _optimizer(at, place))
    rates, times = platform.rates, 1.0 * workload.micro_batches
    bubble = _bubble(layout, stages, slowest.total)
    made = slowest.total * times + bubble + gradients + optimizer + rates.step_seconds
    lost = made * rates.stragglers * doublings(platform.nodes)
    return StepSeconds(
        slowest=slowest,
        micro_batches=times,
        bubble=bubble,
        gradients=gradients,
        optimizer=optimizer,
        host=rates.step_seconds,
        stragglers=lost,
        data=larger(0.0, platform.supply_seconds - made - lost),
    )
