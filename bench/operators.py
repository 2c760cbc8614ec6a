"""Measures the operators of a layout in process, on one core: one layout, and 50,000 at once.

``python -m bench.operators``. Times are of the processor, so that a busy machine does not count.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.memory import WORKLOAD, deepseek_v3, llama_3_70b, microseconds
from service.evidence.service import load_reference_curves
from service.planning.hardware.calibration import MachineFacts
from service.planning.models.profile import ModelProfile
from service.planning.operators import (
    DeviceMachine,
    PassWork,
    block_times,
    build_shard,
    build_widths,
    embedding_operators,
    head_operators,
    optimizer_operators,
    resolve_choice,
    sum_work,
)
from service.planning.parallelism import Parallelism
from service.planning.precision import NumberFormat
from service.planning.workload import TrainingWorkload

LAYOUTS = 50_000
MACHINE = DeviceMachine(
    {NumberFormat.BF16: 989e12},
    3.35e12,
    MachineFacts(132, 128, 128, ""),
    load_reference_curves().calibration.operators.get_rates("hopper"),
)


def seconds(profile: ModelProfile, workload: TrainingWorkload, layout: Parallelism) -> float:
    """Forward, backward and recomputed work of every block, table, head, loss and update on one device."""
    shard = build_shard(workload.micro_batch_size, workload.sequence_length, layout)
    widths = build_widths(workload.recipe, NumberFormat.BF16)
    choice = resolve_choice(profile, workload)
    total = 0.0
    for templates, block in zip(profile.operators.get_block_templates(choice), profile.blocks, strict=True):
        times = block_times(templates, shard, widths, workload, MACHINE)
        total += block.repeats * (times.forward.seconds + times.backward.seconds + times.recomputed.seconds)
    for backward in (False, True):
        table = embedding_operators(profile, shard, widths, backward=backward)
        head = head_operators(profile, shard, widths, choice, loss=workload.loss, backward=backward)
        outside: PassWork = sum_work([*table, *head], MACHINE)
        total += outside.seconds
    update = optimizer_operators(
        gradient_bytes=1e9,
        master_bytes=1e9,
        weight_bytes=5e8,
        state_bytes=2e9,
        framework=workload.framework,
    )
    return total + sum_work(update, MACHINE).seconds


class MeasuredTimes(NamedTuple):
    """Microseconds of one layout of each model, and of many layouts of the first in one call."""

    llama: float
    deepseek: float
    many: float


def measured() -> MeasuredTimes:
    """Least processor times of several runs."""
    llama, deepseek = llama_3_70b(), deepseek_v3()
    layout = Parallelism(tensor=8, pipeline=4, data=8, sequence_parallel=True)
    random = np.random.default_rng(1)
    # The physics takes arrays in the place of numbers: one element a layout.
    drawn: list[Any] = [
        random.choice(choices, LAYOUTS) for choices in ([1, 2, 4, 8], [1, 2, 4], [1, 8, 64], [1, 2, 4])
    ]
    tensor, context, data, batch = drawn
    many = layout._replace(tensor=tensor, context=context, data=data)
    workload = WORKLOAD._replace(micro_batch_size=batch)
    return MeasuredTimes(
        microseconds(lambda: seconds(llama, WORKLOAD, layout), number=300),
        microseconds(lambda: seconds(deepseek, WORKLOAD, layout._replace(expert=8)), number=150),
        microseconds(lambda: seconds(llama, workload, many), number=1),
    )


def report() -> Iterator[str]:
    """The section of the page, line by line."""
    of = measured()
    yield "## Operators of a layout\n"
    yield (
        "Processor time in one process of all operators of a training step on one device (`python -m\n"
        "bench.operators`): forward, backward, recomputation, loss and update; one layout, and\n"
        f"{LAYOUTS:,} of Llama-3-70B in one call by the same functions.\n"
    )
    yield "| | target | measured | of its target |\n|---|---:|---:|---:|"
    yield f"| Llama-3-70B, one layout | 300 us | {of.llama:.0f} us | {of.llama / 300.0:.2f} |"
    yield f"| DeepSeek-V3, one layout | | {of.deepseek:.0f} us | |"
    yield f"| {LAYOUTS:,} layouts at once | 0.5 s | {of.many / 1e6:.2f} s | {of.many / 5e5:.2f} |"
    yield f"| a layout alone over one of many | | {of.llama / (of.many / LAYOUTS):.0f} | |"


def main() -> None:
    """Print the section."""
    print("\n".join(report()))


if __name__ == "__main__":
    main()
