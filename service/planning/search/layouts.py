"""Layouts of a training run as arrays: every combination of the degrees that a question leaves open.

Enumerated choices (:class:`LayoutChoice`) are common to all layouts of an array; clusters that differ in
their number of devices alone share an array, so that few calls evaluate many layouts.
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
    """Choices that are common to all layouts of an array."""

    sharding: Sharding
    group_size: int | None
    schedule: PipelineSchedule
    sequence_parallel: bool
    overlap_expert_communication: bool
    recomputing: RecomputationChoice
    overlap_tensor_communication: bool | None = None


class SearchCluster(NamedTuple):
    """A cluster of a search: its index in the space, its devices, and the degrees to try."""

    cluster: int
    number: int
    tensor: tuple[int, ...]
    pipeline: tuple[int, ...]
    context: tuple[int, ...]
    expert: tuple[int, ...]


class LayoutOptions(NamedTuple):
    """Options that are tried on every cluster. ``one_f_one_b`` stands for pipelines of one stage too."""

    shardings: tuple[tuple[Sharding, int | None], ...]
    schedules: tuple[PipelineSchedule, ...]
    virtual_stages: tuple[int, ...]
    sequence_parallel: tuple[bool, ...]
    overlap_expert_communication: bool
    """True where experts that are spread over devices receive their tokens behind other work."""
    micro_batch_sizes: tuple[int, ...]
    recomputings: tuple[RecomputationChoice, ...]
    overlap_tensor_communication: bool | None = None
    """Overlap of tensor-parallel collectives as the question states it; a search does not vary it."""

    def list_choices(self) -> Iterator[LayoutChoice]:
        """Yields every combination; impossible ones match no layout."""
        plain = (Sharding.NONE, None)
        for (sharding, size), schedule, sequence, overlap, again in product(
            dict.fromkeys((plain, *self.shardings)),
            dict.fromkeys((PipelineSchedule.ONE_F_ONE_B, *self.schedules)),
            dict.fromkeys((False, *self.sequence_parallel)),
            dict.fromkeys((False, self.overlap_expert_communication)),
            self.recomputings,
        ):
            yield LayoutChoice(
                sharding, size, schedule, sequence, overlap, again, self.overlap_tensor_communication
            )


class LayoutArray(NamedTuple):
    """Degrees and micro-batches of many layouts, one entry each.

    ``place`` is the index of their cluster; ``degrees`` is a number that layouts of equal degrees and cluster
    share.
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
        """Number of layouts."""
        return int(self.place.size)

    def select_rows(self, which: Mask | NDArray[np.intp] | slice) -> "LayoutArray":
        """Returns the layouts of a mask, of indices or of a slice."""
        return LayoutArray(*[column[which] for column in self])

    def to_parallelism(self, choice: LayoutChoice) -> Parallelism:
        """Returns the layouts as planning takes them; a degree that all share is a number."""
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
            overlap_expert_communication=choice.overlap_expert_communication,
            overlap_tensor_communication=choice.overlap_tensor_communication,
        )


def collapse_column(column: Ints) -> int:
    """Returns a column, or the number that all of its entries equal, which is evaluated only once."""
    first = column[:1]
    if column.size and bool((column == first).all()):
        return int(first[0])
    return cast("int", column)


def _build_columns(devices: SearchCluster, micro_batch_sizes: Sequence[int]) -> list[Ints]:
    lists = (devices.tensor, devices.pipeline, devices.context, devices.expert, micro_batch_sizes)
    grids = np.meshgrid(*[np.array(each, dtype=np.int64) for each in lists], indexing="ij")
    return [grid.ravel() for grid in grids]


def build_grid(many: Iterable[SearchCluster], options: LayoutOptions) -> LayoutArray:
    """Builds every combination of degrees and micro-batches of some clusters, whether it divides or not.

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
    """Concatenates several arrays of layouts."""
    return LayoutArray(*[np.concatenate(each) for each in zip(*parts, strict=True)])


def apply_batch_size(layouts: LayoutArray, global_batch_size: int) -> LayoutArray:
    """Returns the layouts with the micro-batches of a step, rounded down, at least 1."""
    held = layouts.micro_batch_size * layouts.data
    return layouts._replace(micro_batches=np.maximum(1, global_batch_size // held))


def match_choice(layouts: LayoutArray, choice: LayoutChoice, options: LayoutOptions) -> Mask:
    """Returns a mask of the layouts that can have a choice, each in one way.

    Without replicas nothing is sharded, a pipeline of one stage has no schedule, without tensor parallelism
    nothing is sequence-parallel, and experts that each device holds receive nothing; where the question names
    other ways alone, these have one too.
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
    if choice.overlap_expert_communication != options.overlap_expert_communication:
        found &= layouts.expert == 1
    elif choice.overlap_expert_communication:
        found &= layouts.expert > 1
    return found


def expand_interleaved(layouts: LayoutArray, choice: LayoutChoice, options: LayoutOptions) -> LayoutArray:
    """Repeats layouts of an interleaved schedule for each number of chunks of a device.

    Others are unchanged.
    """
    if choice.schedule is not PipelineSchedule.INTERLEAVED:
        return layouts
    parts = np.array(options.virtual_stages, dtype=np.int64)
    repeated = LayoutArray(*[np.repeat(column, parts.size) for column in layouts])
    return repeated._replace(
        virtual_stages=np.tile(parts, layouts.number),
        degrees=repeated.degrees * parts.size + np.tile(np.arange(parts.size), layouts.number),
    )


def count_layouts(devices: SearchCluster, options: LayoutOptions) -> int:
    """Returns the number of layouts of a cluster in all choices together, without building them."""
    single = devices._replace(expert=(1,))
    # Overlap is one way of each layout, so that it multiplies nothing.
    alone = options._replace(recomputings=options.recomputings[:1], overlap_expert_communication=False)
    degrees = build_grid((single,), options._replace(micro_batch_sizes=(1,)))
    each = np.zeros(degrees.number, dtype=np.int64)
    for choice in alone.list_choices():
        times = len(options.virtual_stages) if choice.schedule is PipelineSchedule.INTERLEAVED else 1
        each += match_choice(degrees, choice, alone) * times
    beside = len(devices.expert) * len(options.micro_batch_sizes) * len(options.recomputings)
    return int(each.sum()) * beside
