"""Many configurations of a served model, and those that no other betters.

A configuration is a variant (a layout on devices, with a precision of weights and cache) and the requests
at a time on each of its replicas. One dominates another where it makes at least as many output tokens per
second and device and at least as many per second and user, and more of one of them; what nothing dominates is
the Pareto set. The figures of a configuration are those of the function that answers it alone.

More requests at a time make no user faster and no device slower. Between two numbers of requests a variant is
therefore at most as fast for a user as at the fewer and for a device as at the more: where one known
configuration reaches that corner but for half a percent, none between them is asked for. So no configuration
is more than that better than the set in both. What is asked for is asked in rounds.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from service.planning.hardware.cluster import Cluster
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism, list_divisors

MOST_REQUESTS = 4096
"""Requests at a time on a replica up to which is searched."""

_EACH = 32
_GROWTH = 1.05
_PARTS = 4

RESOLUTION = 0.005
"""Share by which a configuration has to be better for it to be looked for."""


class FrontierConstraint(StrEnum):
    """What rules a configuration out, in the order in which it is looked at.

    No rate of the device for the ``precision`` of the weights; ``heads``, ``blocks`` and ``experts`` of the
    model that do not divide among the devices; tensor parallelism beyond the fast ``link``; ``memory`` of a
    device; the most requests that the ``engine`` takes at a time; a ``service_level``.
    """

    PRECISION = "precision"
    HEADS = "heads"
    BLOCKS = "blocks"
    EXPERTS = "experts"
    LINK = "link"
    MEMORY = "memory"
    ENGINE = "engine"
    SERVICE_LEVEL = "service_level"


class SearchDegrees(NamedTuple):
    """Degrees of parallelism to search; None for every one that the devices allow.

    Of ``expert_tensor`` for whole experts and for those cut like all else.
    """

    tensor: Sequence[int] | None = None
    pipeline: Sequence[int] | None = None
    expert: Sequence[int] | None = None
    expert_tensor: Sequence[int] | None = None


EVERY_DEGREE = SearchDegrees()


def list_batch_sizes(most: int = MOST_REQUESTS) -> tuple[int, ...]:
    """Requests at a time worth looking at: each of the first 32, then steps of 5%."""
    sizes = list(range(1, min(_EACH, most) + 1))
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(sizes[-1] * _GROWTH))))
    return tuple(sizes)


def list_layouts(
    profile: ModelProfile, devices: int, degrees: SearchDegrees = EVERY_DEGREE
) -> Iterator[Parallelism]:
    """Every way to lay a served model out on all of ``devices``, whether its shapes allow it or not.

    Of a model with experts these are spread over any number of the replicas, whole or cut.
    """
    for tensor in _list_allowed_degrees(devices, degrees.tensor):
        for pipeline in _list_allowed_degrees(devices // tensor, degrees.pipeline):
            data = devices // (tensor * pipeline)
            plain = Parallelism(tensor=tensor, pipeline=pipeline, data=data)
            if not profile.expert_count:
                yield plain
                continue
            for expert in _list_allowed_degrees(data, degrees.expert):
                cuts = (1, tensor) if degrees.expert_tensor is None else degrees.expert_tensor
                for cut in sorted(set(_list_allowed_degrees(tensor * expert, cuts))):
                    yield plain._replace(expert=expert, expert_tensor=None if cut == tensor else cut)


def _list_allowed_degrees(number: int, asked: Sequence[int] | None) -> Sequence[int]:
    return [degree for degree in list_divisors(number) if asked is None or degree in asked]


def find_layout_constraint(
    layout: Parallelism, profile: ModelProfile, cluster: Cluster
) -> FrontierConstraint | None:
    """What the model's shapes or the links of the cluster hold against a layout, whatever its memory.

    Tensor parallelism exchanges in every layer and stays on the fast link.
    """
    if any(work.query_heads % layout.tensor for work in profile.attention):
        return FrontierConstraint.HEADS
    if layout.pipeline > profile.block_count:
        return FrontierConstraint.BLOCKS
    holders = layout.tensor * layout.expert // (layout.expert_tensor or layout.tensor)
    if profile.expert_count and profile.expert_count % holders:
        return FrontierConstraint.EXPERTS
    if layout.tensor > cluster.domain:
        return FrontierConstraint.LINK
    return None


class FrontierSpeed(NamedTuple):
    """Output tokens per second of each device and of each user, and whether the service levels are kept."""

    per_device: float
    per_user: float
    within: bool = True


class FrontierVariant(NamedTuple):
    """What is asked of one layout and precision: ``sizes`` are requests at a time on a replica, ascending.

    ``speeds`` answers for some of them at once; with more of them no figure of :class:`FrontierSpeed` but
    ``per_device`` grows.
    """

    sizes: Sequence[int]
    speeds: Callable[[Sequence[int]], Sequence[FrontierSpeed]]


class FrontierChoice(NamedTuple):
    """A configuration of the Pareto set: position of its variant and of its size there."""

    variant: int
    size: int
    speed: FrontierSpeed


class Frontier(NamedTuple):
    """``chosen`` by falling tokens per device; ``within`` counts what keeps the service levels by variant.

    ``asked`` is how many configurations were computed to know it.
    """

    chosen: tuple[FrontierChoice, ...]
    within: tuple[int, ...]
    asked: int


class _ParetoSpeeds:
    """Speeds that no other known one dominates, by rising tokens per device, falling ones per user."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []

    def is_dominated(self, per_device: float, per_user: float, short: float = 0.0) -> bool:
        """Whether a known speed is at least as good in both, but for this share of it."""
        place = bisect_left(self._found, (per_device * (1.0 - short), -math.inf))
        return place < len(self._found) and self._found[place][1] >= per_user * (1.0 - short)

    def add(self, per_device: float, per_user: float) -> None:
        """Take note of a speed."""
        if not self.is_dominated(per_device, per_user):
            kept = [known for known in self._found if known[0] > per_device or known[1] > per_user]
            insort(kept, (per_device, per_user))
            self._found = kept


