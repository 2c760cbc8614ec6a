"""Serving rows as the workloads of questions."""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from accuracy import facts, mlperf, recipes, serving_facts
from accuracy.asking import serve_line
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.metrics import GRAPH_CHANGE, METRICS, MeasuredMetric
from accuracy.rows import MeasuredRow, stated_count
from service.evidence.measured import MeasuredOperation
from service.planning.software.engines import is_vllm_v0

_RESERVING = frozenset({"vllm", "sglang", "tensorrt-llm"})
"""Engines that reserve a share of the device and use the rest of it for the KV cache."""

_SHORT, _LONG = (16, 48), (1024, 1024)
"""Input and output tokens for a source that serves one request without stating them: its demo, and a long
one.
"""


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
"""Formats by the names of rows for the weights and the tool that packed them."""


def _weights(row: MeasuredRow) -> str:
    stated = row.precision.get("weights") or row.precision.get("compute") or mlperf.get_weights(row)
    if not stated:
        stated = "fp8" if facts.says(row, "fp8") else "bf16"
    if stated == "mxfp4" and mlperf.get_task(row):
        # Submissions quantise activations too (Quark), so that products run in 4 bits.
        return "fp4"
    tool = row.precision.get("quantisation", "")
    if tool == "gguf":
        return f"gguf_{stated}"
    published = row.text["model"].lower().endswith("-fp8") or row.model_id.startswith(_BLOCKS_ALONE)
    if stated == "fp8" and serving_facts.is_packed_by_vendor(row):
        return stated
    if stated == "fp8" and (published or (not tool and row.model_id.startswith(_BLOCKS_PUBLISHED))):
        tool = "block"
    named = (name for weights, by, name in _PACKED if weights == stated and by in tool)
    return next(named, stated)


_BLOCKS_PUBLISHED = ("qwen3",)
"""Models whose maker publishes FP8 weights with a scale for each block of 128 x 128."""
_BLOCKS_ALONE = ("deepseek-", "minimax-m2", "glm-5")
"""Models that are published in no wider format, contrary to some tables."""
_PLAIN = frozenset({"fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"})


def _stored(row: MeasuredRow) -> dict[str, Any]:
    name = _weights(row)
    return {"weight_precision" if name in _PLAIN else "weight_format": name}


def _lengths(row: MeasuredRow, metric: MeasuredMetric) -> list[tuple[int, int]]:
    given = row.length
    speed = metric.operation is MeasuredOperation.THROUGHPUT
    if "input_tokens" in given or ("output_tokens" in given and not speed):
        inputs, outputs = (max(1, round(given.get(name, 1))) for name in _LENGTHS)
        return [(inputs, outputs)]
    prompts = serving_facts.likely_prompts(row) if speed else ()
    if prompts:
        generated = given.get("output_tokens") or serving_facts.likely_output(row)
        return [(prompt, max(1, round(generated))) for prompt in prompts]
    longest = given.get("max_model_len") or facts.setting(row, "max_model_len")
    if longest:
        return [(max(1, int(longest) - 1), 1)]
    if speed and row.source != _DEMO:
        raise SkippedRowError(SkipReason.LENGTHS_UNKNOWN)
    return [_SHORT, _LONG] if "lengths" in metric.needs and not speed else [_SHORT if speed else _LONG]


_LENGTHS: Final = ("input_tokens", "output_tokens")
_DEMO: Final = "LitGPT"
"""Source whose rows time its demo: one prompt of a few words, 50 tokens."""


def _drawn(row: MeasuredRow, metric: MeasuredMetric, tokens: int, name: str) -> int | dict[str, Any]:
    """Returns a length with the distribution of the source."""
    classes = (
        serving_facts.drawn_lengths(row, name) if metric.operation is MeasuredOperation.THROUGHPUT else ()
    )
    lengths = [max(1, round(tokens * ratio)) for _, ratio in classes]
    if len(set(lengths)) < len(classes) or not classes:
        return tokens
    weights = [share for share, _ in classes]
    return {"distribution": "histogram", "tokens": lengths, "weights": weights}


_QUEUED: Final = 2048
"""Waiting requests at a device if a source sends all at the start: more than any engine takes into a batch of
one device.
"""


def _loads(row: MeasuredRow, metric: MeasuredMetric, run: Mapping[str, MeasuredRow]) -> list[dict[str, Any]]:
    """Returns the load, or those of which a limit of latency decides, the largest first."""
    submitted = mlperf.list_requests(row, stated_count(row.text["n_gpus"]) or 1)
    if metric.operation is MeasuredOperation.THROUGHPUT and submitted:
        return [{"concurrency": requests} for requests in submitted]
    full = row.batch.get("scenario") and not row.batch.get("requests")
    if metric.operation is MeasuredOperation.THROUGHPUT and full:
        degrees = (max(1, int(row.layout.get(name) or 1)) for name in ("tensor", "pipeline", "data"))
        return [{"concurrency": _QUEUED * math.prod(degrees)}]
    return [_load(row, metric, run)]


