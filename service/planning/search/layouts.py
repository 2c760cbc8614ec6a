"""The layouts of a training run as arrays: every combination of the degrees that a question leaves open.

Enumerated choices (:class:`LayoutChoice`) are one for all layouts of an array; clusters that differ in their
number of devices alone share one, so that few calls work out many layouts.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.parallelism import Parallelism, PipelineSchedule, Sharding
from service.planning.workload import Recomputation

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class RecomputationChoice(NamedTuple):
    """A strategy, and the k of ``every_k``."""

    strategy: Recomputation
    interval: int = 1


class LayoutChoice(NamedTuple):
    """What is the same for all layouts of an array."""

    sharding: Sharding
    group_size: int | None
    schedule: PipelineSchedule
    sequence_parallel: bool
    recomputing: RecomputationChoice


class SearchCluster(NamedTuple):
    """A cluster of a search: its place among those of the space, its devices, and degrees that are tried."""

    cluster: int
    number: int
    tensor: tuple[int, ...]
    pipeline: tuple[int, ...]
    context: tuple[int, ...]
    expert: tuple[int, ...]


class LayoutOptions(NamedTuple):
    """What is tried on every cluster. ``one_f_one_b`` stands for pipelines of one stage too."""

    shardings: tuple[tuple[Sharding, int | None], ...]
    schedules: tuple[PipelineSchedule, ...]
    virtual_stages: tuple[int, ...]
    sequence_parallel: tuple[bool, ...]
    micro_batch_sizes: tuple[int, ...]
    recomputings: tuple[RecomputationChoice, ...]

    def list_choices(self) -> Iterator[LayoutChoice]:
        """Every combination; those that no layout of the question can have come with none."""
        plain = (Sharding.NONE, None)
        for (sharding, size), schedule, sequence, again in product(
            dict.fromkeys((plain, *self.shardings)),
            dict.fromkeys((PipelineSchedule.ONE_F_ONE_B, *self.schedules)),
            dict.fromkeys((False, *self.sequence_parallel)),
            self.recomputings,
        ):
            yield LayoutChoice(sharding, size, schedule, sequence, again)


class LayoutArray(NamedTuple):
    """Degrees and micro-batches of many layouts, one entry each.

    ``place`` is that of their cluster, ``degrees`` are numbered: the same where they and the cluster are.
    """

    place: Ints
    devices: Ints
    tensor: Ints
    pipeline: Ints
    data: Ints
    context: Ints
    expert: Ints
    virtual_stages: Ints
    micro_batch_size: Ints
    micro_batches: Ints
    degrees: Ints

    def __bool__(self) -> bool:
        return bool(self.place.size)

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.place.size)

    def select_rows(self, which: Mask | NDArray[np.intp] | slice) -> "LayoutArray":
        """Those of a mask, of places or of a slice."""
        return LayoutArray(*[column[which] for column in self])

    def to_parallelism(self, choice: LayoutChoice) -> Parallelism:
        """The layouts as planning takes them; a degree that all share is a number."""
        return Parallelism(
            tensor=collapse_column(self.tensor),
            pipeline=collapse_column(self.pipeline),
            data=collapse_column(self.data),
            context=collapse_column(self.context),
            expert=collapse_column(self.expert),
            sequence_parallel=choice.sequence_parallel,
            sharding=choice.sharding,
            sharding_group_size=choice.group_size,
            pipeline_schedule=choice.schedule,
            virtual_stages=collapse_column(self.virtual_stages),
        )


def collapse_column(column: Ints) -> int:
    """A column, or the number that all of it is: what a number saves is not worked out for each entry."""
    first = column[:1]
    if column.size and bool((column == first).all()):
        return int(first[0])
    return cast("int", column)


def _build_columns(devices: SearchCluster, micro_batch_sizes: Sequence[int]) -> list[Ints]:
    lists = (devices.tensor, devices.pipeline, devices.context, devices.expert, micro_batch_sizes)
    grids = np.meshgrid(*[np.array(each, dtype=np.int64) for each in lists], indexing="ij")
    return [grid.ravel() for grid in grids]


def build_grid(many: Iterable[SearchCluster], options: LayoutOptions) -> LayoutArray:
    """Every combination of degrees and micro-batches of some clusters, whether it divides or not.

    ``data`` and ``micro_batches`` are rounded down, at least 1; ``virtual_stages`` are 1.
    """
    parts: list[LayoutArray] = []
    first = 0
    for devices in many:
        tensor, pipeline, context, expert, size = _build_columns(devices, options.micro_batch_sizes)
        held = tensor * pipeline * context
        data = np.maximum(1, devices.number // held)
        one = np.ones_like(tensor)
        place, count = devices.cluster * one, devices.number * one
        degrees = first + np.arange(one.size) // len(options.micro_batch_sizes)
        first += one.size
        parts.append(
            LayoutArray(place, count, tensor, pipeline, data, context, expert, one, size, one, degrees)
        )
    return concatenate_layouts(parts)


def concatenate_layouts(parts: Iterable[LayoutArray]) -> LayoutArray:
    """Several arrays of layouts, one behind the other."""
    return LayoutArray(*[np.concatenate(each) for each in zip(*parts, strict=True)])


def apply_batch_size(layouts: LayoutArray, global_batch_size: int) -> LayoutArray:
    """The same with the micro-batches of a step, rounded down, at least 1."""
    held = layouts.micro_batch_size * layouts.data
    return layouts._replace(micro_batches=np.maximum(1, global_batch_size // held))


def match_choice(layouts: LayoutArray, choice: LayoutChoice, options: LayoutOptions) -> Mask:
    """Which of a grid can have a choice: each layout in one way.

    Without replicas nothing is sharded, a pipeline of one stage has no schedule, and without tensor
    parallelism nothing is sequence-parallel; where the question names other ways alone, these have one too.
    """
    replicas = layouts.data * layouts.context
    several, split, piped = replicas > 1, layouts.tensor > 1, layouts.pipeline > 1
    found = np.ones(layouts.number, dtype=np.bool_)
    if (choice.sharding, choice.group_size) not in options.shardings:
        found &= ~several
    elif choice.sharding is not Sharding.NONE:
        found &= several
    if choice.schedule not in options.schedules:
        found &= ~piped
    elif choice.schedule is not PipelineSchedule.ONE_F_ONE_B:
        found &= piped
    if choice.sequence_parallel not in options.sequence_parallel:
        found &= ~split
    elif choice.sequence_parallel:
        found &= split
    return found


def expand_interleaved(layouts: LayoutArray, choice: LayoutChoice, options: LayoutOptions) -> LayoutArray:
    """Layouts of an interleaved schedule with each number of parts of a device; others as they are."""
    if choice.schedule is not PipelineSchedule.INTERLEAVED:
        return layouts
    parts = np.array(options.virtual_stages, dtype=np.int64)
    repeated = LayoutArray(*[np.repeat(column, parts.size) for column in layouts])
    return repeated._replace(
        virtual_stages=np.tile(parts, layouts.number),
        degrees=repeated.degrees * parts.size + np.tile(np.arange(parts.size), layouts.number),
    )


def count_layouts(devices: SearchCluster, options: LayoutOptions) -> int:
    """How many layouts a cluster has in all choices together, without making them."""
    single = devices._replace(expert=(1,))
    degrees = build_grid((single,), options._replace(micro_batch_sizes=(1,)))
    each = np.zeros(degrees.number, dtype=np.int64)
    for choice in options._replace(recomputings=options.recomputings[:1]).list_choices():
        times = len(options.virtual_stages) if choice.schedule is PipelineSchedule.INTERLEAVED else 1
        each += match_choice(degrees, choice, options) * times
    beside = len(devices.expert) * len(options.micro_batch_sizes) * len(options.recomputings)
    return int(each.sum()) * beside
