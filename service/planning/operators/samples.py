"""Operators of what is no decoder of tokens: each layer over the positions that a sample has there.

Images, videos, spectrograms and features go through blocks that change their grid; ``positions`` says how
many positions enter and leave each layer. Tensor and context parallelism divide these layers as those of a
decoder.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from service.planning.models.architecture import Architecture, Block
from service.planning.models.positions import BlockPositions, LayerPositions, Sample, block_positions
from service.planning.models.profile import Choice
from service.planning.models.profile.layer_operators import Template, gathered, layer_templates
from service.planning.operators.kinds import Operator
from service.planning.operators.machine import Machine
from service.planning.operators.passes import NO_WORK, BlockTimes, work_of
from service.planning.operators.shapes import Shard, Widths, gemm, operators
from service.planning.parallelism import Parallelism
from service.planning.workload import WHOLE_BLOCKS, Recomputation


class Station(NamedTuple):
    """Operators over the same positions: ``instances`` a sample, such as the images in it."""

    positions: LayerPositions
    instances: int
    templates: tuple[Template, ...]


class SampleOperators(NamedTuple):
    """What one sample goes through; worked out once for an architecture, a sample and a choice of kernels."""

    blocks: tuple[tuple[Station, ...], ...]
    """Of one repetition of each block, in order."""
    repeats: tuple[int, ...]
    heads: tuple[tuple[float, float, float], ...]
    """Rows a sample, columns and depth of each head."""


@lru_cache(maxsize=256)
def sample_operators_of(architecture: Architecture, sample: Sample, choice: Choice) -> SampleOperators:
    """The layers of ``architecture`` by the positions they run over, equal ones of a block together.

    Raises :class:`PlanningError` as :func:`block_positions` does.
    """
    found = block_positions(architecture, sample)
    blocks, repeats = [], []
    known: dict[tuple[Block, BlockPositions], tuple[Station, ...]] = {}
    for block, positions in zip(architecture.blocks(), found, strict=True):
        key = (replace(block, count=1), positions)
        if key not in known:
            known[key] = _stations(*key, choice)
        blocks.append(known[key])
        repeats.append(block.count)
    tokens = sample.tokens if sample.tokens is not None else found[0].layers[0].entering if found else 1
    heads = tuple(
        (float(tokens if head.per == "token" else 1), float(head.output_size), float(head.input_size))
        for head in architecture.heads
    )
    return SampleOperators(tuple(blocks), tuple(repeats), heads)


def _stations(block: Block, positions: BlockPositions, choice: Choice) -> tuple[Station, ...]:
    places: dict[LayerPositions, list[tuple[Template, float]]] = {}
    for layer, place in zip(block.layers, positions.layers, strict=True):
        of = places.setdefault(place, [])
        of.extend((template, float(layer.count)) for template in layer_templates(layer, choice))
    return tuple(
        Station(place, positions.instances, gathered(templates)) for place, templates in places.items()
    )


def _shard(station: Station, samples: float, layout: Parallelism) -> Shard:
    entering, leaving, context = station.positions
    batch = samples * station.instances
    return Shard(
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
    stations: Iterable[Station],
    samples: float,
    layout: Parallelism,
    widths: Widths,
    *,
    backward: bool = False,
) -> Iterator[Operator]:
    """The operators of one repetition of a block over ``samples`` samples on one device."""
    for station in stations:
        yield from operators(station.templates, _shard(station, samples, layout), widths, backward=backward)


def sample_head_operators(
    work: SampleOperators, samples: float, layout: Parallelism, widths: Widths, *, backward: bool = False
) -> Iterator[Operator]:
    """The heads over ``samples`` samples, in the format of the activations."""
    for rows, columns, depth in work.heads:
        m, n, k = samples * rows, columns / layout.tensor, depth
        shapes = [("head_input_gradient", (m, k, n)), ("head_weight_gradient", (k, n, m))]
        for name, shape in shapes if backward else [("head", (m, n, k))]:
            result = 2.0 * widths.gradient if name.endswith("weight_gradient") else widths.element
            yield gemm(name, shape, widths.wide, operand=widths.element, result=result)


def block_sample_times(
    stations: Iterable[Station],
    samples: float,
    layout: Parallelism,
    widths: Widths,
    *,
    machine: Machine,
    recomputation: Recomputation = Recomputation.NONE,
) -> BlockTimes:
    """Times of one repetition of a block over ``samples`` samples; whole blocks may be run again."""
    stations = tuple(stations)
    forward = work_of(block_operators(stations, samples, layout, widths), machine)
    backward = work_of(block_operators(stations, samples, layout, widths, backward=True), machine)
    return BlockTimes(forward, backward, forward if recomputation in WHOLE_BLOCKS else NO_WORK)
