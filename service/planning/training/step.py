"""The time of one optimizer step, in phases that add up to it.

    step = m worst + bubble + gradients + optimizer + host + stragglers + offload + further

with m micro-batches, the seconds of one on the slowest pipeline stage (forward, backward, what is computed
again, collectives that it waits for), and the wait of the stages for each other: the sum of all stages but
the slowest, over v chunks a device (Narayanan et al. 2021, section 2.2), a third of it under zero-bubble H1
(Qi et al. 2023). Further are passes of other models and generation (``objectives``, ``rollout``). Degrees,
micro-batches and lengths may be arrays, one entry for each layout; choices are one for all of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from service.planning.figures import doublings, is_only, larger
from service.planning.hardware.calibration.steps import StepRates
from service.planning.hardware.traffic import (
    Exchanged,
    bucket_bytes,
    buckets,
    pipeline_messages,
    table_messages,
    tied_embedding,
    vocabulary_messages,
)
from service.planning.memory.holdings import adapted_parameters, outer_parameters, stage_parameters
from service.planning.memory.stages import blocks_within, stage_start
from service.planning.models.architecture import Block
from service.planning.models.profile import BlockProfile, Profile, StageParameters
from service.planning.models.profile.sampled import embedding_tables
from service.planning.operators import NO_WORK, BlockTimes, Bound, Machine, Work, work_of
from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.precision import ELEMENT_BYTES
from service.planning.training.communication import (
    NOTHING,
    Both,
    Exposed,
    Links,
    Replicas,
    Sent,
    block_seconds,
    block_traffic,
    both_ways,
    exposed,
    replica_seconds,
)
from service.planning.training.compression import compressed_exchange
from service.planning.training.compute import Compute, optimizer_work
from service.planning.training.objectives import FurtherPass, further_passes
from service.planning.training.offload import HostRates, Moved, moved
from service.planning.workload import WHOLE_BLOCKS, AdaptationKind, TrainingWorkload


class MicroBatch(NamedTuple):
    """Seconds of one micro-batch on one stage.

    Those named after memory are the part of the work that the bandwidth sets; ``tensor`` to ``pipeline`` are
    waits for communication, ``launch`` for the host. ``moved_bytes`` pass between memory and multiprocessors.
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
        """All of them; the parts set by memory are within the work."""
        computing = self.forward + self.backward + self.recomputation
        communicating = computing + self.tensor + self.context + self.expert + self.data + self.pipeline
        return communicating + self.launch

    def chosen(self, other: "MicroBatch", mask: float) -> "MicroBatch":
        """``other`` where the mask is 1, else this one."""
        return MicroBatch(*[b * mask + a * (1.0 - mask) for a, b in zip(self, other, strict=True)])


NO_MICRO_BATCH = MicroBatch()


class FurtherPhase(NamedTuple):
    """A part of a step beside the passes of its model."""

    name: str
    seconds: float
    bound: Bound


