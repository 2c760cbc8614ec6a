"""Operators of a step on one device: blocks, table, head and loss, and the optimizer."""

from collections.abc import Hashable
from typing import NamedTuple

from service.planning.memory.training import compute_device_state
from service.planning.models.architecture import Architecture
from service.planning.models.positions import SampleShape
from service.planning.models.profile import KernelChoice, ModelProfile
from service.planning.models.profile.parts import is_loose
from service.planning.operators import (
    NO_WORK,
    BlockTimes,
    DeviceMachine,
    DeviceShard,
    PassFormats,
    PassWork,
    block_sample_times,
    block_times,
    build_sample_operators,
    build_shard,
    build_widths,
    embedding_operators,
    head_operators,
    loss_operator,
    optimizer_operators,
    resolve_choice,
    sample_head_operators,
    sum_work,
)
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import NumberFormat
from service.planning.workload import FrozenWeightFormat, TrainingWorkload

_PACKED_BYTES = 0.5
_UNPACKING_KERNELS = 5.0
"""Launches that unpack a matrix of four bits, as ``MatMul4Bit`` of bitsandbytes does.

They are its scales, their offset, the weights, a cast, and the call itself: an autograd function in Python
that calls its library by ctypes.
"""


class OuterWork(NamedTuple):
    """Work of the layers before or after the blocks, in both directions."""

    forward: PassWork
    backward: PassWork


class MicroBatchCompute(NamedTuple):
    """Work of the operators for one micro-batch on one device, whole blocks in the order of the profile."""

    blocks: tuple[BlockTimes, ...]
    table: OuterWork
    head: OuterWork


def compute_step_work(
    profile: ModelProfile,
    workload: TrainingWorkload,
    layout: Parallelism,
    machine: DeviceMachine,
    compute_format: NumberFormat,
    *,
    before: dict[Hashable, MicroBatchCompute] | None = None,
) -> MicroBatchCompute:
    """Returns the work of every part of a step but the optimizer's, once for blocks of the same operators.

    ``before`` holds earlier results on this machine for this profile; it needs figures to be numbers.
    """
    widths = select_step_widths(workload, layout, compute_format)
    if profile.sampled is not None and profile.sample is not None:
        return _compute_sample_work(
            profile, profile.sampled, profile.sample, workload, layout, machine=machine, widths=widths
        )
    shard = build_shard(workload.sequences, workload.sequence_length, layout)
    choice = resolve_choice(profile, workload)
    if before is None:
        return _compute_token_work(profile, workload, machine, (shard, widths, choice))
    uses = widths.weight_uses if widths.cast or widths.master else 1.0
    key = (shard, widths._replace(weight_uses=uses), choice, workload.recomputation, workload.loss)
    if key not in before:
        before[key] = _compute_token_work(profile, workload, machine, (shard, widths, choice))
    return before[key]


def _compute_token_work(
    profile: ModelProfile,
    workload: TrainingWorkload,
    machine: DeviceMachine,
    of: tuple[DeviceShard, PassFormats, KernelChoice],
) -> MicroBatchCompute:
    shard, widths, choice = of
    known: dict[int, BlockTimes] = {}
    blocks = []
    for templates in profile.operators.get_block_templates(choice):
        times = known.get(id(templates))
        if times is None:
            times = known[id(templates)] = block_times(templates, shard, widths, workload, machine)
        blocks.append(times)

    def compute_head_work(*, backward: bool) -> PassWork:
        found = head_operators(profile, shard, widths, choice, loss=workload.loss, backward=backward)
        return sum_work(found, machine)

    def compute_table_work(*, backward: bool) -> PassWork:
        return sum_work(embedding_operators(profile, shard, widths, backward=backward), machine)

    return MicroBatchCompute(
        tuple(blocks),
        OuterWork(compute_table_work(backward=False), compute_table_work(backward=True)),
        OuterWork(compute_head_work(backward=False), compute_head_work(backward=True)),
    )


def _compute_sample_work(
    profile: ModelProfile,
    architecture: Architecture,
    sample: SampleShape,
    workload: TrainingWorkload,
    layout: Parallelism,
    *,
    machine: DeviceMachine,
    widths: PassFormats,
) -> MicroBatchCompute:
    """Computes the work of a model whose blocks run over different positions; a micro-batch is of samples.

    Layers that are no unit of depth, such as a stem, count with the head.
    """
    choice, samples = resolve_choice(profile, workload), 1.0 * workload.sequences
    work = build_sample_operators(architecture, sample, choice)
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
            ahead, behind = (
                ahead.add_scaled(times.forward, repeats),
                behind.add_scaled(times.backward, repeats),
            )
        else:
            blocks.append(times)

    def compute_heads_work(*, backward: bool) -> PassWork:
        logits = samples * profile.vocabulary_size / layout.tensor
        loss = loss_operator(logits, widths, choice.fusion, loss=workload.loss, backward=backward)
        found = sample_head_operators(work, samples, layout, widths, backward=backward)
        return sum_work([*found, loss], machine)

    tokens = (sample.tokens or 0) + (sample.source_tokens or 0)
    shard = build_shard(samples, 1.0 * tokens, layout)

    def compute_table_work(*, backward: bool) -> PassWork:
        found = embedding_operators(profile, shard, widths, backward=backward) if tokens else ()
        return sum_work(found, machine)

    return MicroBatchCompute(
        tuple(blocks),
        OuterWork(compute_table_work(backward=False), compute_table_work(backward=True)),
        OuterWork(
            ahead.add_scaled(compute_heads_work(backward=False)),
            behind.add_scaled(compute_heads_work(backward=True)),
        ),
    )


def select_step_widths(
    workload: TrainingWorkload, layout: Parallelism, compute_format: NumberFormat
) -> PassFormats:
    """Returns the formats of a pass; a base in four bits is unpacked before it is multiplied.

    Weights are scaled once a step, unless they are gathered anew for each micro-batch. Sharded ones are
    narrowed before they are gathered, others on every use.
    """
    packed = 0.0 if workload.adaptation.base is FrozenWeightFormat.PLAIN else _PACKED_BYTES
    sharded = layout.sharding in (Sharding.ZERO_3, Sharding.HYBRID)
    return build_widths(
        workload.recipe,
        compute_format,
        packed=packed,
        unpacking_kernels=_UNPACKING_KERNELS,
        casts=workload.recipe.casts and not sharded,
        weight_uses=1.0 if sharded else 1.0 * workload.micro_batches,
    )


def compute_optimizer_work(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, stage: int, machine: DeviceMachine
) -> PassWork:
    """Returns the optimizer's step on the state of one device of a stage.

    Rows of embedding tables are updated where they were looked up, not here.
    """
    state = compute_device_state(profile, workload, layout, stage, with_tables=False)
    found = optimizer_operators(
        gradient_bytes=state.gradients,
        master_bytes=state.master_weights,
        weight_bytes=state.weights,
        state_bytes=state.optimizer_states,
        framework=workload.framework,
    )
    return sum_work(found, machine)