def _load(row: MeasuredRow, metric: MeasuredMetric, run: Mapping[str, MeasuredRow]) -> dict[str, Any]:
    """Returns the arrivals, or the concurrency with the total requests if the first begin together."""
    batch = row.batch
    rate = serving_facts.arrivals_per_second(row, run)
    if rate and metric.operation is MeasuredOperation.THROUGHPUT:
        return {"request_rate_per_second": rate, "arrivals": {"process": "uniform"}}
    if batch.get("requests") and metric.operation is MeasuredOperation.THROUGHPUT:
        count = max(1, int(batch["requests"]))
        at_a_time = serve_line.client_batch(row) or batch.get("concurrency") or count
        if at_a_time == serve_line.number(row, "max_num_seqs"):
            # The printed peak is the limit of the engine: other requests wait.
            at_a_time = count
        return {"concurrency": min(int(at_a_time), count), "horizon": {"total_requests": count}}
    stated = batch.get("concurrency") or batch.get("average_batch") or batch.get("requests")
    if not stated and "batch_per_rank" in batch:
        ranks = int(row.layout.get("attention_data") or row.layout.get("data") or 1)
        stated = batch["batch_per_rank"] * ranks
    decode = row.layout.get("decode", {})
    if not stated and decode.get("batch_size"):
        stated = decode["batch_size"] * max(1, decode.get("workers") or 1)
    if not stated:
        if metric.operation is MeasuredOperation.THROUGHPUT:
            raise SkippedRowError(SkipReason.BATCH_UNKNOWN)
        return {"concurrency": 1}
    concurrency = max(1, round(stated))
    load: dict[str, Any] = {"concurrency": concurrency}
    rounds = serving_facts.rounds_of_requests(row)
    if rounds and metric.operation is MeasuredOperation.THROUGHPUT:
        load["horizon"] = {"total_requests": rounds * concurrency}
    return load


def _engines(row: MeasuredRow, run: Mapping[str, MeasuredRow]) -> Iterator[dict[str, Any] | None]:
    name = facts.engine(row)
    if name is None:
        yield None
        return
    given: dict[str, Any] = {"name": name}
    metric = METRICS[row.metric]
    speed = metric.operation is MeasuredOperation.THROUGHPUT
    most = (
        row.batch.get("max_num_seqs")
        or facts.setting(row, "max_num_seqs")
        or (serve_line.number(row, "max_num_seqs") if speed else None)
    )
    if most:
        given["max_num_seqs"] = int(most)
    block = facts.setting(row, "block_size")
    if block:
        given["block_tokens"] = int(block)
    if speed:
        tokens, chunked = serve_line.number(row, "max_batched_tokens"), serve_line.chunked_prefill(row)
        given |= (
            mlperf.get_limits(row)
            | serving_facts.recipe_limits(row)
            | ({"max_batched_tokens": tokens} if tokens else {})
        )
        given |= {"chunked_prefill": chunked} if chunked is not None else {}
        # Each of the source's recipes starts a separate server.
        given |= {"warmed_up": False} if serving_facts.is_sweep_of_recipes(row) else {}
    if metric.read is GRAPH_CHANGE:
        # The figure covers an iteration alone: capturing graphs releases that memory.
        given["max_num_seqs"] = 1
    versions = [serving_facts.release(row)] if speed else facts.engine_versions(row, run)
    versions = [version for version in versions if version]
    for asked in [given | {"version": version} for version in versions] if versions else [given]:
        ways = [asked]
        if not speed and name == "vllm" and "max_num_seqs" not in given and is_vllm_v0(asked.get("version")):
            # Only the first device of a group samples tokens, and small settings are common on small devices.
            ways.append(asked | {"max_num_seqs": 1})
        yield from reversed(ways) if row.layout.get("tensor", 1) >= _MOST_DRAW_NOTHING else ways


_MOST_DRAW_NOTHING = 10
"""Devices of a group above which nine of ten lines of a log come from devices that sample no tokens."""


_OTHER_SHARES = (0.95, 0.8)
"""Most frequent shares of a device in logs, other than the default."""


def _fractions(row: MeasuredRow, run: Mapping[str, MeasuredRow]) -> list[float | None]:
    """Returns the stated share of the device, or the likely ones."""
    stated = facts.setting(row, "gpu_memory_utilization")
    name = facts.engine(row)
    if name not in _RESERVING:
        return [1.0 if stated is None else stated]
    if stated is None:
        return [None, *_OTHER_SHARES] if name == "vllm" and row.metric in _OF_SHARE else [None]
    device = facts.device_bytes(row)
    parts = [run[part].value for part in _LOGGED_PARTS if part in run]
    if device and len(parts) == len(_LOGGED_PARTS) and sum(parts) > stated * device:
        # The engine started, so its share was larger than the notes say.
        return [*(share for share in _OTHER_SHARES if share * device > sum(parts)), stated]
    return [stated]


