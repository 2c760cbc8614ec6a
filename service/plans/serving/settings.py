"""Members of a workload and of a layout that a configuration sets."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from pydantic import MISSING

from service.planning.parallelism import Parallelism
from service.plans.space import KeptConfiguration, SearchSpace
from service.schemas.plans import ServingSearch
from service.schemas.references import ParallelismInput
from service.schemas.workloads import InferenceWorkloadInput, WeightFormatName


def list_storages(search: ServingSearch) -> Iterator[Mapping[str, Any]]:
    """Yields members of the workload for each combination of formats."""
    weights: list[dict[str, Any]] = []
    if search.weight_formats is not MISSING:
        weights += [{"weight_format": name.value} for name in dict.fromkeys(search.weight_formats)]
    if search.weight_precisions is not MISSING:
        weights += [{"weight_precision": name} for name in dict.fromkeys(search.weight_precisions)]
    caches = search.kv_cache_precisions
    kept = [{}] if caches is MISSING else [{"kv_cache_precision": name} for name in dict.fromkeys(caches)]
    for stored, cache in product(weights or [{}], kept):
        yield {**stored, **cache}


def build_workload(given: InferenceWorkloadInput, kept: KeptConfiguration) -> InferenceWorkloadInput:
    """Returns the workload of a kept configuration."""
    return apply_settings(given, kept.workload)


def apply_settings(given: InferenceWorkloadInput, settings: Mapping[str, Any]) -> InferenceWorkloadInput:
    """Returns the workload with the formats of a configuration."""
    changes: dict[str, Any] = dict(settings)
    if "weight_format" in changes:
        changes |= {"weight_format": WeightFormatName(changes["weight_format"]), "weight_precision": MISSING}
    elif "weight_precision" in changes:
        changes["weight_format"] = MISSING
    return given.model_copy(update=changes)


def to_parallelism_input(layout: Parallelism) -> ParallelismInput:
    """Returns a layout as a member of a question."""
    return ParallelismInput(**get_degrees(layout))


def get_degrees(layout: Parallelism) -> dict[str, Any]:
    """Returns the members of a layout in a question."""
    names = ["tensor", "pipeline", "data", "expert"]
    names += ["expert_tensor"] * (layout.expert_tensor is not None)
    return {name: getattr(layout, name) for name in names}


def get_workload(space: SearchSpace) -> InferenceWorkloadInput:
    """Returns the workload of a plan for a service."""
    workload = space.question.workload
    if not isinstance(workload, InferenceWorkloadInput):
        raise TypeError("the plan is of a training run")
    return workload
