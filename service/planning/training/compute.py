"""What the operators of a step take on one device: blocks, table, head and loss, and the optimizer."""

from typing import NamedTuple

from service.planning.memory.training import device_state
from service.planning.operators import (
    BlockTimes,
    Machine,
    Widths,
    Work,
    block_times,
    choice_of,
    embedding_operators,
    head_operators,
    optimizer_operators,
    shard_of,
    widths_of,
    work_of,
)
from service.planning.parallelism import Parallelism, Sharding
from service.planning.precision import NumberFormat
from service.planning.profile import Profile
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
) -> Compute:
    """The work of every part of a step but the optimizer's, once for blocks of the same operators."""
    widths = step_widths(workload, layout, compute_format)
    shard = shard_of(workload.micro_batch_size, workload.sequence_length, layout)
    choice = choice_of(profile, workload)
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
    profile: Profile, workload: TrainingWorkload, layout: Parallelism, stage: float, machine: Machine
) -> Work:
    """The optimizer's step on what one device of a stage holds."""
    state = device_state(profile, workload, layout, stage)
    found = optimizer_operators(
        gradient_bytes=state.gradients,
        master_bytes=state.master_weights,
        weight_bytes=state.weights,
        state_bytes=state.optimizer_states,
        framework=workload.framework,
    )
    return work_of(found, machine)
