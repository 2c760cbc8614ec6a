"""Conversion of rows into questions of the API. New shapes of questions are added here.

An open fact that affects the answer gives several questions, the likeliest first; a row without a required
fact is skipped.
"""

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accuracy import facts, recipes
from accuracy.asking.layouts import ServingArrangement, arrangements
from accuracy.asking.serving import serving_workloads
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.asking.training import (
    documented,
    sequences_of_step,
    training_layout,
    training_workloads,
)
from accuracy.metrics import METRICS, MeasuredMetric
from accuracy.rows import MeasuredRow, stated_count
from accuracy.shapes import model_references
from service.evidence.measured import MeasuredOperation
from service.planning.hardware.cluster import memory_capacity
from service.planning.quantity import Quantity
from service.resolve.catalog import CatalogView, KnownAccelerator

Question = Mapping[str, Any]
MOST_QUESTIONS = 12
"""Most questions of one row: combinations of its open facts are limited to the likeliest."""


def questions(
    row: MeasuredRow, catalog: CatalogView, run: Mapping[str, MeasuredRow] | None = None
) -> list[Question]:
    """Returns the questions of a row of ``run``, the likeliest first. Raises :class:`SkippedRowError`."""
    metric = METRICS.get(row.metric)
    if metric is None:
        raise SkippedRowError(SkipReason.METRIC_NOT_ANSWERED)
    models = model_references(row, catalog.models)
    if not models:
        raise SkippedRowError(SkipReason.MODEL_SHAPE_UNKNOWN, row.model_id)
    asked: list[Question] = []
    for reading, arrangement in _arranged(row, metric):
        clusters = _clusters(reading, metric, arrangement.devices, catalog)
        workloads = _workloads(reading, arrangement, run or {}, catalog)
        for workload, model, cluster in itertools.product(workloads, models, clusters):
            question: dict[str, Any] = {"model": model, "workload": workload}
            if cluster:
                question["cluster"] = cluster
            if arrangement.parallelism:
                question["parallelism"] = arrangement.parallelism
            asked.append(question)
    unlike = {json.dumps(question, sort_keys=True): question for question in asked}
    return list(unlike.values())[:MOST_QUESTIONS]


def _arranged(row: MeasuredRow, metric: MeasuredMetric) -> Iterator[tuple[MeasuredRow, ServingArrangement]]:
    """Yields the layouts of a row under each of its recipes."""
    for reading in recipes.list_readings(row):
        for arrangement in _arrangements(reading, metric):
            yield reading, arrangement


def _arrangements(row: MeasuredRow, metric: MeasuredMetric) -> list[ServingArrangement]:
    if metric.whole:
        return [ServingArrangement(1)]
    if row.kind == "inference" and metric.operation is MeasuredOperation.THROUGHPUT:
        return arrangements(row)
    if _is_laid_out_by_service(row, metric):
        return [ServingArrangement(stated_count(row.text["n_gpus"]) or 1)]
    layout = _layout(row, metric)
    count = math.prod(layout.get(name, 1) for name in ("tensor", "pipeline", "context", "data"))
    return [ServingArrangement(count, layout)]


def _is_laid_out_by_service(row: MeasuredRow, metric: MeasuredMetric) -> bool:
    """Returns true if a training row states batch and devices, but no layout."""
    devices = stated_count(row.text["n_gpus"]) or 0
    known = row.layout or documented(row).layout
    if known or row.kind != "training" or metric.operation is not MeasuredOperation.THROUGHPUT:
        return False
    return devices > 1 and sequences_of_step(row) is not None


def _find_accelerator(row: MeasuredRow, catalog: CatalogView) -> KnownAccelerator | None:
    """Returns the accelerator of a row; None for a label, which is no name of the catalog."""
    if row.accelerator_id.startswith("?"):
        return None
    return catalog.accelerators.get(row.accelerator_id)


def _workloads(
    row: MeasuredRow, arrangement: ServingArrangement, run: Mapping[str, MeasuredRow], catalog: CatalogView
) -> list[dict[str, Any]]:
    if row.kind == "training":
        return list(training_workloads(row, arrangement.parallelism))
    part = _find_accelerator(row, catalog)
    generation = part.accelerator.generation if part else None
    workloads = serving_workloads(row, run, generation)
    if not arrangement.disaggregated:
        return list(workloads)
    return [{**workload, "disaggregated": arrangement.disaggregated} for workload in workloads]


