"""Serving rows as the workloads of questions."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from service.evidence import facts
from service.evidence.asking.skips import Skip, Skipped
from service.evidence.metrics import GRAPH_CHANGE, METRICS, Metric, Operation
from service.evidence.rows import Row
from service.planning.engines import is_vllm_v0

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
    if stated == "fp8" and not tool and row.model_id.startswith(_BLOCKS_PUBLISHED):
        tool = "block"
    named = (name for weights, by, name in _PACKED if weights == stated and by in tool)
    return next(named, stated)


_BLOCKS_PUBLISHED = ("qwen3",)
"""Models whose maker publishes FP8 weights with a scale for each block of 128 x 128."""
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


def _engines(row: Row, run: Mapping[str, Row]) -> Iterator[dict[str, Any] | None]:
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
    if METRICS[row.metric].read is GRAPH_CHANGE:
        # What is asked for is an iteration alone: capturing graphs hands that room back.
        given["max_num_seqs"] = 1
    versions = facts.engine_versions(row, run)
    for asked in [given | {"version": version} for version in versions] if versions else [given]:
        ways = [asked]
        if name == "vllm" and "max_num_seqs" not in given and is_vllm_v0(asked.get("version")):
            # Only the first device of a group draws tokens, and small settings are common on small devices.
            ways.append(asked | {"max_num_seqs": 1})
        yield from reversed(ways) if row.layout.get("tensor", 1) >= _MOST_DRAW_NOTHING else ways


_MOST_DRAW_NOTHING = 10
"""Devices of a group from which nine of ten lines of a log are of devices that draw no tokens."""


_OTHER_SHARES = (0.95, 0.8)
"""Shares of a device beside the default that logs show most."""


def _fractions(row: Row, run: Mapping[str, Row]) -> list[float | None]:
    """The share of the device that is stated, or those that are likely."""
    stated = facts.setting(row, "gpu_memory_utilization")
    name = facts.engine(row)
    if name not in _RESERVING:
        return [1.0 if stated is None else stated]
    if stated is None:
        return [None, *_OTHER_SHARES] if name == "vllm" and row.metric in _OF_SHARE else [None]
    device = facts.device_bytes(row)
    parts = [run[part].value for part in _LOGGED_PARTS if part in run]
    if device and len(parts) == len(_LOGGED_PARTS) and sum(parts) > stated * device:
        # The engine started: it had a larger share than the notes say.
        return [*(share for share in _OTHER_SHARES if share * device > sum(parts)), stated]
    return [stated]


_OF_SHARE = frozenset({"kv_cache_memory_per_gpu", "kv_cache_blocks"})
_LOGGED_PARTS = ("weights_memory_per_gpu", "non_torch_memory_per_gpu", "activation_peak_per_gpu")


def serving_workloads(row: Row, run: Mapping[str, Row]) -> Iterator[dict[str, Any]]:
    """The workloads of a row of ``run``, the likeliest first."""
    metric = METRICS[row.metric]
    for engine, fraction, (inputs, outputs) in itertools.product(
        _engines(row, run), _fractions(row, run), _lengths(row, metric)
    ):
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