class StepSeconds(NamedTuple):
    """Seconds of a step on the devices of its slowest stage, by phase, and of the whole.

    ``slowest`` is one micro-batch of that stage, taken ``micro_batches`` times. ``transfers`` are waits for
    what is offloaded, ``host_update`` is the optimizer where it runs on the host.
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
    def total(self) -> float:
        """Seconds of the step."""
        after = self.bubble + self.gradients + self.optimizer + self.host + self.stragglers
        own = self.slowest.total * self.micro_batches + (after + self.transfers + self.host_update)
        return own + sum((phase.seconds for phase in self.further), 0.0)

    def beside(self, *phases: FurtherPhase) -> "StepSeconds":
        """The step with what comes before its own passes."""
        return self._replace(further=(*phases, *self.further))

    def phases(self) -> Iterator[tuple[str, float, Bound]]:
        """Name, seconds and bound of each part of the step, in the order of a step."""
        slowest, times = self.slowest, self.micro_batches
        yield from self.further
        for name in ("forward", "backward", "recomputation"):
            seconds, moving = getattr(slowest, name), getattr(slowest, f"{name}_memory")
            yield name, seconds * times, Bound.MEMORY if 2.0 * moving > seconds else Bound.COMPUTE
        for name in ("tensor", "context", "expert"):
            yield f"{name}_communication", getattr(slowest, name) * times, Bound.COMMUNICATION
        yield "data_communication", slowest.data * times + self.gradients, Bound.COMMUNICATION
        yield "pipeline_communication", slowest.pipeline * times, Bound.COMMUNICATION
        yield "offload_communication", self.transfers, Bound.COMMUNICATION
        yield "bubble", self.bubble, Bound.WAITING
        on_host = self.host_update > self.optimizer
        yield "optimizer", self.optimizer + self.host_update, Bound.HOST if on_host else Bound.MEMORY
        yield "host", slowest.launch * times + self.host, Bound.HOST
        yield "stragglers", self.stragglers, Bound.WAITING


class Platform(NamedTuple):
    """What a step runs on, beside what its operators take: links, and what software loses."""

    machine: Machine
    links: Links
    rates: StepRates
    host: HostRates
    domains: float = 1.0


class _Between(NamedTuple):
    """Seconds of what one micro-batch sends beside its blocks, wherever a stage stands in the pipeline."""

    vocabulary: Both
    tables: float
    pipeline: Both


class _Context(NamedTuple):
    """What the parts of a step share."""

    profile: Profile
    workload: TrainingWorkload
    layout: Parallelism
    compute: Compute
    platform: Platform
    between: "_Between"
    passes: tuple[FurtherPass, ...] = ()

    @property
    def tokens(self) -> float:
        """Tokens of a micro-batch on one device."""
        workload = self.workload
        return workload.sequences * workload.sequence_length / self.layout.context

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


def _moves_weights(at: _Context) -> float:
    """Whether weights travel for every micro-batch: those of a pipeline stay gathered through a step."""
    return at.gathers * (at.layout.pipeline == 1) * 1.0


def _trained(at: _Context) -> float:
    """1 where all parameters have gradients; small ones beside frozen weights send next to nothing."""
    return 1.0 * (at.workload.adaptation.kind is AdaptationKind.FULL)


def _exchanged(at: _Context, parameters: StageParameters) -> Exchanged:
    """What replicas exchange of ``parameters``, as one part."""
    dense = parameters.split / at.layout.tensor + parameters.whole
    expert = parameters.expert / (at.layout.tensor * at.layout.expert)
    return Exchanged(dense, expert, at.width, at.gradient_width, 1.0)


_NOT_MOVED = Replicas(0.0, 0.0, 0.0)


def _moved(at: _Context, parameters: StageParameters) -> Replicas:
    """Weights and gradients of a part that travel for every micro-batch: those of ZeRO 3."""
    if not at.gathers:
        return _NOT_MOVED
    found = replica_seconds(at.platform.links, at.layout, _exchanged(at, parameters), 1.0)
    moves, trained = _moves_weights(at), _trained(at)
    return Replicas(
        moves * found.gathered_forward, moves * found.gathered_backward, moves * trained * found.gradients
    )


class _Pass(NamedTuple):
    """One direction through a block: its work, and what the work waits for."""

    work: Work
    tensor: Exposed
    context: Exposed
    expert: Exposed
    data: Exposed

    def within(self, rates: StepRates, lost: float) -> MicroBatch:
        """As seconds: gaps between kernels, work slowed by what hides behind it, waits for the host.

        ``lost`` is what passes beside operators, over their time.
        """
        waits = (self.tensor, self.context, self.expert, self.data)
        behind = sum((wait.hidden for wait in waits), 0.0)
        seconds = self.work.seconds * (1.0 + lost) + rates.contention * behind
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
            moved_bytes=self.work.moved_bytes,
        )


def _backward(of: MicroBatch) -> MicroBatch:
    return of._replace(
        forward=0.0, forward_memory=0.0, backward=of.forward, backward_memory=of.forward_memory
    )


def _again(of: MicroBatch) -> MicroBatch:
    return of._replace(
        forward=0.0, forward_memory=0.0, recomputation=of.forward, recomputation_memory=of.forward_memory
    )


def _added(parts: Sequence[MicroBatch], counts: Sequence[float] | None = None) -> MicroBatch:
    sums = [0.0] * len(MicroBatch._fields)
    for part, times in zip(parts, counts or [1.0] * len(parts), strict=True):
        sums = [total + each * times for total, each in zip(sums, part, strict=True)]
    return MicroBatch(*sums)


def _pass(
    at: _Context, work: Work, sent: Sent, direction: str, *, times: float, weights: float, lost: float
) -> MicroBatch:
    """One direction through a block whose collectives take place ``times`` times."""
    rates, behind = at.platform.rates, work.seconds

    def waits(both: Both, overlap: float) -> Exposed:
        return exposed(getattr(both, direction) * times, overlap=overlap, behind=behind)

    return _Pass(
        work,
        waits(sent.tensor, rates.tensor_overlap),
        waits(sent.context, rates.context_overlap),
        waits(sent.expert, rates.expert_overlap),
        exposed(weights, overlap=rates.gather_overlap, behind=behind),
    ).within(rates, lost)


class _Passes(NamedTuple):
    """One micro-batch of a part of the model: its forward pass, and all that its training takes."""

    forward: MicroBatch
    whole: MicroBatch


def _block(at: _Context, times: BlockTimes, block: BlockProfile) -> _Passes:
    """One block of one micro-batch in both directions."""
    sizes = StageParameters(block.split_parameters, block.whole_parameters, block.expert_parameters)
    rates, traffic = at.platform.rates, block_traffic(block.block)
    sent = block_seconds(at.platform.links, at.layout, traffic, at.tokens * at.width, rates.expert_imbalance)
    lost = rates.lost_share + rates.routing_share * (traffic.expert_elements > 0.0)
    moves = _moved(at, sizes)
    again = 1.0 if at.workload.recomputation in WHOLE_BLOCKS else 0.0
    behind = moves.gathered_backward + moves.gradients
    forward = _pass(at, times.forward, sent, "forward", times=1.0, weights=moves.gathered_forward, lost=lost)
    backward = _pass(at, times.backward, sent, "backward", times=1.0, weights=behind, lost=lost)
    recomputed = _pass(at, times.recomputed, sent, "forward", times=again, weights=0.0, lost=lost)
    return _Passes(forward, _added([forward, _backward(backward), _again(recomputed)]))


def _blocks(at: _Context) -> list[_Passes]:
    """Every block in the order of the profile, those of the same content worked out once."""
    known: dict[tuple[int, Block], _Passes] = {}
    found = []
    for times, block in zip(at.compute.blocks, at.profile.blocks, strict=True):
        key = (id(times), block.block)
        if key not in known:
            known[key] = _block(at, times, block)
        found.append(known[key])
    return found


def _between(profile: Profile, layout: Parallelism, links: Links, tokens: float, width: float) -> _Between:
    """For ``tokens`` of a micro-batch on one device, elements ``width`` bytes wide."""
    hidden, placed = profile.widest_elements * tokens * width, links.placement
    ends = vocabulary_messages(hidden, tokens, placed, sequence=layout.sequence_parallel)
    crossing = pipeline_messages(hidden, layout, placed, 1.0 * layout.virtual_stages)
    return _Between(
        both_ways(ends, links), _tables(profile, links, tokens * width), both_ways(crossing, links)
    )


def _tables(profile: Profile, links: Links, element_bytes: float) -> float:
    """Seconds in which devices send each other what they looked up in embedding tables, in one direction."""
    architecture = profile.sampled
    if profile.sample is None or architecture is None:
        return 0.0
    pooled = embedding_tables(architecture).pooled_elements
    if not pooled:
        return 0.0
    return links.seconds(table_messages(pooled * element_bytes, links.placement).forward)


def _outer(at: _Context, stage: int) -> StageParameters:
    """Parameters of a stage outside blocks that replicas share: embedding tables lie on one device each."""
    outer = outer_parameters(at.profile, at.layout, stage)
    return outer._replace(split=outer.split - _table_parameters(at, stage))


def _table_parameters(at: _Context, stage: int) -> float:
    architecture = at.profile.sampled
    if at.profile.sample is None or architecture is None:
        return 0.0
    # They stand with the head, as all that is no unit of depth.
    return embedding_tables(architecture).parameters * (stage == at.layout.pipeline - 1) * 1.0


def _ends(at: _Context, stage: int) -> _Passes:
    """Table, head and loss of one micro-batch, on the stages that hold them."""
    first, last = (stage == 0) * 1.0, (stage == at.layout.pipeline - 1) * 1.0
    rates, compute = at.platform.rates, at.compute
    passes, tables = at.between.vocabulary, at.between.tables
    held = first + last - first * last
    moves = _moved(at, _outer(at, stage))

    def one(work: Work, tensor: float, weights: float) -> MicroBatch:
        hidden = exposed(weights, overlap=rates.gather_overlap, behind=work.seconds)
        return _Pass(work, Exposed(tensor, 0.0), NOTHING, NOTHING, hidden).within(rates, rates.lost_share)

    forward = NO_WORK.plus(compute.table.forward, first).plus(compute.head.forward, last)
    backward = NO_WORK.plus(compute.table.backward, first).plus(compute.head.backward, last)
    behind = moves.gathered_backward + moves.gradients
    ahead = one(forward, held * passes.forward + first * tables, moves.gathered_forward)
    back = one(backward, held * passes.backward + first * tables, behind)
    return _Passes(ahead, _added([ahead, _backward(back)]))


def _stage(at: _Context, blocks: Sequence[_Passes], stage: int) -> _Passes:
    """One micro-batch on one stage."""
    start, end = stage_start(at.profile, at.layout, stage), stage_start(at.profile, at.layout, stage + 1)
    counts = [blocks_within(block, start, end) for block in at.profile.blocks]
    forward, backward = at.between.pipeline
    shown = 1.0 - at.platform.rates.pipeline_overlap
    ends, counts = _ends(at, stage), [*counts, 1.0, 1.0]

    def added(parts: Sequence[MicroBatch], crossing: float) -> MicroBatch:
        return _added([*parts, MicroBatch(pipeline=crossing * shown)], counts)

    whole = added([*(block.whole for block in blocks), ends.whole], forward + backward)
    if not at.passes:
        return _Passes(NO_MICRO_BATCH, whole)
    return _Passes(added([*(block.forward for block in blocks), ends.forward], forward), whole)


_LEFT_OF_ZERO_BUBBLE = 1.0 / 3.0


def _bubble(layout: Parallelism, stages: Sequence[MicroBatch], slowest: float, micro_batches: float) -> float:
    """Seconds that the slowest stage waits: for the others to fill and to drain, and behind small groups."""
    first, middle, last = (stages[place].total for place in (0, len(stages) // 2, -1))
    whole = first + (layout.pipeline > 1) * last + larger(0.0, layout.pipeline - 2.0) * middle
    idle = slowest * layout.idle_chunks(micro_batches)
    waiting = (larger(0.0, whole - slowest) + idle) / layout.virtual_stages
    if layout.pipeline_schedule is PipelineSchedule.ZERO_BUBBLE:
        waiting *= _LEFT_OF_ZERO_BUBBLE
    return waiting


def _compressed(at: _Context, exchanged: Exchanged) -> tuple[float, float] | None:
    """Seconds of the exchange and of the work of compressed gradients; plain replicas alone have them."""
    compression, links = at.workload.compression, at.platform.links
    if compression is None or at.layout.sharding is not Sharding.NONE:
        return None
    found = compressed_exchange(compression, at.profile, exchanged, links.placement, 1.0 * at.layout.tensor)
    return links.seconds(found.messages), work_of(found.operators, at.platform.machine).seconds


def _gradients(at: _Context, stage: int, of: MicroBatch) -> float:
    """Exchange of gradients, and of the weights that were updated, that one step of a stage waits for.

    Sharded weights of a pipeline are gathered once a step, those of other layouts block by block.
    """
    layout, links, rates = at.layout, at.platform.links, at.platform.rates
    if at.workload.adaptation.kind is AdaptationKind.FULL:
        parameters = stage_parameters(at.profile, layout, stage)
        parameters = parameters._replace(split=parameters.split - _table_parameters(at, stage))
    else:
        parameters = adapted_parameters(at.profile, at.workload, layout, stage)
    times, overlap = 1.0, rates.gather_overlap if at.gathers else rates.gradient_overlap
    if layout.sharding is Sharding.ZERO_2:
        times = 1.0 * at.workload.micro_batches
    exchanged = _exchanged(at, parameters)
    found = replica_seconds(links, layout, exchanged, times)
    behind = (of.backward + of.recomputation) * times
    gradients, compressing = _compressed(at, exchanged) or (found.gradients, 0.0)
    waits = exposed(gradients, overlap=overlap, behind=behind).seconds
    # The last bucket is full when the pass ends.
    count = buckets(
        exchanged.dense + exchanged.expert,
        at.gradient_width,
        bucket_bytes(at.workload.framework, at.gradient_width),
    )
    waits = larger(waits, gradients / count) + compressing
    waits += exposed(found.gathered_forward, overlap=overlap, behind=of.forward).seconds
    if at.gathers:
        waits *= (layout.pipeline > 1) * 1.0
    if at.profile.tied_parameters:
        several = (layout.pipeline > 1) * 1.0
        tied = at.profile.tied_parameters / layout.tensor
        waits += several * links.seconds([tied_embedding(tied, at.gradient_width, links.placement)])
    return waits


def _leaves(at: _Context, stage: int, of: MicroBatch) -> Moved:
    """What a step of a stage waits for the host, where a part of its state lies there."""
    return moved(
        at.profile,
        at.workload,
        at.layout,
        stage,
        forward_seconds=of.forward,
        backward_seconds=of.backward + of.recomputation,
        host=at.platform.host,
        rates=at.platform.rates,
    )


def _optimizer(at: _Context, stage: int) -> float:
    """The update of what one device of a stage holds; one that runs in the backward pass takes as long."""
    return optimizer_work(at.profile, at.workload, at.layout, stage, at.platform.machine).seconds


def _further(at: _Context, forwards: Sequence[MicroBatch], trained: float) -> Iterator[FurtherPhase]:
    """Passes of other models over the sequences of a step, in the layout of its own.

    They take as long as those of the model by their parameters; ``trained`` is all that an optimizer step of
    it takes.
    """
    if not at.passes:
        return
    slowest = forwards[0]
    for stage in forwards[1:]:
        slowest = slowest.chosen(stage, (stage.total > slowest.total) * 1.0)
    times = at.workload.micro_batches
    seconds = slowest.total * times + _bubble(at.layout, forwards, slowest.total, times)
    for each in at.passes:
        taken = each.size * each.times * (trained if each.trained else seconds)
        yield FurtherPhase(each.name, taken, Bound.COMPUTE)


def step_seconds(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, compute: Compute, platform: Platform
) -> StepSeconds:
    """Seconds of one step by phase.

    ``compute`` is what the operators take on one device of ``layout``.
    """
    tokens = workload.sequences * workload.sequence_length / layout.context
    width = ELEMENT_BYTES[workload.recipe.activations]
    between = _between(profile, layout, platform.links, tokens, width)
    at = _Context(profile, workload, layout, compute, platform, between, further_passes(profile, workload))
    blocks = _blocks(at)
    last = layout.pipeline - 1
    # Of one stage all three are the same.
    places = (0,) if is_only(layout.pipeline, 1.0) else (0 * layout.pipeline, layout.pipeline // 2, last)
    passes = [_stage(at, blocks, stage) for stage in places]
    stages = [stage.whole for stage in passes]
    slowest = stages[0]
    gradients = _gradients(at, places[0], stages[0])
    optimizer = _optimizer(at, places[0])
    leaves = _leaves(at, places[0], stages[0])
    for stage, place in zip(stages[1:], places[1:], strict=True):
        slowest = slowest.chosen(stage, (stage.total > slowest.total) * 1.0)
        gradients = larger(gradients, _gradients(at, place, stage))
        optimizer = larger(optimizer, _optimizer(at, place))
        leaves = Moved(*map(larger, leaves, _leaves(at, place, stage)))
    rates, times = platform.rates, 1.0 * workload.micro_batches
    bubble = _bubble(layout, stages, slowest.total, times)
    trained = slowest.total * times + bubble + gradients + optimizer + sum(leaves)
    further = tuple(_further(at, [stage.forward for stage in passes], trained))
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
