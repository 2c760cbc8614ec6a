"""Replicas of a served model: how one is laid out, and the fewest of them that carry a load.

More replicas leave each of them less to do. That this never makes a request slower is almost true, and not
proven: iterations of a few requests more may touch no further expert, and a request that is alone in a closed
loop meets no others whose prompts it could join. So the fewest are not looked for by bisection: numbers are
tried from the least that can hold the load on. Up to :data:`EACH` beyond it every number is tried, further on
one in ten and then, below the first of these that carries the load, every one that was left out.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism

EACH = 16
"""Numbers of replicas behind the least that are tried one by one."""
_GROWTH = 1.1
_FIRST_TRIED, _MOST_TRIED = 2, 32
"""Numbers that are tried together: at first, and after that has doubled as often as it takes."""


class ReplicaDegrees(NamedTuple):
    """Degrees of one replica; ``expert_tensor`` is None for whole experts and for those cut like all else."""

    tensor: Sequence[int]
    pipeline: Sequence[int] = (1,)
    expert: Sequence[int] = (1,)
    expert_tensor: Sequence[int] | None = None


def list_replica_layouts(profile: ModelProfile, degrees: ReplicaDegrees) -> Iterator[Parallelism]:
    """Every way to lay out one replica, whether the model's shapes allow it or not.

    Experts are spread over ``expert`` ranks of ``tensor`` devices, whole or cut; a model without experts has
    one rank.
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
    """Numbers of replicas that are tried in a first pass, ascending; both ends are among them."""
    number = least
    while number < most:
        yield number
        number = number + 1 if number < least + EACH else max(number + 1, round(number * _GROWTH))
    if least <= most:
        yield most


def find_fewest_replicas(
    least: int, most: int, carries: Callable[[Sequence[int]], Sequence[bool]]
) -> int | None:
    """The first number of replicas between ``least`` and ``most`` that carries the load; None for none.

    ``carries`` says so of several, ascending. Where those that do are the larger ones, it is the fewest of
    all; where some smaller ones do as well, numbers of a tenth or less between two that do not are missed.
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
    """The first that carries the load, and the one tried before it."""
    together, before = _FIRST_TRIED, None
    while tried := list(islice(numbers, together)):
        for number, is_carried in zip(tried, carries(tried), strict=True):
            if is_carried:
                return number, before
            before = number
        together = min(2 * together, _MOST_TRIED)
    return None, before
