"""Many configurations of a served model, and those that no other betters.

A configuration is a variant (a layout on devices, with a precision of weights and cache) and the requests
at a time on each of its replicas. One dominates another where it makes at least as many output tokens per
second and device and at least as many per second and user, and more of one of them; what nothing dominates is
the Pareto set. The figures of a configuration are those of the function that answers it alone.

More requests at a time make no user faster and no device slower. Between two numbers of requests a variant is
therefore at most as fast for a user as at the fewer and for a device as at the more: where one known
configuration reaches that corner, none between them is asked for.
"""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from service.planning.cluster import Cluster
from service.planning.parallelism import Parallelism, divisors
from service.planning.profile import Profile

MOST_REQUESTS = 4096
"""Requests at a time on a replica up to which is searched."""

_EACH = 32
_GROWTH = 1.05


class Constraint(StrEnum):
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


class Degrees(NamedTuple):
    """Degrees of parallelism to search; None for every one that the devices allow."""

    tensor: Sequence[int] | None = None
    pipeline: Sequence[int] | None = None
    expert: Sequence[int] | None = None


EVERY_DEGREE = Degrees()


def batch_sizes(most: int = MOST_REQUESTS) -> tuple[int, ...]:
    """Requests at a time worth looking at: each of the first 32, then steps of 5%."""
    sizes = list(range(1, min(_EACH, most) + 1))
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(sizes[-1] * _GROWTH))))
    return tuple(sizes)


def layouts(profile: Profile, devices: int, degrees: Degrees = EVERY_DEGREE) -> Iterator[Parallelism]:
    """Every way to lay a served model out on all of ``devices``, whether its shapes allow it or not.

    Of a model with experts these are spread over any number of the replicas.
    """
    for tensor in _allowed(devices, degrees.tensor):
        for pipeline in _allowed(devices // tensor, degrees.pipeline):
            data = devices // (tensor * pipeline)
            for expert in _allowed(data, degrees.expert) if profile.expert_count else (1,):
                yield Parallelism(tensor=tensor, pipeline=pipeline, data=data, expert=expert)


def _allowed(number: int, asked: Sequence[int] | None) -> Sequence[int]:
    return [degree for degree in divisors(number) if asked is None or degree in asked]


def ruled_out(layout: Parallelism, profile: Profile, cluster: Cluster) -> Constraint | None:
    """What the model's shapes or the links of the cluster hold against a layout, whatever its memory.

    Tensor parallelism exchanges in every layer and stays on the fast link.
    """
    if any(work.query_heads % layout.tensor for work in profile.attention):
        return Constraint.HEADS
    if layout.pipeline > profile.block_count:
        return Constraint.BLOCKS
    if profile.expert_count and profile.expert_count % layout.expert:
        return Constraint.EXPERTS
    if layout.tensor > cluster.domain:
        return Constraint.LINK
    return None


class Speed(NamedTuple):
    """Output tokens per second of each device and of each user, and whether the service levels are kept."""

    per_device: float
    per_user: float
    within: bool = True


class Variant(NamedTuple):
    """What is asked of one layout and precision: ``sizes`` are requests at a time on a replica, ascending.

    ``speed`` answers for one of them; with more of them no figure of :class:`Speed` but ``per_device`` grows.
    """

    sizes: Sequence[int]
    speed: Callable[[int], Speed]


class Chosen(NamedTuple):
    """A configuration of the Pareto set: position of its variant and of its size there."""

    variant: int
    size: int
    speed: Speed


class Frontier(NamedTuple):
    """``chosen`` by falling tokens per device; ``within`` counts what keeps the service levels by variant.

    ``asked`` is how many configurations were computed to know it.
    """

    chosen: tuple[Chosen, ...]
    within: tuple[int, ...]
    asked: int


class _Best:
    """Speeds that no other known one dominates, by rising tokens per device, falling ones per user."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []

    def reaches(self, per_device: float, per_user: float) -> bool:
        """Whether a known speed is at least as good in both."""
        place = bisect_left(self._found, (per_device, -math.inf))
        return place < len(self._found) and self._found[place][1] >= per_user

    def add(self, per_device: float, per_user: float) -> None:
        """Take note of a speed."""
        if not self.reaches(per_device, per_user):
            kept = [known for known in self._found if known[0] > per_device or known[1] > per_user]
            insort(kept, (per_device, per_user))
            self._found = kept


class _Asking:
    """Speeds of a variant by the position of its size, each computed once."""

    def __init__(self, variant: Variant, best: _Best) -> None:
        self._variant = variant
        self._best = best
        self.known: dict[int, Speed] = {}

    def at(self, position: int) -> Speed:
        """The speed at a size; one that keeps the service levels is taken note of."""
        speed = self.known.get(position)
        if speed is None:
            speed = self.known[position] = self._variant.speed(self._variant.sizes[position])
            if speed.within:
                self._best.add(speed.per_device, speed.per_user)
        return speed

    def within(self) -> int:
        """How many sizes keep the service levels."""
        low, high = 0, len(self._variant.sizes)
        while low < high:
            middle = high - 1 if high == len(self._variant.sizes) else (low + high) // 2
            if self.at(middle).within:
                low = middle + 1
            else:
                high = middle
        return low

    def between(self, first: int, last: int) -> None:
        """Ask for the sizes between two known ones that may belong to the Pareto set."""
        open_ends = [(first, last)]
        while open_ends:
            low, high = open_ends.pop()
            corner = self.at(high).per_device, self.at(low).per_user
            if high - low > 1 and not self._best.reaches(*corner):
                middle = (low + high) // 2
                self.at(middle)
                open_ends += [(low, middle), (middle, high)]


def frontier(variants: Sequence[Variant]) -> Frontier:
    """The configurations within the service levels that none of the others dominates.

    Of equal ones one is taken.
    """
    best = _Best()
    asked = [_Asking(variant, best) for variant in variants]
    within = tuple(asking.within() for asking in asked)
    for asking, count in zip(asked, within, strict=True):
        if count:
            asking.at(0)
            asking.at(count - 1)
    for asking, count in zip(asked, within, strict=True):
        if count:
            asking.between(0, count - 1)
    found = [
        Chosen(place, position, speed)
        for place, asking in enumerate(asked)
        for position, speed in sorted(asking.known.items())
        if speed.within
    ]
    return Frontier(tuple(_undominated(found)), within, sum(len(asking.known) for asking in asked))


def _undominated(found: Sequence[Chosen]) -> Iterator[Chosen]:
    fastest = -1.0
    for chosen in sorted(found, key=lambda one: (-one.speed.per_device, -one.speed.per_user)):
        if chosen.speed.per_user > fastest:
            fastest = chosen.speed.per_user
            yield chosen
