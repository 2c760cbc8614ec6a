"""Lower bounds of a layout's memory and time; a bound that rules a layout out is a proof.

Each function states why no layout takes less.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from service.planning.figures import larger
from service.planning.memory.stages import stage_start
from service.planning.memory.training import compute_device_state
from service.planning.models.profile import ModelProfile
from service.planning.operators import (
    DeviceMachine,
    OperatorKind,
    OperatorWork,
    build_operators,
    build_shard,
    resolve_choice,
)
from service.planning.parallelism import Parallelism, PipelineSchedule
from service.planning.precision import NumberFormat
from service.planning.training.compute import select_step_widths
from service.planning.workload import WHOLE_BLOCKS, TrainingWorkload

Floats = NDArray[np.float64]

_MATRICES = frozenset({OperatorKind.GEMM, OperatorKind.GROUPED_GEMM, OperatorKind.CONVOLUTION})


def least_state_bytes(profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism) -> float:
    """Returns the bytes of the training state of the first or last stage, whichever holds more.

    A step's memory is its state plus further memory: the total of a stage is the largest of four moments, of
    which the end of the backward pass counts all of its state and adds nothing below zero
    (``memory.training``), and the fullest stage is not below any one.
    """
    first = compute_device_state(profile, workload, layout, 0).total
    return larger(first, compute_device_state(profile, workload, layout, layout.pipeline - 1).total)


def _compute_sustained_seconds(found: Iterable[OperatorWork], machine: DeviceMachine) -> float:
    """Returns the seconds of the matrices at the rate that the device sustains."""
    seconds = 0.0
    for operator in found:
        if operator.kind in _MATRICES:
            peak = machine.peak_flops_per_second[operator.number_format]
            seconds += operator.flops / (peak * machine.rates.matrix_peak[operator.number_format])
    return seconds


def least_block_seconds(
    profile: ModelProfile, workload: TrainingWorkload, machine: DeviceMachine, compute_format: NumberFormat
) -> float:
    """Returns the seconds of one sequence in the cheapest block on one device, in all passes; 0 if not known.

    Only multiplications count, each at the rate that large ones sustain: ``operators.timing`` takes the
    longer of that and of the time by tiles, waves and memory, and adds all other work.
    """
    if profile.sample is not None or not profile.blocks:
        return 0.0
    alone = Parallelism()
    widths = select_step_widths(workload._replace(micro_batches=1), alone, compute_format)
    shard = build_shard(1.0, workload.sequence_length, alone)
    again = 1.0 + (workload.recomputation in WHOLE_BLOCKS)
    least = np.inf
    for templates in profile.operators.get_block_templates(resolve_choice(profile, workload)):
        forward = _compute_sustained_seconds(build_operators(templates, shard, widths), machine)
        backward = _compute_sustained_seconds(
            build_operators(templates, shard, widths, backward=True), machine
        )
        least = min(least, again * forward + backward)
    return float(least)


_THIRD = 1.0 / 3.0


def least_step_seconds(
    profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism, block_seconds: float
) -> float:
    """Returns a lower bound of a step whose every block takes ``block_seconds`` for a sequence on one device.

    Each of t tensor- and c context-parallel devices has at least 1/(t c) of a block's work: undivided or
    padded work only adds. A step is m micro-batches of its slowest stage and the wait of the others: m s + z
    max(0, w - s) / v, with w the sum of all stages, z a third under zero-bubble H1, v chunks
    (``training.step``). It grows with w, and with s because m >= 1 >= z / v. The first stage has the most
    blocks, so s is not below theirs, and w not below those of first, last and all stages between.
    """
    each = block_seconds * workload.sequences / (layout.tensor * layout.context)
    last, middle = layout.pipeline - 1, layout.pipeline // 2

    def count_blocks(stage: int) -> float:
        return 1.0 * (stage_start(profile, layout, stage + 1) - stage_start(profile, layout, stage))

    slowest = count_blocks(0) * each
    between = larger(0.0, layout.pipeline - 2.0) * count_blocks(middle)
    whole = slowest + ((layout.pipeline > 1) * count_blocks(last) + between) * each
    waiting = larger(0.0, whole - slowest) / layout.virtual_stages
    if layout.pipeline_schedule is PipelineSchedule.ZERO_BUBBLE:
        waiting *= _THIRD
    return workload.micro_batches * slowest + waiting
