"""Serving rows as layouts of questions."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from accuracy import mlperf, serving_facts
from accuracy.asking import serve_line
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.rows import MeasuredRow, stated_count


class ServingArrangement(NamedTuple):
    """Layout of a served model on devices. Empty members are left to the service."""

    devices: int
    parallelism: Mapping[str, Any] = {}
    disaggregated: Mapping[str, Any] = {}


def arrangements(row: MeasuredRow) -> list[ServingArrangement]:
    """Returns the possible layouts of a serving row, the likeliest first. Raises :class:`SkippedRowError`."""
    devices = stated_count(row.text["n_gpus"]) or 0
    if "decode" in row.layout:
        return _disaggregated(row)
    if not row.layout:
        if not devices:
            raise SkippedRowError(SkipReason.LAYOUT_UNKNOWN)
        replica, task = mlperf.count_devices(row, devices), mlperf.get_task(row)
        if replica and task and devices % replica == 0:
            if task.shares_requests and replica > 1:
                return [_arrangement(_layout(1, 1, devices, 1))]
            tensor, stages = min(replica, _ONE_NODE), max(1, replica // _ONE_NODE)
            layout = {"pipeline": stages} if stages > 1 else {}
            return [_arrangement({"tensor": tensor, **layout, "data": devices // replica})]
        return [ServingArrangement(devices)]
    return [_arrangement(layout) for layout in _readings(row, devices)]


def _arrangement(layout: Mapping[str, int]) -> ServingArrangement:
    devices = math.prod(layout.get(name, 1) for name in ("tensor", "pipeline", "data"))
    return ServingArrangement(devices, layout)


def _readings(row: MeasuredRow, devices: int) -> list[dict[str, int]]:
    stated = row.layout
    pipeline = max(1, int(stated.get("pipeline") or 1), serve_line.number(row, "pipeline") or 1)
    data = int(stated.get("attention_data") or stated.get("data") or 1)
    if not devices and not stated.get("attention_data"):
        data = _replicas(row)
    # If only the degrees of experts are stated, the number of devices determines the others.
    tensor = int(stated.get("tensor") or max(1, devices // (data * pipeline)))
    if serving_facts.spreads_attention(row) and tensor > 1:
        return [_layout(1, pipeline, tensor * data, 1)]
    cut, spread = (int(stated.get(name) or 0) for name in ("moe_tensor", "moe_expert"))
    experts = max(1, cut) * max(1, spread)
    if experts > tensor * data:
        # Ranks of attention that the source leaves out: the experts span all devices.
        data = max(data, experts // tensor)
    plain = _layout(tensor, pipeline, data, cut if experts > 1 else 0)
    side = math.isqrt(tensor * data)
    if "layout" in row.missing and experts > 1 and side > 1 and side * side == tensor * data:
        # Degrees were multiplied with each other: the README of the rows, known traps.
        smaller = _layout(1, pipeline, side, 1) if data > 1 else _layout(side, pipeline, 1, 1)
        return [smaller, plain]
    return [plain]


def _replicas(row: MeasuredRow) -> int:
    """Returns the replicas of a row without a number of devices: its requests over those of one rank."""
    held, concurrency = row.batch.get("batch_per_rank"), row.batch.get("concurrency")
    return max(1, round(concurrency / held)) if held and concurrency else 1


def _layout(tensor: int, pipeline: int, data: int, expert_tensor: int) -> dict[str, int]:
    """Returns degrees under their names in questions. Experts, if any, span all devices of a stage."""
    layout = {"tensor": tensor, "pipeline": pipeline, "data": data}
    if expert_tensor and data > 1:
        layout["expert"] = data
    if expert_tensor and expert_tensor != tensor:
        layout["expert_tensor"] = expert_tensor
    return {
        name: degree for name, degree in layout.items() if degree > 1 or name in ("data", "expert_tensor")
    }


_ONE_NODE = 8
"""Devices above which a decode worker distributes requests and experts over its devices, since finer tensor
parallelism of attention would wait for links.
"""

_FEW_REQUESTS, _MANY_REQUESTS = 200, 2048
_LONG_PROMPT = 4


def _workers(row: MeasuredRow) -> list[tuple[int, int]]:
    """Returns the numbers of prefill and decode workers of a source without them, the likeliest first.

    From recipes of InferenceX (nvidia-master.yaml): 1 and 5 for few requests; for many 1 and 4 or, with long
    prompts, 5 and 2, at most 3 and 4.
    """
    requests = row.batch.get("concurrency") or 0
    given = row.length
    if requests <= _FEW_REQUESTS:
        first = 1, 5
    elif given.get("input_tokens", 1) >= _LONG_PROMPT * given.get("output_tokens", 1):
        first = 5, 2
    else:
        first = (3, 4) if requests > _MANY_REQUESTS else (1, 4)
    return [first, (1, 1)]


def _pool(stated: Mapping[str, Any], replicas: int) -> tuple[dict[str, Any], int]:
    """Returns a pool of equal workers, and its number of devices."""
    tensor, pipeline = max(1, int(stated.get("tensor") or 1)), max(1, int(stated.get("pipeline") or 1))
    data, spread = max(1, int(stated.get("attention_data") or 1)), int(stated.get("expert") or 1)
    if data == 1 and tensor > _ONE_NODE and spread > 1:
        tensor, data = 1, tensor
    expert_tensor = 0
    if spread > 1:
        # The degree printed for decode often repeats that of prefill: no more than all devices is possible.
        expert_tensor = 1 if data > 1 else max(1, tensor // spread)
    expert_tensor = int(stated.get("moe_tensor") or expert_tensor)
    layout = _layout(tensor, pipeline, data, expert_tensor)
    return {"parallelism": layout, "replicas": replicas}, tensor * pipeline * data * replicas


def _disaggregated(row: MeasuredRow) -> list[ServingArrangement]:
    prefill, decode = row.layout.get("prefill", {}), row.layout["decode"]
    stated = int(prefill.get("workers") or 0), int(decode.get("workers") or 0)
    ways = [stated] if all(stated) else _workers(row)
    found = []
    for prefills, decodes in ways:
        first, first_devices = _pool(prefill, prefills)
        second, second_devices = _pool(decode, decodes)
        if prefill.get("batch_size"):
            # Prompts that a rank takes at a time.
            first["max_num_seqs"] = int(prefill["batch_size"])
        parts = {"prefill": first, "decode": second}
        found.append(ServingArrangement(first_devices + second_devices, disaggregated=parts))
    return found