def _layout(row: MeasuredRow, metric: MeasuredMetric) -> dict[str, Any]:
    stated = row.layout or documented(row).layout
    devices = stated_count(row.text["n_gpus"]) or 0
    if not stated and (devices > 1 or (not devices and "layout" in metric.needs)):
        raise SkippedRowError(SkipReason.LAYOUT_UNKNOWN)
    held = 1
    layout: dict[str, Any] = {}
    for name in ("tensor", "pipeline", "context"):
        degree = max(1, int(stated.get(name, 1)))
        held *= degree
        if degree > 1:
            layout[name] = degree
    data = int(stated.get("data") or 0) or int(stated.get("attention_data") or 0)
    if not data:
        data = max(1, devices // held) if row.kind == "training" else 1
    layout["data"] = data
    # Experts on the devices of a tensor-parallel group are already divided by it.
    expert = math.gcd(int(stated.get("expert") or stated.get("moe_expert") or 1), data)
    if expert > 1:
        layout["expert"] = expert
    if row.kind == "training":
        layout |= training_layout(row)
    return layout


def _capacities(row: MeasuredRow, catalog: CatalogView) -> list[int]:
    """Returns the bytes of a device outside the catalog: as printed in the log, else by its label."""
    printed = facts.device_bytes(row)
    if printed:
        return [printed]
    label = facts.label_gigabytes(row)
    capacity: Quantity | None = memory_capacity(
        label_gb=label,
        label_reading="unknown",
        reported_bytes=None,
        reported_share=catalog.curves.reported_memory,
    )
    if capacity is None:
        return []
    return [round(end) for end in (capacity.value, capacity.low, capacity.high)]


def _variants(row: MeasuredRow, catalog: CatalogView) -> list[Mapping[str, Any]]:
    """Returns the devices of a row outside the catalog: a part with other figures, or several parts."""
    parts = facts.EITHER.get(row.accelerator_id, ())
    if parts:
        return [{"accelerator": {"source": "catalog", "id": part}} for part in parts]
    variant = facts.VARIANTS.get(row.accelerator_id)
    if variant is None:
        raise SkippedRowError(SkipReason.ACCELERATOR_UNKNOWN, row.accelerator_id)
    part = catalog.accelerators[variant.part]
    known = part.accelerator
    specification = {
        "name": row.accelerator_id.removeprefix("?"),
        "generation": known.generation,
        "memory_bytes": variant.capacity_bytes,
        "memory_bandwidth_bytes_per_second": variant.bandwidth_bytes_per_second,
        "peak_flops_per_second": dict(known.peak_flops_per_second),
        "power_limit_watts": variant.power_limit_watts,
    }
    cluster: dict[str, Any] = {"accelerator": {"source": "specification", "specification": specification}}
    for name, link in (
        ("intra_node_link", part.usual_links.intra_node_link_id),
        ("inter_node_link", part.usual_links.inter_node_link_id),
    ):
        if link:
            cluster[name] = {"source": "catalog", "id": link}
    return [cluster]


def _network(row: MeasuredRow) -> dict[str, Any]:
    """Returns the network of a cluster, if the row states it."""
    known = facts.network(row)
    if known is None or row.kind != "training":
        return {}
    link = {"kind": known.kind, "bandwidth_bytes_per_second": known.bytes_per_second}
    return {
        "inter_node_link": {"source": "specification", "specification": link},
        "network_interfaces_per_node": known.per_node,
    }


def _clusters(
    row: MeasuredRow, metric: MeasuredMetric, count: int, catalog: CatalogView
) -> Sequence[Mapping[str, Any] | None]:
    if metric.whole:
        return [None]
    known = _find_accelerator(row, catalog) is not None
    speed = metric.operation is MeasuredOperation.THROUGHPUT
    if known and (speed or facts.device_bytes(row) is None):
        accelerator = {"source": "catalog", "id": row.accelerator_id}
        beside = {**_network(row), **documented(row).cluster}
        return [{"accelerator": accelerator, "accelerator_count": count, **beside}]
    if speed:
        return [{**each, "accelerator_count": count, **_network(row)} for each in _variants(row, catalog)]
    capacities = _capacities(row, catalog)
    if "accelerator" not in metric.needs:
        capacities = capacities[:1]
    name = row.accelerator_id.removeprefix("?") or "unknown"
    return [
        {
            "accelerator": {
                "source": "specification",
                "specification": {"name": name, "memory_bytes": size},
            },
            "accelerator_count": count,
        }
        for size in capacities
    ] or [None]
