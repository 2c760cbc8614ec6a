"""A row as the question that the API takes. The one place to extend when the question's shapes grow.

A fact that the row leaves open and that the answer depends on gives several questions, the likeliest
first; a fact without which there is no question is a reason to skip the row.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from service.evidence import facts
from service.evidence.metrics import METRICS, Metric, Operation
from service.evidence.rows import Row
from service.evidence.shapes import model_references, stated_count
from service.planning.cluster import memory_capacity
from service.planning.quantity import Quantity
from service.questions.catalog import Catalog

Question = Mapping[str, Any]
MOST_QUESTIONS = 12
"""Of one row: the product of its open facts is cut here, the likeliest kept."""


class Skip(StrEnum):
    """Why a row is not estimated. All but the last two are facts in neither the row nor the catalog."""

    MODEL_SHAPE_UNKNOWN = "MODEL_SHAPE_UNKNOWN"
    ACCELERATOR_UNKNOWN = "ACCELERATOR_UNKNOWN"
    LAYOUT_UNKNOWN = "LAYOUT_UNKNOWN"
    BATCH_UNKNOWN = "BATCH_UNKNOWN"
    LENGTHS_UNKNOWN = "LENGTHS_UNKNOWN"
    METRIC_NOT_ANSWERED = "METRIC_NOT_ANSWERED"
    """The metric is read from no answer yet; such rows count for nothing."""
    NOT_MODELLED_YET = "NOT_MODELLED_YET"
    """The question's shape, or the model of it, does not take a fact of the row."""


