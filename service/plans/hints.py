"""Launch settings for the first row of a plan, for programs that run it."""

from collections.abc import Iterator, Mapping
from typing import Final

from service.formats.launch import (
    TABLE,
    LaunchSettingValues,
    SettingValue,
    build_sections,
    render_arguments,
    write_settings,
)
from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.notes import AnswerNotes
from service.resolve import resolve_served
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.model import ResolvedModel
from service.resolve.training import resolve_precision
from service.schemas.base import EstimateGap, StrictModel
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.plan_answers import LaunchSettings, PlanRow
from service.schemas.workloads import TrainingWorkloadInput

SETTINGS: Final = frozenset(
    {
        "sequence_length",
        "micro_batch_size",
        "global_batch_size",
        "gradient_accumulation_steps",
        "precision",
        "gradient_precision",
        "optimizer_state_precision",
        "optimizer",
        "optimizer_in_backward",
        "attention",
        "fusion",
        "loss",
        "recomputation",
        "objective",
        "offload",
        "total_tokens",
        "total_steps",
        "total_samples",
        "framework",
        "weight_precision",
        "weight_format",
        "kv_cache_precision",
        "state_precision",
        "prefix_cache_hit_rate",
        "engine",
        "scheduler",
        "memory_fraction",
        "adapters",
    }
)
"""Members of a workload that a program may have settings for."""

DESCRIBED: Final = frozenset(
    {
        "kind",
        "sample",
        "teacher_parameter_count",
        "reward_parameter_count",
        "critic_parameter_count",
        "optimizer_rank",
        "data_pipeline",
        "checkpointing",
        "reliability",
        "learning_rate",
        "input_tokens",
        "output_tokens",
        "concurrency",
        "request_rate_per_second",
        "arrivals",
        "service_levels",
        "horizon",
    }
)
"""Members that describe data, load and surroundings, or follow from other members.

A member that is in neither set changes the run and has a setting in no program. It is named as missing if its
value is not the default.
"""

_SAID_OF_PROGRAMS: Final = frozenset({"version", "warmed_up"})


def build_launch_hints(row: PlanRow, model: ResolvedModel, catalog: CatalogView) -> list[LaunchSettings]:
    """Returns the settings of each program for the first row, and the members that it has no setting for."""
    question = row["requests"]["throughput"]
    settings, kind = build_launch_settings(question, model, catalog), question.workload.kind
    hints = []
    for name, tool in TABLE.items():
        if tool.kind != kind:
            continue
        said = write_settings(name, settings)
        hint: LaunchSettings = {"tool": name, "missing": [_to_gap(error) for error in said.missing]}
        if tool.file_format:
            hint["configuration"] = build_sections(said.keys)
        else:
            hint["arguments"] = render_arguments(said.keys)
        hints.append(hint)
    return hints


def _to_gap(error: PlanningError) -> EstimateGap:
    pointer = f"/rows/0/requests/throughput{error.pointer}"
    return {"pointer": pointer, "code": error.code, "detail": error.detail}


def build_launch_settings(
    question: ThroughputEstimateRequest, model: ResolvedModel, catalog: CatalogView
) -> LaunchSettingValues:
    """Returns the settings of an estimate's question by JSON Pointer, with inputs of programs' rules."""
    cluster = resolve_cluster(question.cluster, catalog, AnswerNotes())
    asked = question.model_dump(mode="json")
    return {
        "/cluster/accelerator_count": cluster.accelerator_count,
        "/cluster/accelerators_per_node": cluster.accelerators_per_node,
        "/model/experts": model.profile.expert_count > 0,
        "/model/blocks": model.profile.block_count,
        **_resolve_settings(question, cluster, model, catalog),
        **dict(_flatten_settings("/parallelism", asked.get("parallelism", {}))),
        **dict(_list_workload_settings(question.workload)),
    }


def _resolve_settings(
    question: ThroughputEstimateRequest, cluster: Cluster, model: ResolvedModel, catalog: CatalogView
) -> LaunchSettingValues:
    """Returns resolved values of members that the question leaves open."""
    given = question.workload
    if isinstance(given, TrainingWorkloadInput):
        return {"/workload/precision": resolve_precision(given, cluster).value}
    served = resolve_served(question, given, cluster, model, catalog=catalog, notes=AnswerNotes()).workload
    cache: LaunchSettingValues = {"/workload/kv_cache_precision": served.cache_format.value}
    if served.rules.name is None:
        return cache
    most: LaunchSettingValues = (
        {"/workload/engine/max_num_seqs": served.most_requests} if served.most_requests else {}
    )
    return {
        **cache,
        "/workload/engine/name": served.rules.name.value,
        "/workload/memory_fraction": served.memory_fraction,
        "/workload/engine/max_batched_tokens": served.batched_tokens,
        "/workload/engine/block_tokens": served.block_tokens,
        **most,
    }


def _list_workload_settings(workload: StrictModel) -> Iterator[tuple[str, SettingValue]]:
    changed = workload.model_dump(mode="json", exclude_defaults=True)
    for name, value in workload.model_dump(mode="json").items():
        pointer = f"/workload/{name}"
        if name in SETTINGS:
            yield from _flatten_settings(pointer, value)
        elif name in changed and name not in DESCRIBED:
            yield pointer, True


def _flatten_settings(pointer: str, value: object) -> Iterator[tuple[str, SettingValue]]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            if name not in _SAID_OF_PROGRAMS:
                yield from _flatten_settings(f"{pointer}/{name}", member)
    elif isinstance(value, bool | int | float | str):
        yield pointer, value
