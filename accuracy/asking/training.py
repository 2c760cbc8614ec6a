"""Training rows as the workloads and layouts of questions."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from accuracy import facts, recipes
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.metrics import METRICS
from accuracy.rows import MeasuredRow
from service.evidence.measured import MeasuredOperation


class DocumentedRun(NamedTuple):
    """Facts of a run from its paper that are not in its rows."""

    sequences: int | None = None
    layout: Mapping[str, Any] = {}
    recomputation: str | None = None
    cluster: Mapping[str, Any] = {}
    schedule: Mapping[str, Any] = {}
    """Members of the layout beside the sizes of its groups."""


_DOCUMENTED: Mapping[str, DocumentedRun] = {
    "DeepSeek-V3 report": DocumentedRun(
        sequences=15_360,
        schedule={"pipeline_schedule": "zero_bubble", "overlap_expert_communication": True},
    ),
    "PaLM paper": DocumentedRun(
        layout={"tensor": 12, "data": 512, "sharding": "hybrid", "sharding_group_size": 256},
        recomputation="full",
        cluster={
            "accelerators_per_node": 3072,
            "intra_node_link": {
                "source": "specification",
                "specification": {"kind": "ici", "bandwidth_bytes_per_second": 300e9},
            },
            "inter_node_link": {
                "source": "specification",
                "specification": {"kind": "ethernet", "bandwidth_bytes_per_second": 81e12 / 8 / 6144},
            },
            "network_interfaces_per_node": 3072,
        },
    ),
}
"""DeepSeek-V3, section 4.2: from 3,072 sequences a step to 15,360 over the first 469e9 of 14.8e12 tokens;
section 3.2.1: DualPipe, whose bubbles are those of a zero bubble schedule, and which sends the tokens of one
micro-batch behind the work of another.
PaLM, section 4: two pods, in each 12-way model parallelism and 256-way fully sharded data parallelism; the
second of its two utilizations counts what is computed again; 81 Tbit/s between the pods. A chip of TPU v4 has
six links of 50 GB/s (Jouppi et al. 2023)."""


def documented(row: MeasuredRow) -> DocumentedRun:
    """Returns the facts of a row's run from its paper, or empty facts."""
    return _DOCUMENTED.get(row.source, DocumentedRun())


def sequences_of_step(row: MeasuredRow) -> int | None:
    """Returns the sequences of an optimizer step over all replicas, or None if they are not stated."""
    stated, length = row.batch.get("global_batch_size"), row.length.get("sequence_length")
    if stated is None and "global_batch_tokens" in row.batch and length:
        stated = row.batch["global_batch_tokens"] // length
    found = documented(row).sequences if stated is None else stated
    return None if found is None else int(found)


_TOTAL = re.compile(r"(\d+(?:\.\d+)?)T tokens")


def _total_tokens(row: MeasuredRow) -> int:
    """Returns the tokens of the whole run from method or notes."""
    text = f"{row.text.get('method', '')} {row.text.get('notes', '')}"
    match = _TOTAL.search(text)
    if match is None:
        raise SkippedRowError(SkipReason.LENGTHS_UNKNOWN, "the tokens of the run")
    return round(float(match[1]) * 1e12)


def training_layout(row: MeasuredRow) -> dict[str, Any]:
    """Returns the training members of a layout.

    A run whose source says nothing of sharding, of sequence parallelism or of an overlap of experts had none.
    A schedule that is not stated is left to the service, and so is an overlap of tensor parallelism.
    """
    stated = row.layout or documented(row).layout
    layout: dict[str, Any] = {"sharding": stated.get("sharding", "none"), "sequence_parallel": False}
    group = stated.get("zero_group") or stated.get("sharding_group_size")
    if group and stated.get("sharding") == "hybrid":
        layout["sharding_group_size"] = int(group)
    known = facts.framework(row)
    if known and known.sharding and "sharding" not in stated:
        layout["sharding"] = known.sharding
    if stated.get("sequence_parallel") or (known and known.sequence_parallel and stated.get("tensor", 1) > 1):
        layout["sequence_parallel"] = True
    if stated.get("expert", 1) > 1:
        layout["overlap_expert_communication"] = facts.overlaps_experts(row)
    overlaps_products = facts.overlaps_products(row)
    if overlaps_products is not None and stated.get("tensor", 1) > 1:
        layout["overlap_tensor_communication"] = overlaps_products
    if stated.get("virtual_stages", 1) > 1:
        layout["virtual_stages"] = int(stated["virtual_stages"])
        layout["pipeline_schedule"] = "interleaved"
    elif facts.says(row, "interleaved"):
        layout |= {"virtual_stages": 2, "pipeline_schedule": "interleaved"}
    return {**layout, **documented(row).schedule}


