"""Layouts of one replica of a served model, and the fewest replicas that carry a load.

More replicas leave each of them less load. That this never makes a request slower is almost true, and not
proven: iterations of a few more requests may touch no further expert, and a request that is alone in a closed
loop meets no others whose prompts it could join. So the minimum is not found by bisection: numbers are tried
in ascending order from the least that can hold the load. Up to :data:`EACH` beyond it every number is tried,
then one in ten and, below the first of these that carries the load, every number that was left out.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism

EACH = 16
"""Numbers of replicas above the least that are tried one by one."""
_GROWTH = 1.1
_FIRST_TRIED, _MOST_TRIED = 2, 32
"""Numbers that are tried together: at first, and after repeated doubling."""


class ReplicaDegrees(NamedTuple):
    """Degrees of one replica.

    ``expert_tensor`` is None for whole experts and for those split like all else.
    """

    tensor: Sequence[int]
    pipeline: Sequence[int] = (1,)
    expert: Sequence[int] = (1,)
    expert_tensor: Sequence[int] | None = None


def list_replica_layouts(profile: ModelProfile, degrees: ReplicaDegrees) -> Iterator[Parallelism]:
    """Yields all layouts of one replica, whether the model's shapes allow them or not.

    Experts are spread over ``expert`` ranks of ``tensor`` devices, whole or split; a model without experts
    has one rank.
    """
    for tensor in degrees.tensor:
        for pipeline in degrees.pipeline:
            if not profile.expert_count:
                yield Parallelism(tensor=tensor, pipeline=pipeline)
                continue
            for expert in degrees.expert:
                rank = Parallelism(tensor=tensor, pipeline=pipeline, data=expert, expert=expert)
                cuts = (1, tensor) if degrees.expert_tensor is None else degrees.expert_tensor
                for cut in sorted(set(cuts)):
                    if tensor * expert % cut == 0:
                        yield rank._replace(expert_tensor=None if cut == tensor else cut)


def list_replica_counts(least: int, most: int) -> Iterator[int]:
    """Yields the numbers of replicas that are tried in a first pass, ascending; both ends are included."""
    number = least
    while number < most:
        yield number
        number = number + 1 if number < least + EACH else max(number + 1, round(number * _GROWTH))
    if least <= most:
        yield most


def find_fewest_replicas(
    least: int, most: int, carries: Callable[[Sequence[int]], Sequence[bool]]
) -> int | None:
    """Returns the first number of replicas between ``least`` and ``most`` that carries the load, or None.

    ``carries`` answers for several, ascending. If all numbers from some point on carry the load, the result
    is the minimum; if some smaller ones do as well, runs of a tenth or less between two numbers that do not
    are missed.
    """
    found, missed = _find_first_sufficient(list_replica_counts(least, most), carries)
    if found is None:
        return None
    before = least - 1 if missed is None else missed
    between, _ = _find_first_sufficient(iter(range(before + 1, found)), carries)
    return found if between is None else between


def _find_first_sufficient(
    numbers: Iterator[int], carries: Callable[[Sequence[int]], Sequence[bool]]
) -> tuple[int | None, int | None]:
    """Returns the first number that carries the load, and the one tried before it."""
    together, before = _FIRST_TRIED, None
    while tried := list(islice(numbers, together)):
        for number, is_carried in zip(tried, carries(tried), strict=True):
            if is_carried:
                return number, before
            before = number
        together = min(2 * together, _MOST_TRIED)
    return None, before
