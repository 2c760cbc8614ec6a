"""Operators of what is no decoder of tokens: each layer over the positions that a sample has there.

Images, videos, spectrograms and features go through blocks that change their grid; ``positions`` says how
many positions enter and leave each layer. Tensor and context parallelism divide these layers as those of a
decoder.
"""

from collections.abc import Iterator
from typing import NamedTuple

from service.planning.architecture import Architecture
from service.planning.operators.kinds import Operator
from service.planning.operators.machine import Machine
from service.planning.operators.passes import BlockTimes, work_of
from service.planning.operators.shapes import Shard, Widths, gemm, operators
from service.planning.parallelism import Parallelism
from service.planning.positions import LayerPositions, Sample, block_positions
from service.planning.profile import Choice
from service.planning.profile.layer_operators import Template, gathered, layer_templates
from service.planning.workload import WHOLE_BLOCKS, Recomputation


class Station(NamedTuple):
    """Operators over the same positions: ``instances`` a sample, such as the images in it."""

    positions: LayerPositions
    instances: int
    templates: tuple[Template, ...]


class SampleOperators(NamedTuple):
    """What one sample goes through; worked out once for an architecture, a sample and a choice of kernels."""

    stations: tuple[Station, ...]
    heads: tuple[tuple[float, float, float], ...]
    """Rows a sample, columns and depth of each head."""


def sample_operators_of(architecture: Architecture, sample: Sample, choice: Choice) -> SampleOperators:
    """The layers of ``architecture`` by the positions they run over, equal ones together.

    Raises :class:`PlanningError` as :func:`block_positions` does.
    """
    places: dict[tuple[LayerPositions, int], list[tuple[Template, float]]] = {}
    found = block_positions(architecture, sample)
    for block, positions in zip(architecture.blocks(), found, strict=True):
        for layer, place in zip(block.layers, positions.layers, strict=True):
            of = places.setdefault((place, positions.instances), [])
            count = float(layer.count * block.count)
            of.extend((template, count) for template in layer_templates(layer, choice))
    stations = tuple(Station(*place, gathered(templates)) for place, templates in places.items())
    entered = block_positions(architecture, sample)[0].layers[0].entering if found else 1
    tokens = sample.tokens if sample.tokens is not None else entered
    heads = tuple(
        (float(tokens if head.per == "token" else 1), float(head.output_size), float(head.input_size))
        for head in architecture.heads
    )
    return SampleOperators(stations, heads)


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


def sample_operators(
    work: SampleOperators, samples: float, layout: Parallelism, widths: Widths, *, backward: bool = False
) -> Iterator[Operator]:
    """The operators of one pass over ``samples`` samples on one device, heads included."""
    for station in work.stations:
        yield from operators(station.templates, _shard(station, samples, layout), widths, backward=backward)
    for rows, columns, depth in work.heads:
        m, n, k = samples * rows, columns / layout.tensor, depth
        shapes = [("head_input_gradient", (m, k, n)), ("head_weight_gradient", (k, n, m))]
        for name, shape in shapes if backward else [("head", (m, n, k))]:
            result = 2.0 * widths.gradient if name.endswith("weight_gradient") else widths.element
            yield gemm(name, shape, widths.wide, operand=widths.element, result=result)


def sample_times(
    work: SampleOperators,
    samples: float,
    layout: Parallelism,
    widths: Widths,
    *,
    machine: Machine,
    recomputation: Recomputation = Recomputation.NONE,
) -> BlockTimes:
    """Times of both passes over ``samples`` samples on one device.

    Where whole blocks are run again, all but the heads is.
    """
    forward = list(sample_operators(work, samples, layout, widths))
    backward = sample_operators(work, samples, layout, widths, backward=True)
    again: list[Operator] = []
    if recomputation in WHOLE_BLOCKS:
        again = [operator for operator in forward if operator.name != "head"]
    return BlockTimes(work_of(forward, machine), work_of(backward, machine), work_of(again, machine))
