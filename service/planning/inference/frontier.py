"""Pareto frontier over many configurations of a served model.

A configuration is a variant (a layout on devices, with a precision of weights and cache) and the number of
concurrent requests on each of its replicas. One dominates another if it generates at least as many output
tokens per second and device and at least as many per second and user, and more of one of them; the
configurations that none dominates are the Pareto set. The figures of a configuration are those of the
function that estimates it alone.

More concurrent requests make no user faster and no device slower. Between two numbers of requests a variant
is therefore at most as fast for a user as at the lower and for a device as at the higher: where one known
configuration reaches that corner within half a percent, none between them is evaluated. So no configuration
is better than the set by more than that in both. Evaluations are made in rounds.
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
"""Maximum of concurrent requests on a replica that is searched."""

_EACH = 32
_GROWTH = 1.05
_PARTS = 4

RESOLUTION = 0.005
"""Relative improvement from which a configuration is searched for."""


class FrontierConstraint(StrEnum):
    """Constraints that rule a configuration out, in the order in which they are checked.

    The device has no rate for the ``precision`` of the weights; ``heads``, ``blocks`` and ``experts`` of the
    model do not divide among the devices; tensor parallelism exceeds the fast ``link``; the ``memory`` of a
    device is too small; the ``engine`` takes fewer concurrent requests; a ``service_level`` is missed.
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
    """Degrees of parallelism to search; None for all that the devices allow.

    For ``expert_tensor``, None stands for whole experts and for experts split like all other tensors.
    """

    tensor: Sequence[int] | None = None
    pipeline: Sequence[int] | None = None
    expert: Sequence[int] | None = None
    expert_tensor: Sequence[int] | None = None


EVERY_DEGREE = SearchDegrees()


def list_batch_sizes(most: int = MOST_REQUESTS) -> tuple[int, ...]:
    """Returns the numbers of concurrent requests to evaluate: each of the first 32, then steps of 5%."""
    sizes = list(range(1, min(_EACH, most) + 1))
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(sizes[-1] * _GROWTH))))
    return tuple(sizes)


def list_layouts(
    profile: ModelProfile, devices: int, degrees: SearchDegrees = EVERY_DEGREE
) -> Iterator[Parallelism]:
    """Yields all layouts of a served model on all of ``devices``, whether its shapes allow them or not.

    The experts of a model are spread over any number of the replicas, whole or split.
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
    """Returns the constraint by which the model's shapes or the links of the cluster rule a layout out.

    Memory is not considered. Tensor parallelism exchanges in every layer and stays on the fast link.
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
    """Output tokens per second of each device and of each user, and whether service levels are met."""

    per_device: float
    per_user: float
    within: bool = True


class FrontierVariant(NamedTuple):
    """One layout and precision; ``sizes`` are numbers of concurrent requests on a replica, ascending.

    ``speeds`` evaluates several of them at once; with more requests, no figure of :class:`FrontierSpeed` but
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
    """``chosen`` by falling tokens per device.

    ``within`` counts sizes that meet the service levels by variant. ``asked`` is the number of configurations
    that were computed.
    """

    chosen: tuple[FrontierChoice, ...]
    within: tuple[int, ...]
    asked: int


class _ParetoSpeeds:
    """Non-dominated known speeds, by rising tokens per device and falling tokens per user."""

    def __init__(self) -> None:
        self._found: list[tuple[float, float]] = []

    def is_dominated(self, per_device: float, per_user: float, short: float = 0.0) -> bool:
        """Returns true if a known speed is at least as good in both, within the share ``short``."""
        place = bisect_left(self._found, (per_device * (1.0 - short), -math.inf))
        return place < len(self._found) and self._found[place][1] >= per_user * (1.0 - short)

    def add(self, per_device: float, per_user: float) -> None:
        """Records a speed."""
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
        """Computes the speeds at ``positions``, and records those that meet the service levels."""
        new = sorted(set(positions) - self.known.keys())
        if not new:
            return
        sizes = self._variant.sizes
        for position, speed in zip(new, self._variant.speeds([sizes[place] for place in new]), strict=True):
            self.known[position] = speed
            if speed.within:
                self._best.add(speed.per_device, speed.per_user)

    def _count_feasible_sizes(self) -> int:
        """Counts the sizes that meet the service levels, and computes the first and the last of them."""
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
        """Evaluates within each segment whose corner is not reached; returns false where there is none."""
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
    """Returns some positions between two, evenly spaced."""
    return sorted({low + (high - low) * part // _PARTS for part in range(1, _PARTS)} - {low, high})


def find_frontier(variants: Sequence[FrontierVariant]) -> Frontier:
    """Returns the non-dominated configurations within the service levels.

    Of configurations that are equal within :data:`RESOLUTION`, any one may be taken.
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
