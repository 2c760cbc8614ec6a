"""Search of the configurations of a space by pieces, and the merge of their outcomes.

Pieces are independent, so that any process may search any of them in any order with the same result.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from service.kit.http.cancellation import check_cancelled
from service.plans import serving, training
from service.plans.space import NOTHING, KeptConfiguration, SearchOutcome, SearchPiece, SearchSpace
from service.schemas.workloads import TrainingWorkloadInput, WorkloadInput


def split_search(space: SearchSpace) -> tuple[SearchPiece, ...]:
    """Returns the pieces of a search, each of a few seconds at most.

    Raises :class:`service.planning.errors.PlanningError` naming the field of a question that leaves too much
    open, or that has too many candidates.
    """
    if isinstance(space.question.workload, TrainingWorkloadInput):
        return training.split_training(space)
    return serving.split_services(space)


def search_space(space: SearchSpace, piece: SearchPiece) -> SearchOutcome:
    """Returns the outcome of one piece."""
    check_cancelled()
    find = (
        training.search_training
        if isinstance(space.question.workload, TrainingWorkloadInput)
        else serving.search_services
    )
    return merge_outcomes((find(space, piece),), space.question.search.depth)


def build_workload(given: WorkloadInput, kept: KeptConfiguration) -> WorkloadInput:
    """Returns the workload of a question with the settings of a configuration."""
    if isinstance(given, TrainingWorkloadInput):
        return training.build_workload(given, kept)
    return serving.build_workload(given, kept)


def _get_measures(kept: KeptConfiguration) -> tuple[float, float, float]:
    return kept.seconds, kept.watts or 0.0, kept.lasting_seconds or 0.0


def _build_sort_key(value: object) -> tuple[int, float, str]:
    """Returns a key that sorts numbers before strings."""
    if isinstance(value, bool | int | float):
        return 0, float(value), ""
    return 1, 0.0, json.dumps(value, sort_keys=True)


def _sort_members(values: Mapping[str, Any]) -> list[tuple[str, tuple[int, float, str]]]:
    return [(name, _build_sort_key(values[name])) for name in sorted(values)]


def _build_settings_key(kept: KeptConfiguration) -> tuple[Any, ...]:
    return _sort_members(kept.parallelism), _sort_members(kept.workload)


def _sort_kept(kept: Iterable[KeptConfiguration]) -> Iterator[KeptConfiguration]:
    """Yields configurations by their measures, and equal ones by layout and then by workload."""
    for _, equals in groupby(sorted(kept, key=_get_measures), key=_get_measures):
        several = list(equals)
        yield from several if len(several) == 1 else sorted(several, key=_build_settings_key)


def select_best(kept: Iterable[KeptConfiguration], depth: int) -> tuple[KeptConfiguration, ...]:
    """Returns the configurations of a cluster that fewer than ``depth`` others match in all measures."""
    found: list[KeptConfiguration] = []
    held: list[tuple[float, float, float]] = []
    for one in _sort_kept(kept):
        own = _get_measures(one)
        # Configurations before this one are at least as fast.
        betters = 0
        for other in held:
            betters += other[1] <= own[1] and other[2] <= own[2]
            if betters == depth:
                break
        else:
            found.append(one)
            held.append(own)
    return tuple(found)


def merge_outcomes(outcomes: Iterable[SearchOutcome], depth: int) -> SearchOutcome:
    """Returns the sum of all outcomes, with the best ``depth`` kept by cluster and number of devices.

    Those that miss default service levels are reduced apart.
    """
    whole = NOTHING
    kept: list[KeptConfiguration] = []
    for outcome in outcomes:
        whole = whole.add(outcome._replace(kept=()))
        kept.extend(outcome.kept)
    by_cluster: dict[tuple[int, int, bool], list[KeptConfiguration]] = {}
    for one in kept:
        place = one.cluster, one.accelerator_count or 0, not one.keeps_levels
        by_cluster.setdefault(place, []).append(one)
    best = [each for place in sorted(by_cluster) for each in select_best(by_cluster[place], depth)]
    return whole._replace(kept=tuple(best))