def _micro_batch(row: MeasuredRow, layout: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the sequences of a micro-batch, and the micro-batches of a step."""
    micro = row.batch.get("micro_batch_size")
    data = layout.get("data", 1)
    total = sequences_of_step(row)
    steps = facts.micro_batches(row) or row.batch.get("gradient_accumulation_steps")
    if micro is None:
        if total is None:
            raise SkippedRowError(SkipReason.BATCH_UNKNOWN)
        # Pipelines use the smallest micro-batches, whose number keeps stages busy.
        micro = 1 if layout.get("pipeline", 1) > 1 else max(1, total // (data * (steps or 1)))
    micro = max(1, int(micro))
    known = facts.framework(row)
    if known and known.splits_local_batch and layout.get("pipeline", 1) > 1:
        return max(1, micro // layout["pipeline"]), layout["pipeline"]
    if steps is None and total is not None:
        steps = max(1, int(total // (micro * data)))
    return micro, int(steps or layout.get("pipeline", 1))


def _batch(row: MeasuredRow, layout: Mapping[str, Any]) -> dict[str, int]:
    """Returns the sequences of a step. If the service chooses the layout, it divides them as well."""
    if layout:
        micro, steps = _micro_batch(row, layout)
        return {"micro_batch_size": micro, "gradient_accumulation_steps": steps}
    sequences = sequences_of_step(row)
    if sequences is None:
        raise SkippedRowError(SkipReason.BATCH_UNKNOWN)
    return {"global_batch_size": sequences}


def _recomputations(row: MeasuredRow) -> list[str]:
    if row.recomputation in ("none", "selective", "full"):
        return [row.recomputation]
    known, said = facts.framework(row), recipes.get_recomputation(row) or documented(row).recomputation
    if said:
        return [said]
    likeliest = known.recomputation if known else "none"
    return sorted(("none", "selective", "full"), key=lambda strategy: strategy != likeliest)


def _training_precision(row: MeasuredRow) -> str:
    known = facts.framework(row)
    text = row.text["precision"].lower()
    compute = row.precision.get("compute") or ("fp16" if "fp16" in text else "bf16")
    pure = "pure" in text or "-true" in text or (known is not None and known.pure and "amp" not in text)
    if compute == "bf16" and pure:
        return "pure_bf16"
    return _FP8.get(compute, compute)


_FP8 = {"fp8": "fp8_delayed", "mxfp8": "mxfp8", "fp4": "nvfp4", "nvfp4": "nvfp4"}
"""Recipes of the formats that rows name. FP8 without further words scales a tensor at a time."""


def _optimizer(row: MeasuredRow) -> str | None:
    if facts.says(row, "paged"):
        return "paged_adamw_8bit"
    if facts.is_one_device_recipe(row):
        return "adam_8bit"
    return "adam_8bit" if facts.says(row, "8-bit optimizer", "8bit optimizer") else None


def _adaptation(row: MeasuredRow) -> dict[str, Any]:
    """Returns the trained parameters in the terms of the question.

    LLaMA-Adapter puts ten virtual tokens before each layer's keys; its second version also trains norms, and
    a scale and a shift behind every matrix.
    """
    kind = row.adaptation or "full"
    known = facts.framework(row)
    packed = row.precision.get("weights") == "nf4"
    if kind == "full":
        return {"kind": kind}
    base = facts.packing(row) if packed else "plain"
    if kind in ("adapter", "adapter-v2"):
        name = "prefix" if kind == "adapter" else "scale"
        return {"kind": name, "virtual_tokens": 10, "base_weights": base}
    given: dict[str, Any] = {"kind": "qlora" if kind == "lora" and packed else kind, "base_weights": base}
    if kind in ("lora", "qlora"):
        rank = facts.lora_rank(row) or (known.rank if known else None)
        if rank:
            given["rank"] = rank
        if known and known.adapted:
            given["target_modules"] = list(known.adapted)
    return given


def _habits(row: MeasuredRow) -> dict[str, Any]:
    """Returns the settings of the framework of a row that its source or the row states."""
    known = facts.framework(row)
    if known is None:
        return {}
    habits: dict[str, Any] = {"framework": {"name": known.name}, "attention": known.attention}
    loss = facts.loss(row)
    if loss:
        habits["loss"] = loss
    if facts.is_compiled(row):
        habits["fusion"] = "compiled"
    capacity = facts.get_expert_capacity(row)
    if capacity:
        habits["expert_capacity_factor"] = capacity
    graphs = facts.get_cuda_graphs(row)
    if graphs:
        habits["cuda_graphs"] = graphs
    if facts.is_load_forced(row):
        habits["expert_balance"] = "forced"
    return habits


def training_workloads(row: MeasuredRow, layout: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the workloads of a row, the likeliest first."""
    length = row.length.get("sequence_length")
    if METRICS[row.metric].operation is MeasuredOperation.THROUGHPUT:
        # Memory depends on the longest sample, time on all samples.
        length = facts.mean_tokens(row) or length
    if not length:
        raise SkippedRowError(SkipReason.LENGTHS_UNKNOWN)
    workload: dict[str, Any] = {
        "kind": "training",
        "sequence_length": int(length),
        **_batch(row, layout),
        "precision": _training_precision(row),
        "adaptation": _adaptation(row),
        **_habits(row),
    }
    if METRICS[row.metric].unit == "device*s":
        workload["total_tokens"] = _total_tokens(row)
    optimizer = _optimizer(row)
    if optimizer:
        workload["optimizer"] = optimizer
    if facts.is_one_device_recipe(row):
        workload["optimizer_in_backward"] = True
    if facts.says(row, "cpu offload"):
        workload["framework"] = {"name": "deepspeed"}
        workload["offload"] = {"optimizer": "cpu", "parameters": "cpu"}
    in_memory = METRICS[row.metric].operation is MeasuredOperation.MEMORY
    if in_memory and facts.may_offload_activations(row):
        yield workload | {"recomputation": {"strategy": "full"}, "offload": {"activations": "cpu"}}
    for strategy in _recomputations(row):
        yield workload | {"recomputation": {"strategy": strategy}}
