"""Searches the configurations of a space, piece by piece, and joins what was found.

Pieces are searched apart, so that any process may take any of them: none knows what another has found, and
the whole is the same in whatever order they are done.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from service.kit.http.wanted import check_wanted
from service.plans import serving, training
from service.plans.space import NOTHING, Kept, Outcome, Piece, Space
from service.schemas.workloads import TrainingWorkloadInput, WorkloadInput


def pieces(space: Space) -> tuple[Piece, ...]:
    """The parts that a search is done in, each of seconds at most.

    Raises :class:`service.planning.errors.PlanningError` naming the field of a question that leaves too much
    open, or that has too many candidates.
    """
    if isinstance(space.question.workload, TrainingWorkloadInput):
        return training.pieces(space)
    return serving.pieces(space)


def search(space: Space, piece: Piece) -> Outcome:
    """What becomes of the candidates of one piece."""
    check_wanted()
    find = training.search if isinstance(space.question.workload, TrainingWorkloadInput) else serving.search
    return merged((find(space, piece),), space.question.search.depth)


def workload_of(given: WorkloadInput, kept: Kept) -> WorkloadInput:
    """The workload of a question as a configuration runs it."""
    if isinstance(given, TrainingWorkloadInput):
        return training.workload_of(given, kept)
    return serving.workload_of(given, kept)


def _measures(kept: Kept) -> tuple[float, float, float]:
    return kept.seconds, kept.watts or 0.0, kept.lasting_seconds or 0.0


def _rank(value: object) -> tuple[int, float, str]:
    """Numbers before words, so that both can be told apart and put in order."""
    if isinstance(value, bool | int | float):
        return 0, float(value), ""
    return 1, 0.0, json.dumps(value, sort_keys=True)


def _members(values: Mapping[str, Any]) -> list[tuple[str, tuple[int, float, str]]]:
    return [(name, _rank(values[name])) for name in sorted(values)]


def _settings(kept: Kept) -> tuple[Any, ...]:
    return _members(kept.parallelism), _members(kept.workload)


def _in_order(kept: Iterable[Kept]) -> Iterator[Kept]:
    """By their measures, equals by layout and then by workload."""
    for _, equals in groupby(sorted(kept, key=_measures), key=_measures):
        several = list(equals)
        yield from several if len(several) == 1 else sorted(several, key=_settings)


def best_of(kept: Iterable[Kept], depth: int) -> tuple[Kept, ...]:
    """Those of one cluster that fewer than ``depth`` others are at least as good as in all measures."""
    found: list[Kept] = []
    held: list[tuple[float, float, float]] = []
    for one in _in_order(kept):
        own = _measures(one)
        # Those before it are at least as fast.
        betters = 0
        for other in held:
            betters += other[1] <= own[1] and other[2] <= own[2]
            if betters == depth:
                break
        else:
            found.append(one)
            held.append(own)
    return tuple(found)


def merged(outcomes: Iterable[Outcome], depth: int) -> Outcome:
    """All of them together, with what is kept of each cluster and number of devices weighed at last."""
    whole = NOTHING
    kept: list[Kept] = []
    for outcome in outcomes:
        whole = whole.plus(outcome._replace(kept=()))
        kept.extend(outcome.kept)
    by_cluster: dict[tuple[int, int], list[Kept]] = {}
    for one in kept:
        by_cluster.setdefault((one.cluster, one.accelerator_count or 0), []).append(one)
    best = [each for place in sorted(by_cluster) for each in best_of(by_cluster[place], depth)]
    return whole._replace(kept=tuple(best))