class Skipped(Exception):
    """A row that cannot be asked."""

    def __init__(self, reason: Skip, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{reason}: {detail}")


def questions(row: Row, catalog: Catalog) -> list[Question]:
    """The questions of a row, the likeliest first; raises :class:`Skipped`."""
    metric = METRICS.get(row.metric)
    if metric is None:
        raise Skipped(Skip.METRIC_NOT_ANSWERED)
    models = model_references(row, catalog.models)
    if not models:
        raise Skipped(Skip.MODEL_SHAPE_UNKNOWN, row.model_id)
    layout = {} if metric.whole else _layout(row, metric)
    clusters = _clusters(row, metric, layout, catalog)
    workloads = list(_training(row, layout) if row.kind == "training" else _serving(row))
    asked: list[Question] = []
    for workload, model, cluster in itertools.product(workloads, models, clusters):
        question: dict[str, Any] = {"model": model, "workload": workload}
        if cluster:
            question["cluster"] = cluster
        if layout:
            question["parallelism"] = layout
        asked.append(question)
    return asked[:MOST_QUESTIONS]


def _layout(row: Row, metric: Metric) -> dict[str, Any]:
    stated = row.layout
    if "prefill" in stated or "decode" in stated:
        raise Skipped(Skip.NOT_MODELLED_YET, "disaggregated serving")
    devices = stated_count(row.text["n_gpus"]) or 0
    if not stated and (devices > 1 or (not devices and "layout" in metric.needs)):
        raise Skipped(Skip.LAYOUT_UNKNOWN)
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
    # Experts spread over the devices of a tensor-parallel group are divided by it already.
    expert = math.gcd(int(stated.get("expert") or stated.get("moe_expert") or 1), data)
    if expert > 1:
        layout["expert"] = expert
    if row.kind == "training":
        layout |= _training_layout(row)
    return layout


def _training_layout(row: Row) -> dict[str, Any]:
    stated = row.layout
    layout: dict[str, Any] = {}
    if stated.get("sharding", "none") != "none":
        layout["sharding"] = stated["sharding"]
    if stated.get("zero_group"):
        layout["sharding_group_size"] = int(stated["zero_group"])
    known = facts.framework(row)
    if stated.get("sequence_parallel") or (known and known.sequence_parallel and stated.get("tensor", 1) > 1):
        layout["sequence_parallel"] = True
    if stated.get("virtual_stages", 1) > 1:
        layout["virtual_stages"] = int(stated["virtual_stages"])
        layout["pipeline_schedule"] = "interleaved"
    elif facts.says(row, "interleaved"):
        layout |= {"virtual_stages": 2, "pipeline_schedule": "interleaved"}
    return layout


def _capacities(row: Row, catalog: Catalog) -> list[int]:
    """Bytes of a device outside the catalog: what the log prints, else its label with its doubt."""
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


def _clusters(
    row: Row, metric: Metric, layout: Mapping[str, Any], catalog: Catalog
) -> Sequence[Mapping[str, Any] | None]:
    if metric.whole:
        return [None]
    count = 1
    for name in ("tensor", "pipeline", "context", "data"):
        count *= layout.get(name, 1)
    known = row.accelerator_id in catalog.accelerators
    speed = metric.operation is Operation.THROUGHPUT
    if known and (speed or facts.device_bytes(row) is None):
        accelerator = {"source": "catalog", "id": row.accelerator_id}
        return [{"accelerator": accelerator, "accelerator_count": count}]
    if speed:
        raise Skipped(Skip.ACCELERATOR_UNKNOWN, row.accelerator_id)
    capacities = _capacities(row, catalog)
    if "accelerator" not in metric.needs:
        capacities = capacities[:1]
    return [
        {
            "accelerator": {"source": "specification", "specification": {"memory_bytes": size}},
            "accelerator_count": count,
        }
        for size in capacities
    ] or [None]


def _micro_batch(row: Row, layout: Mapping[str, Any]) -> tuple[int, int]:
    """Sequences of a micro-batch, and micro-batches of a step."""
    micro = row.batch.get("micro_batch_size")
    data = layout.get("data", 1)
    total = row.batch.get("global_batch_size")
    if total is None and "global_batch_tokens" in row.batch and row.length.get("sequence_length"):
        total = row.batch["global_batch_tokens"] // row.length["sequence_length"]
    steps = facts.micro_batches(row) or row.batch.get("gradient_accumulation_steps")
    if micro is None:
        if total is None:
            raise Skipped(Skip.BATCH_UNKNOWN)
        micro = max(1, total // (data * (steps or 1)))
    micro = max(1, int(micro))
    known = facts.framework(row)
    if known and known.splits_local_batch and layout.get("pipeline", 1) > 1:
        return 1, micro
    if steps is None and total is not None:
        steps = max(1, int(total // (micro * data)))
    return micro, int(steps or layout.get("pipeline", 1))


def _recomputations(row: Row) -> list[str]:
    if row.recomputation in ("none", "selective", "full"):
        return [row.recomputation]
    return ["full", "none"]


def _training_precision(row: Row) -> str:
    known = facts.framework(row)
    text = row.text["precision"].lower()
    compute = row.precision.get("compute") or ("fp16" if "fp16" in text else "bf16")
    pure = "pure" in text or "-true" in text or (known is not None and known.pure and "amp" not in text)
    if compute == "bf16" and pure:
        return "pure_bf16"
    return _FP8.get(compute, compute)


_FP8 = {"fp8": "fp8_delayed", "mxfp8": "mxfp8"}
"""Recipes of the formats that rows name; FP8 without more words scales a tensor at a time."""


def _optimizer(row: Row) -> str | None:
    if facts.says(row, "paged"):
        return "paged_adamw_8bit"
    if facts.is_one_device_recipe(row):
        return "adam_8bit"
    return "adam_8bit" if facts.says(row, "8-bit optimizer", "8bit optimizer") else None


def _adaptation(row: Row) -> dict[str, Any]:
    """Which parameters are trained, in the terms of the question.

    LLaMA-Adapter puts ten virtual tokens before each layer's keys; its second version also trains a scale
    and a shift beside every matrix, which keep of a step what low-rank matrices there would keep. Over packed
    weights only low-rank matrices can be asked for: the least of them stand for the tokens.
    """
    kind = row.adaptation or "full"
    packed = row.precision.get("weights") == "nf4"
    if kind == "adapter" and not packed:
        return {"kind": "prefix", "virtual_tokens": 10}
    if kind in ("adapter", "adapter-v2"):
        targets = ["value"] if kind == "adapter" else ["all_linear"]
        return {"kind": "qlora" if packed else "lora", "rank": 1, "target_modules": targets}
    given: dict[str, Any] = {"kind": "qlora" if kind == "lora" and packed else kind}
    if kind in ("lora", "qlora"):
        known = facts.framework(row)
        rank = facts.lora_rank(row)
        if rank:
            given["rank"] = rank
        if known and known.adapted:
            given["target_modules"] = list(known.adapted)
    return given


def _training(row: Row, layout: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    length = row.length.get("sequence_length")
    if not length:
        raise Skipped(Skip.LENGTHS_UNKNOWN)
    micro, steps = _micro_batch(row, layout)
    known = facts.framework(row)
    workload: dict[str, Any] = {
        "kind": "training",
        "sequence_length": int(length),
        "micro_batch_size": micro,
        "gradient_accumulation_steps": steps,
        "precision": _training_precision(row),
        "adaptation": _adaptation(row),
    }
    if known:
        workload |= {"framework": {"name": known.name}, "attention": known.attention}
        if known.loss:
            workload["loss"] = known.loss
    optimizer = _optimizer(row)
    if optimizer:
        workload["optimizer"] = optimizer
    if facts.is_one_device_recipe(row):
        workload["optimizer_in_backward"] = True
    if facts.says(row, "cpu offload"):
        workload["framework"] = {"name": "deepspeed"}
        workload["offload"] = {"optimizer": "cpu", "parameters": "cpu"}
    for strategy in _recomputations(row):
        yield workload | {"recomputation": {"strategy": strategy}}


_RESERVING = frozenset({"vllm", "sglang", "tensorrt-llm"})
"""Engines that take a share of the device and give what is left to the KV cache."""

_SHORT, _LONG = (16, 48), (1024, 1024)
"""Input and output tokens where a source that serves one request states none: its demo, and a long one."""


_PACKED = (
    ("int4", "gptq", "gptq_int4_g128"),
    ("int8", "gptq", "gptq_int8_g128"),
    ("int4", "awq", "awq_int4_g128"),
    ("int4", "wna16", "gptq_int4_g128"),
    ("int4", "", "awq_int4_g128"),
    ("nf4", "nf4-dq", "bnb_nf4_double_quant"),
    ("nf4", "", "bnb_nf4"),
    ("fp8", "block", "fp8_block_128"),
    ("fp8", "dynamic", "fp8_channel"),
)
"""Formats by what rows call the weights and the tool that packed them."""


def _weights(row: Row) -> str:
    stated = row.precision.get("weights") or row.precision.get("compute")
    if not stated:
        stated = "fp8" if facts.says(row, "fp8") else "bf16"
    tool = row.precision.get("quantisation", "")
    if tool == "gguf":
        return f"gguf_{stated}"
    named = (name for weights, by, name in _PACKED if weights == stated and by in tool)
    return next(named, stated)


_PLAIN = frozenset({"fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"})


def _stored(row: Row) -> dict[str, Any]:
    name = _weights(row)
    return {"weight_precision" if name in _PLAIN else "weight_format": name}


def _lengths(row: Row, metric: Metric) -> list[tuple[int, int]]:
    given = row.length
    if "output_tokens" in given or "input_tokens" in given:
        return [(max(1, int(given.get("input_tokens", 1))), max(1, int(given.get("output_tokens", 1))))]
    longest = given.get("max_model_len") or facts.setting(row, "max_model_len")
    if longest:
        return [(max(1, int(longest) - 1), 1)]
    if metric.operation is Operation.THROUGHPUT:
        raise Skipped(Skip.LENGTHS_UNKNOWN)
    return [_SHORT, _LONG] if "lengths" in metric.needs else [_LONG]


def _concurrency(row: Row, metric: Metric) -> int:
    batch = row.batch
    stated = batch.get("concurrency") or batch.get("average_batch") or batch.get("requests")
    if stated:
        return max(1, int(stated))
    if "batch_per_rank" in batch:
        ranks = int(row.layout.get("attention_data") or row.layout.get("data") or 1)
        return max(1, int(batch["batch_per_rank"]) * ranks)
    if metric.operation is Operation.THROUGHPUT:
        raise Skipped(Skip.BATCH_UNKNOWN)
    return 1


def _engines(row: Row) -> Iterator[dict[str, Any] | None]:
    name = facts.engine(row)
    if name is None:
        yield None
        return
    given: dict[str, Any] = {"name": name}
    most = row.batch.get("max_num_seqs") or facts.setting(row, "max_num_seqs")
    if most:
        given["max_num_seqs"] = int(most)
    block = facts.setting(row, "block_size")
    if block:
        given["block_tokens"] = int(block)
    versions = facts.engine_versions(row)
    yield from ([given | {"version": version} for version in versions] if versions else [given])


def _serving(row: Row) -> Iterator[dict[str, Any]]:
    metric = METRICS[row.metric]
    fraction = facts.setting(row, "gpu_memory_utilization")
    if fraction is None and facts.engine(row) not in _RESERVING:
        fraction = 1.0
    for engine, (inputs, outputs) in itertools.product(_engines(row), _lengths(row, metric)):
        workload: dict[str, Any] = {
            "kind": "inference",
            **_stored(row),
            "input_tokens": inputs,
            "output_tokens": outputs,
            "concurrency": _concurrency(row, metric),
        }
        if row.precision.get("kv_cache"):
            workload["kv_cache_precision"] = row.precision["kv_cache"]
        if fraction is not None:
            workload["memory_fraction"] = fraction
        if engine:
            workload["engine"] = engine
        yield workload
