"""Operators of models that do not decode tokens: each layer over the positions of a sample there.

Images, videos, spectrograms and features go through blocks that change their grid; ``positions`` gives the
positions that enter and leave each layer. Tensor and context parallelism divide these layers like those of a
decoder.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from service.planning.models.architecture import Architecture, LayerBlock
from service.planning.models.positions import BlockPositions, LayerPositions, SampleShape, block_positions
from service.planning.models.profile import KernelChoice
from service.planning.models.profile.layer_operators import OperatorTemplate, layer_templates, merge_templates
from service.planning.operators.kinds import OperatorWork
from service.planning.operators.machine import DeviceMachine
from service.planning.operators.passes import NO_WORK, BlockTimes, sum_work
from service.planning.operators.shapes import DeviceShard, PassFormats, build_gemm, build_operators
from service.planning.parallelism import Parallelism
from service.planning.workload import WHOLE_BLOCKS, Recomputation


class SampleStage(NamedTuple):
    """Operators over the same positions; ``instances`` per sample, such as the images in it."""

    positions: LayerPositions
    instances: int
    templates: tuple[OperatorTemplate, ...]


class SampleOperators(NamedTuple):
    """Operators of one sample, derived once for an architecture, a sample and a choice of kernels."""

    blocks: tuple[tuple[SampleStage, ...], ...]
    """Operators of one repetition of each block, in order."""
    repeats: tuple[int, ...]
    heads: tuple[tuple[float, float, float], ...]
    """Rows per sample, columns and depth of each head."""


@lru_cache(maxsize=256)
def build_sample_operators(
    architecture: Architecture, sample: SampleShape, choice: KernelChoice
) -> SampleOperators:
    """Returns the layers of ``architecture`` by the positions they run over, equal ones of a block together.

    Raises :class:`PlanningError` as :func:`block_positions` does.
    """
    found = block_positions(architecture, sample)
    blocks, repeats = [], []
    known: dict[tuple[LayerBlock, BlockPositions], tuple[SampleStage, ...]] = {}
    for block, positions in zip(architecture.list_blocks(), found, strict=True):
        key = (replace(block, count=1), positions)
        if key not in known:
            known[key] = _build_stations(*key, choice)
        blocks.append(known[key])
        repeats.append(block.count)
    tokens = sample.tokens if sample.tokens is not None else found[0].layers[0].entering if found else 1
    heads = tuple(
        (float(tokens if head.per == "token" else 1), float(head.output_size), float(head.input_size))
        for head in architecture.heads
    )
    return SampleOperators(tuple(blocks), tuple(repeats), heads)


def _build_stations(
    block: LayerBlock, positions: BlockPositions, choice: KernelChoice
) -> tuple[SampleStage, ...]:
    places: dict[LayerPositions, list[tuple[OperatorTemplate, float]]] = {}
    for layer, place in positions.list_passes(block):
        of = places.setdefault(place, [])
        of.extend((template, float(layer.count)) for template in layer_templates(layer, choice))
    return tuple(
        SampleStage(place, positions.instances, merge_templates(templates))
        for place, templates in places.items()
    )


def _build_shard(station: SampleStage, samples: float, layout: Parallelism) -> DeviceShard:
    entering, leaving, context = station.positions
    batch = samples * station.instances
    return DeviceShard(
        tokens=batch * entering / layout.context,
        sequence_length=float(entering),
        seen=float(context or entering),
        samples=batch,
        tensor=layout.tensor,
        context=layout.context,
        expert=layout.expert,
        shared=layout.tensor if layout.sequence_parallel else 1.0,
        leaving=leaving / entering,
    )


def block_operators(
    stations: Iterable[SampleStage],
    samples: float,
    layout: Parallelism,
    widths: PassFormats,
    *,
    backward: bool = False,
) -> Iterator[OperatorWork]:
    """Yields the operators of one repetition of a block over ``samples`` samples on one device."""
    for station in stations:
        yield from build_operators(
            station.templates, _build_shard(station, samples, layout), widths, backward=backward
        )


def sample_head_operators(
    work: SampleOperators, samples: float, layout: Parallelism, widths: PassFormats, *, backward: bool = False
) -> Iterator[OperatorWork]:
    """Yields the heads over ``samples`` samples, in the format of the activations."""
    for rows, columns, depth in work.heads:
        m, n, k = samples * rows, columns / layout.tensor, depth
        shapes = [("head_input_gradient", (m, k, n)), ("head_weight_gradient", (k, n, m))]
        for name, shape in shapes if backward else [("head", (m, n, k))]:
            result = 2.0 * widths.gradient if name.endswith("weight_gradient") else widths.element
            yield build_gemm(name, shape, widths.wide, operand=widths.element, result=result)


def block_sample_times(
    stations: Iterable[SampleStage],
    samples: float,
    layout: Parallelism,
    widths: PassFormats,
    *,
    machine: DeviceMachine,
    recomputation: Recomputation = Recomputation.NONE,
) -> BlockTimes:
    """Returns the times of one repetition of a block over ``samples`` samples.

    Whole blocks may be recomputed.
    """
    stations = tuple(stations)
    forward = sum_work(block_operators(stations, samples, layout, widths), machine)
    backward = sum_work(block_operators(stations, samples, layout, widths, backward=True), machine)
    return BlockTimes(forward, backward, forward if recomputation in WHOLE_BLOCKS else NO_WORK)