class _VariantSpeeds:
    """Speeds of a variant by the position of its size, each computed once."""

    def __init__(self, variant: FrontierVariant, best: _ParetoSpeeds) -> None:
        self._variant = variant
        self._best = best
        self._segments: list[tuple[int, int]] = []
        self.known: dict[int, FrontierSpeed] = {}
        self.within = self._count_feasible_sizes()

    def _measure_sizes(self, positions: Iterable[int]) -> None:
        """Learn the speeds there; those that keep the service levels are taken note of."""
        new = sorted(set(positions) - self.known.keys())
        if not new:
            return
        sizes = self._variant.sizes
        for position, speed in zip(new, self._variant.speeds([sizes[place] for place in new]), strict=True):
            self.known[position] = speed
            if speed.within:
                self._best.add(speed.per_device, speed.per_user)

    def _count_feasible_sizes(self) -> int:
        """How many sizes keep the service levels; the first and the last of them are known then."""
        count = len(self._variant.sizes)
        self._measure_sizes({0, count - 1})
        low, high = -1, count
        while True:
            low = max((place for place, speed in self.known.items() if speed.within), default=-1)
            high = min((place for place, speed in self.known.items() if not speed.within), default=count)
            if high - low <= 1:
                break
            self._measure_sizes(_split_positions(low, high))
        self._segments = list(pairwise(sorted(place for place, speed in self.known.items() if speed.within)))
        return low + 1

    def refine(self) -> bool:
        """Ask within each segment whose corner is not reached; False where there is none."""
        known = self.known
        self._segments = [
            (low, high)
            for low, high in self._segments
            if high - low > 1
            and not self._best.is_dominated(known[high].per_device, known[low].per_user, RESOLUTION)
        ]
        within = [[low, *_split_positions(low, high), high] for low, high in self._segments]
        self._measure_sizes(place for places in within for place in places)
        self._segments = [segment for places in within for segment in pairwise(places)]
        return bool(within)


def _split_positions(low: int, high: int) -> list[int]:
    """Some positions between two, evenly."""
    return sorted({low + (high - low) * part // _PARTS for part in range(1, _PARTS)} - {low, high})


def find_frontier(variants: Sequence[FrontierVariant]) -> Frontier:
    """The configurations within the service levels that none of the others dominates.

    Of those that are equal but for :data:`RESOLUTION` one may be taken.
    """
    best = _ParetoSpeeds()
    asked = [_VariantSpeeds(variant, best) for variant in variants]
    open_ended = list(asked)
    while open_ended:
        open_ended = [asking for asking in open_ended if asking.refine()]
    found = [
        FrontierChoice(place, position, speed)
        for place, asking in enumerate(asked)
        for position, speed in sorted(asking.known.items())
        if speed.within
    ]
    within = tuple(asking.within for asking in asked)
    return Frontier(tuple(_select_undominated(found)), within, sum(len(asking.known) for asking in asked))


def _select_undominated(found: Sequence[FrontierChoice]) -> Iterator[FrontierChoice]:
    fastest = -1.0
    for chosen in sorted(found, key=lambda one: (-one.speed.per_device, -one.speed.per_user)):
        if chosen.speed.per_user > fastest:
            fastest = chosen.speed.per_user
            yield chosen
