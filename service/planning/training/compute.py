"""What the operators of a step take on one device: blocks, table, head and loss, and the optimizer."""

from collections.abc import Hashable
from typing import NamedTuple

from service.planning.memory.training import device_state
from service.planning.models.architecture import Architecture
from service.planning.models.positions import Sample
from service.planning.models.profile import Choice, Profile
from service.planning.models.profile.sampled import embedding_tables
from service.planning.models.profile.whole import is_loose
from service.planning.operators import (
    NO_WORK,
    BlockTimes,
    Machine,
    Shard,
    Widths,
    Work,
    block_sample_times,
    block_times,
    choice_of,
    embedding_operators,
    head_operators,
    loss_operator,
    optimizer_operators,
    sample_head_operators,
    sample_operators_of,
    shard_of,
    widths_of,
    work_of,
)
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import NumberFormat
from service.planning.workload import BaseWeights, TrainingWorkload

_PACKED_BYTES = 0.5


class Ends(NamedTuple):
    """The work of what stands before or behind the blocks, in both directions."""

    forward: Work
    backward: Work


class Compute(NamedTuple):
    """What the operators take for one micro-batch on one device, whole blocks in the order of the profile."""

    blocks: tuple[BlockTimes, ...]
    table: Ends
    head: Ends


def compute_of(
    profile: Profile,
    workload: TrainingWorkload,
    layout: Parallelism,
    machine: Machine,
    compute_format: NumberFormat,
    *,
    before: dict[Hashable, Compute] | None = None,
) -> Compute:
    """The work of every part of a step but the optimizer's, once for blocks of the same operators.

    ``before`` holds what was worked out on this machine for this profile; it needs figures to be numbers.
    """
    widths = step_widths(workload, layout, compute_format)
    if profile.sampled is not None and profile.sample is not None:
        return _compute_of_sample(
            profile, profile.sampled, profile.sample, workload, layout, machine=machine, widths=widths
        )
    shard = shard_of(workload.sequences, workload.sequence_length, layout)
    choice = choice_of(profile, workload)
    if before is None:
        return _compute_of_tokens(profile, workload, machine, (shard, widths, choice))
    uses = widths.weight_uses if widths.cast or widths.master else 1.0
    key = (shard, widths._replace(weight_uses=uses), choice, workload.recomputation, workload.loss)
    if key not in before:
        before[key] = _compute_of_tokens(profile, workload, machine, (shard, widths, choice))
    return before[key]


def _compute_of_tokens(
    profile: Profile, workload: TrainingWorkload, machine: Machine, of: tuple[Shard, Widths, Choice]
) -> Compute:
    shard, widths, choice = of
    known: dict[int, BlockTimes] = {}
    blocks = []
    for templates in profile.operators.of(choice):
        times = known.get(id(templates))
        if times is None:
            times = known[id(templates)] = block_times(templates, shard, widths, workload, machine)
        blocks.append(times)

    def head(*, backward: bool) -> Work:
        found = head_operators(profile, shard, widths, choice, loss=workload.loss, backward=backward)
        return work_of(found, machine)

    def table(*, backward: bool) -> Work:
        return work_of(embedding_operators(profile, shard, widths, backward=backward), machine)

    return Compute(
        tuple(blocks),
        Ends(table(backward=False), table(backward=True)),
        Ends(head(backward=False), head(backward=True)),
    )


def _compute_of_sample(
    profile: Profile,
    architecture: Architecture,
    sample: Sample,
    workload: TrainingWorkload,
    layout: Parallelism,
    *,
    machine: Machine,
    widths: Widths,
) -> Compute:
    """The same of a model whose blocks run over positions of their own; a micro-batch is of samples.

    What is no unit of depth, such as a stem, stands with the head.
    """
    choice, samples = choice_of(profile, workload), 1.0 * workload.sequences
    work = sample_operators_of(architecture, sample, choice)
    known: dict[int, BlockTimes] = {}
    blocks: list[BlockTimes] = []
    ahead, behind = NO_WORK, NO_WORK
    for layer, stations, repeats in zip(architecture.layers, work.blocks, work.repeats, strict=True):
        if id(stations) not in known:
            known[id(stations)] = block_sample_times(
                stations,
                samples,
                layout,
                widths,
                machine=machine,
                recomputation=workload.recomputation,
            )
        times = known[id(stations)]
        if is_loose(layer):
            ahead, behind = ahead.plus(times.forward, repeats), behind.plus(times.backward, repeats)
        else:
            blocks.append(times)

    def heads(*, backward: bool) -> Work:
        logits = samples * profile.vocabulary_size / layout.tensor
        loss = loss_operator(logits, widths, choice.fusion, loss=workload.loss, backward=backward)
        found = sample_head_operators(work, samples, layout, widths, backward=backward)
        return work_of([*found, loss], machine)

    tokens = (sample.tokens or 0) + (sample.source_tokens or 0)
    shard = shard_of(samples, 1.0 * tokens, layout)

    def table(*, backward: bool) -> Work:
        found = embedding_operators(profile, shard, widths, backward=backward) if tokens else ()
        return work_of(found, machine)

    return Compute(
        tuple(blocks),
        Ends(table(backward=False), table(backward=True)),
        Ends(ahead.plus(heads(backward=False)), behind.plus(heads(backward=True))),
    )


def step_widths(workload: TrainingWorkload, layout: Parallelism, compute_format: NumberFormat) -> Widths:
    """Formats of a pass; a base in four bits is unpacked before it is multiplied.

    Weights are scaled once a step, but where they are gathered anew for each micro-batch. Those that are kept
    sharded are narrowed before they are gathered, others on every use.
    """
    packed = 0.0 if workload.adaptation.base is BaseWeights.PLAIN else _PACKED_BYTES
    sharded = layout.sharding in (Sharding.ZERO_3, Sharding.HYBRID)
    return widths_of(
        workload.recipe,
        compute_format,
        packed=packed,
        casts=workload.recipe.casts and not sharded,
        weight_uses=1.0 if sharded else 1.0 * workload.micro_batches,
    )


def optimizer_work(
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: int, machine: Machine
) -> Work:
    """The optimizer's step on what one device of a stage holds.

    Rows of embedding tables are updated where they were looked up, not here.
    """
    state = device_state(profile, workload, layout, stage)
    dense = 1.0
    if profile.sampled is not None and profile.sample is not None:
        dense -= embedding_tables(profile.sampled).parameters / max(profile.parameter_count, 1)
    found = optimizer_operators(
        gradient_bytes=dense * state.gradients,
        master_bytes=dense * state.master_weights,
        weight_bytes=dense * state.weights,
        state_bytes=dense * state.optimizer_states,
        framework=workload.framework,
    )
    return work_of(found, machine)