_OF_SHARE = frozenset({"kv_cache_memory_per_gpu", "kv_cache_blocks"})
_LOGGED_PARTS = ("weights_memory_per_gpu", "non_torch_memory_per_gpu", "activation_peak_per_gpu")


_CACHE_NARROW: Final = frozenset({"fp8", "nvfp4", "mxfp4"})
_NARROW_GENERATIONS: Final = frozenset({"blackwell"})


def _cache(row: MeasuredRow, metric: MeasuredMetric, generation: str | None) -> dict[str, Any]:
    """Returns the format of the KV cache: as stated, else by the recipes of the source.

    Submissions to MLPerf use FP8 if the weights do. NVIDIA's FP8 and FP4 checkpoints request an FP8 cache,
    which TensorRT-LLM follows; the recipes of InferenceX request it from vLLM and SGLang on Blackwell.
    """
    stated = serve_line.cache_precision(row) or row.precision.get("kv_cache")
    if (
        not stated
        and metric.operation is MeasuredOperation.THROUGHPUT
        and row.precision.get("weights") in _CACHE_NARROW
    ):
        recipes = serving_facts.is_sweep_of_recipes(row) and generation in _NARROW_GENERATIONS
        if facts.engine(row) == "tensorrt-llm" or recipes:
            stated = "fp8"
    if not stated and metric.operation is MeasuredOperation.THROUGHPUT:
        stated = mlperf.get_cache(row)
    return {"kv_cache_precision": stated} if stated else {}


def _speculations(row: MeasuredRow, metric: MeasuredMetric) -> list[dict[str, Any] | None]:
    """Returns the speculative settings: of the command, else both if recipes of the source have both."""
    if metric.operation is not MeasuredOperation.THROUGHPUT:
        return [None]
    task = mlperf.get_task(row)
    if task and task.beams > 1:
        # Each beam reads the cache of the prompt separately, or several positions of a request read it once.
        return [None, {"method": "ngram", "tokens": task.beams - 1, "acceptance_rate": 0.0}]
    recipe = recipes.get_speculation(row)
    if recipe:
        method, tokens = recipe
        ahead = tokens or serving_facts.recipe_tokens_ahead(row)
        return [{"method": method, "tokens": ahead} if method else None]
    stated = serve_line.speculation(row)
    if stated or serve_line.command(row):
        return [stated]
    if not (serving_facts.is_sweep_of_recipes(row) and row.model_id.startswith(_WITH_HEADS)):
        return [None]
    own = {"method": "mtp", "tokens": serving_facts.recipe_tokens_ahead(row)}
    known = serving_facts.recipe_speculates(row)
    return [None, own] if known is None else [own if known else None]


_WITH_HEADS: Final = ("deepseek-r1", "deepseek-v3", "glm-5", "qwen3.5-397b")
"""Models with multi-token heads that the recipes of InferenceX serve with and without them."""


_MEDIAN: Final = "median_itl"
_WITHOUT_PROMPTS: Final = 0.999
_PROMPT_TOKENS: Final = 8192


def _mostly_decodes(inputs: int, outputs: int, concurrency: int) -> bool:
    """Returns true if most iterations hold no prompt, so that the median interval is that of pure decoding.

    Each request has its prompt computed once in as many iterations as it generates tokens.
    """
    return concurrency * math.ceil(inputs / _PROMPT_TOKENS) < outputs / 2.0


def serving_workloads(
    row: MeasuredRow, run: Mapping[str, MeasuredRow], generation: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yields the workloads of a row of ``run`` on a generation of devices, the likeliest first."""
    metric, task = METRICS[row.metric], mlperf.get_task(row)
    for speculation, engine, fraction, (inputs, outputs), load in itertools.product(
        _speculations(row, metric),
        _engines(row, run),
        _fractions(row, run),
        _lengths(row, metric),
        _loads(row, metric, run),
    ):
        generated = outputs if speculation or task is None else outputs * task.beams
        workload: dict[str, Any] = {
            "kind": "inference",
            **_stored(row),
            "input_tokens": _drawn(row, metric, inputs, "input_tokens"),
            "output_tokens": _drawn(row, metric, generated, "output_tokens"),
            **load,
            **_cache(row, metric, generation),
        }
        if row.metric == _MEDIAN and _mostly_decodes(inputs, outputs, workload["concurrency"]):
            workload["prefix_cache_hit_rate"] = _WITHOUT_PROMPTS
        if fraction is not None:
            workload["memory_fraction"] = fraction
        if engine:
            workload["engine"] = engine
        if speculation:
            workload["speculative"] = speculation
        yield workload
