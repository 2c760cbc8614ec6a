"""Registry of metrics: the question for each, the place of its figure in the answer, and its target."""

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import MISSING

from accuracy.facts import cache_rounding, leaves_passing_out, view
from accuracy.rows import MeasuredRow, printed_half_unit, stated_count
from service.evidence.measured import UNSEEN_COMPONENTS, MeasuredOperation
from service.planning.software.engines import EngineName, is_vllm_v0, resolve_rules

EstimateAnswer = Mapping[str, Any]


class MetricFamily(StrEnum):
    """Group of metrics in a report."""

    MEMORY = "memory"
    THROUGHPUT = "throughput"
    SERVING = "serving"


class EstimatedFigure(NamedTuple):
    """An estimated figure with its 80% interval."""

    value: float
    low: float
    high: float


class AccuracyTarget(NamedTuple):
    """Largest median and 90th percentile of the relative error; None without a target."""

    median: float
    p90: float | None = None


class FigureNotAnswered(Exception):
    """The answer lacks the figure. ``gap`` is the code of the reason."""

    def __init__(self, gap: str) -> None:
        self.gap = gap
        super().__init__(gap)


class MetricCase(NamedTuple):
    """Context of an answer: its question, and the rows of the same run by metric."""

    question: Any
    run: Mapping[str, MeasuredRow]


class MeasuredMetric(NamedTuple):
    """A metric of the measured rows.

    ``needs`` are the hints of the file that rule an estimate out; other hints only widen it. ``whole`` is
    true if the figure covers the whole system, so that the question names one device. ``signed`` figures may
    be 0 or less: their error is a share of the device's memory.
    """

    unit: str
    family: MetricFamily
    operation: MeasuredOperation
    read: Callable[[EstimateAnswer, MetricCase], EstimatedFigure]
    needs: frozenset[str]
    target: AccuracyTarget | None = None
    whole: bool = False
    signed: bool = False
    plain: bool = False
    """True if the answer gives no interval for the figure."""
    spread: str | None = None
    """Kind of answer that determines the interval of its rows; None for the metric itself."""

    @property
    def counts_time(self) -> bool:
        """True if the figure grows with the time of a step instead of its rate."""
        return self.unit in ("s", "device*s")


def _member(answer: EstimateAnswer, name: str) -> EstimatedFigure:
    figure = answer.get(name)
    if figure is None:
        raise FigureNotAnswered(_gap(answer))
    return EstimatedFigure(figure["value"], figure["low"], figure["high"])


def _gap(answer: EstimateAnswer) -> str:
    return str(answer["gaps"][0]["code"]) if answer["gaps"] else "ABSENT"


def _quantity(name: str) -> Callable[[EstimateAnswer, MetricCase], EstimatedFigure]:
    return lambda answer, _case: _member(answer, name)


def _devices(answer: EstimateAnswer) -> float:
    layout = answer["parallelism"]
    return float(layout["tensor"] * layout["pipeline"] * layout["data"] * layout["context"])


EXACT_COMPONENTS = frozenset({"weights", "kv_cache", "state"})
ACTIVATION_COMPONENTS = frozenset({"workspace", "activations", "logits", "sampler"})
GRAPH_COMPONENTS = frozenset({"cuda_graphs"})
OUTSIDE_COMPONENTS = frozenset({"runtime", "communication_buffers"})
"""Components outside of PyTorch's allocator. An engine measures after the context of the device is
created.
"""


def _components(answer: EstimateAnswer) -> Mapping[str, float]:
    return {part["name"]: float(part["bytes"]) for part in answer["per_device"]["components"]}


def _total(answer: EstimateAnswer, _case: MetricCase | None = None) -> EstimatedFigure:
    return _member({**answer["per_device"], "gaps": answer["gaps"]}, "total_bytes")


def _allocated(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the bytes of all devices of a system, as PyTorch's allocator counts them.

    If the source adds the peaks of devices that work in turn, each has a workspace for a prompt.
    """
    row = next(iter(case.run.values()))
    rooms = 0 if leaves_passing_out(row) else int(row.text["n_gpus"] or 1)
    parts = _components(answer)
    beside = (rooms - 1) * parts["workspace"] - parts.get("device_context", 0.0)
    beside += cache_rounding(row) * parts["kv_cache"]
    return EstimatedFigure(*(end + beside for end in _total(answer)))


def _graph_change(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the change of free memory by the capture of graphs, which releases workspace (V1)."""
    graphs, change = _sum(answer, GRAPH_COMPONENTS), 0.0
    version = case.question.workload.engine.version
    if not is_vllm_v0(None if version is MISSING else version):
        change = _components(answer)["workspace"]
    return EstimatedFigure(*(3 * [graphs - change]))


GRAPH_CHANGE = _graph_change


def _peak(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the peak as the source of the row defines it, under the interval of the total."""
    total = _total(answer)
    unseen = UNSEEN_COMPONENTS[view(case.run["peak_memory_per_gpu"])]
    outside = sum(size for name, size in _components(answer).items() if name in unseen)
    share = 1.0 - outside / total.value
    return EstimatedFigure(*(end * share for end in total))


def _sum(answer: EstimateAnswer, names: frozenset[str]) -> float:
    parts = _components(answer)
    if not names & parts.keys():
        raise FigureNotAnswered("COMPONENT_ABSENT")
    return sum(size for name, size in parts.items() if name in names)


def _part(names: frozenset[str]) -> Callable[[EstimateAnswer, MetricCase], EstimatedFigure]:
    """Returns a reader of some components, which answers give without an interval."""

    def read(answer: EstimateAnswer, _case: MetricCase) -> EstimatedFigure:
        size = _sum(answer, names)
        return EstimatedFigure(size, size, size)

    return read


def _stored(answer: EstimateAnswer, _case: MetricCase) -> EstimatedFigure:
    """Returns the bytes of the weights in their files."""
    size = float(answer["stored_weight_bytes"])
    return EstimatedFigure(size, size, size)


def _cache_room(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the memory for the KV cache: the usable bytes less all other components."""
    if "usable_bytes" not in answer:
        raise FigureNotAnswered(_gap(answer))
    total, cache = _total(answer), _sum(answer, frozenset({"kv_cache"}))
    low, value, high = sorted(_given_bytes(answer, case) - end + cache for end in total)
    return EstimatedFigure(value, low, high)


def _given_bytes(answer: EstimateAnswer, case: MetricCase) -> float:
    """Returns the bytes that the engine may use. vLLM counts its share only, not memory outside of it."""
    workload = case.question.workload
    engine: Any = workload.engine
    if engine is MISSING or engine.name != EngineName.VLLM.value:
        return float(answer["usable_bytes"])
    rules = resolve_rules(EngineName.VLLM, None if engine.version is MISSING else engine.version)
    parts = _components(answer)
    outside = set(OUTSIDE_COMPONENTS if not rules.libraries_charged else ())
    outside |= set() if rules.graphs_charged else GRAPH_COMPONENTS
    outside |= set() if rules.context_charged else {"device_context"}
    fraction = rules.memory_fraction if workload.memory_fraction is MISSING else workload.memory_fraction
    return fraction * float(answer["capacity_bytes"]) + sum(parts.get(part, 0.0) for part in outside)


def _held_tokens(case: MetricCase) -> float:
    """Returns the tokens in the KV cache of the question. Rows are asked in multiples of every block size."""
    workload = case.question.workload
    return float(workload.concurrency * (workload.input_tokens + workload.output_tokens))


_COUNTED_ALIKE = 0.01


def _token_bytes(answer: EstimateAnswer, case: MetricCase) -> float:
    """Returns the bytes of one token on one device, as the engine counts tokens.

    If layers keep different lengths, an engine counts by the limit instead of by the tokens of a request.
    """
    replicas = float(answer["parallelism"]["data"])
    held = _sum(answer, frozenset({"kv_cache"})) / _held_tokens(case) * replicas
    most = answer["limits"].get("kv_cache_tokens", 0) / replicas
    room = _cache_room(answer, case).value if "usable_bytes" in answer else 0.0
    if most <= 0.0 or room <= 0.0 or abs(room / most / held - 1.0) < _COUNTED_ALIKE:
        return held
    return float(room / most)


def _cache_tokens(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the tokens of the cache, in the memory of the log or else in the estimated memory."""
    logged = case.run.get("kv_cache_memory_per_gpu")
    if logged is not None:
        half = printed_half_unit(logged)
        room = EstimatedFigure(logged.value, logged.value - half, logged.value + half)
    else:
        room = _cache_room(answer, case)
    per_token = _token_bytes(answer, case)
    return EstimatedFigure(*(max(0.0, end / per_token) for end in room))


def _bytes_per_token(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    size = _token_bytes(answer, case) * answer["parallelism"]["tensor"]
    return EstimatedFigure(size, size, size)


def _fits(answer: EstimateAnswer, _case: MetricCase) -> EstimatedFigure:
    chance = answer.get("fit_probability")
    if chance is None:
        if answer.get("fits") is False:
            return EstimatedFigure(0.0, 0.0, 0.0)
        raise FigureNotAnswered(_gap(answer))
    return EstimatedFigure(chance, chance, chance)


_MEMORY_TARGET = AccuracyTarget(0.05, 0.15)
_TRAINING_NEEDS = frozenset({"model_shape", "layout", "batch", "lengths"})
_PLACED = frozenset({"model_shape", "layout"})


def _memory(
    read: Callable[[EstimateAnswer, MetricCase], EstimatedFigure],
    *needs: str,
    unit: str = "bytes",
    target: AccuracyTarget | None = _MEMORY_TARGET,
    whole: bool = False,
    signed: bool = False,
    plain: bool = False,
) -> MeasuredMetric:
    wanted = frozenset({"model_shape", *needs})
    return MeasuredMetric(
        unit, MetricFamily.MEMORY, MeasuredOperation.MEMORY, read, wanted, target, whole, signed, plain
    )


_TRAINING_TARGET = AccuracyTarget(0.12, 0.35)
"""Target for rows that state layout, device and recomputation."""


_SPEED_NEEDS = frozenset({"model_shape", "accelerator", "layout", "batch", "lengths"})


def _trained(read: Callable[[EstimateAnswer, MetricCase], EstimatedFigure], unit: str) -> MeasuredMetric:
    return MeasuredMetric(
        unit,
        MetricFamily.THROUGHPUT,
        MeasuredOperation.THROUGHPUT,
        read,
        _SPEED_NEEDS,
        _TRAINING_TARGET,
        spread="training_step",
    )


SERVING_TARGETS: Mapping[str, AccuracyTarget] = {
    "serving_tpot": AccuracyTarget(0.12, 0.40),
    "serving_ttft": AccuracyTarget(0.25),
    "serving_throughput": AccuracyTarget(0.12, 0.40),
    "serving_power": AccuracyTarget(0.12),
    "serving_energy": AccuracyTarget(0.12),
}
"""Targets by kind of answer, for rows that state engine, model, precision, batch and device."""


SERVING_TIMES = frozenset({"serving_tpot", "serving_ttft", "serving_throughput"})
"""Kinds of answer that follow from the time of iterations."""


def _served(
    read: Callable[[EstimateAnswer, MetricCase], EstimatedFigure], unit: str, spread: str
) -> MeasuredMetric:
    return MeasuredMetric(
        unit,
        MetricFamily.SERVING,
        MeasuredOperation.THROUGHPUT,
        read,
        _SPEED_NEEDS,
        SERVING_TARGETS[spread],
        spread=spread,
    )


def _middle(name: str) -> Callable[[EstimateAnswer, MetricCase], EstimatedFigure]:
    """Returns a reader of the median of a figure, under the interval of its mean."""

    def read(answer: EstimateAnswer, _case: MetricCase) -> EstimatedFigure:
        mean = _member(answer, name)
        percentiles = answer.get(f"{name}_percentiles")
        return _scaled_by(mean, percentiles["p50"] / mean.value) if percentiles else mean

    return read


def _mean_tokens(length: Any) -> float:  # noqa: ANN401
    """Returns the mean of a length in a question: a number, or classes with weights."""
    if isinstance(length, int):
        return float(length)
    weighted = (tokens * weight for tokens, weight in zip(length.tokens, length.weights, strict=True))
    return float(sum(weighted) / sum(length.weights))


def _total_tokens(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the rate of tokens in prompts and answers."""
    workload = case.question.workload
    tokens = _mean_tokens(workload.input_tokens) + _mean_tokens(workload.output_tokens)
    return _scaled_by(_member(answer, "requests_per_second"), tokens)


def _prompt_tokens(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the tokens of one prompt divided by the time to its first token."""
    value, low, high = _member(answer, "time_to_first_token_seconds")
    tokens = case.question.workload.input_tokens
    return EstimatedFigure(tokens / value, tokens / high, tokens / low)


def _all_devices(name: str) -> Callable[[EstimateAnswer, MetricCase], EstimatedFigure]:
    return lambda answer, case: _scaled_by(_member(answer, name), case.question.cluster.accelerator_count)


def _scaled_by(figure: EstimatedFigure, factor: float) -> EstimatedFigure:
    return EstimatedFigure(*(end * factor for end in figure))


def _executed(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns FLOP/s with recomputation and unmasked attention.

    The older formula of Megatron-LM counted the matrices of blocks only: 96 B s l h^2 without the factor (1 +
    s / 6h + V / 16lh).
    """
    executed = _member(answer, "hardware_flops_per_second_per_device")
    row = case.run["achieved_tflops_per_gpu"]
    if "older formula" not in row.text.get("notes", ""):
        return executed
    hidden, length = float(row.text["hidden"]), float(row.text["seq_len"])
    vocabulary = stated_count(row.text["vocab"]) or 0
    # Where the row does not state the layers: 12 l h^2 + V h parameters.
    counted = ((row.parameter_count or 0) - vocabulary * hidden) / (12.0 * hidden * hidden)
    layers = float(row.text["layers"] or counted)
    whole = 1.0 + length / (6.0 * hidden) + vocabulary / (16.0 * layers * hidden)
    return _scaled_by(executed, 1.0 / whole)


def _thousand_micro_batches(answer: EstimateAnswer, case: MetricCase) -> EstimatedFigure:
    """Returns the time of a thousand iterations of LitGPT, which are micro-batches."""
    steps = case.question.workload.gradient_accumulation_steps
    return _scaled_by(_member(answer, "step_seconds"), 1000.0 / steps)


def _device_seconds(answer: EstimateAnswer, _case: MetricCase) -> EstimatedFigure:
    return _scaled_by(_member(answer, "duration_seconds"), _devices(answer))


METRICS: Mapping[str, MeasuredMetric] = {
    "peak_memory_per_gpu": _memory(_peak, "layout", "batch", "lengths"),
    "gpu_memory_total": _memory(_allocated, "batch", "lengths", whole=True),
    "weights_memory_per_gpu": _memory(_part(frozenset({"weights"})), "layout", plain=True),
    "weights_file_size": _memory(_stored, whole=True, plain=True),
    "activation_peak_per_gpu": _memory(_part(ACTIVATION_COMPONENTS), "layout", plain=True),
    "non_torch_memory_per_gpu": _memory(_part(OUTSIDE_COMPONENTS), "layout", signed=True, plain=True),
    "cuda_graph_memory_per_gpu": _memory(GRAPH_CHANGE, "layout", signed=True, plain=True),
    "kv_cache_memory_per_gpu": _memory(_cache_room, "layout", "accelerator"),
    "kv_cache_tokens": _memory(_cache_tokens, "layout", "accelerator", unit="tokens"),
    "kv_cache_blocks": _memory(_cache_tokens, "layout", "accelerator", unit="tokens"),
    "kv_bytes_per_token": _memory(_bytes_per_token, plain=True),
    "fits": _memory(_fits, "layout", "accelerator", "batch", "lengths", unit="bool"),
    "tokens_per_s_per_gpu": _trained(_quantity("tokens_per_second_per_device"), "tokens/s"),
    "tokens_per_s": _trained(_quantity("tokens_per_second"), "tokens/s"),
    "training_samples_per_s": _trained(_quantity("samples_per_second"), "samples/s"),
    "iteration_time": _trained(_quantity("step_seconds"), "s"),
    "mfu": _trained(_quantity("model_flops_utilization"), "fraction"),
    "hfu": _trained(_quantity("hardware_flops_utilization"), "fraction"),
    "achieved_tflops_per_gpu": _trained(_executed, "FLOP/s"),
    "model_tflops_per_gpu": _trained(_quantity("unmasked_flops_per_second_per_device"), "FLOP/s"),
    "percent_of_peak": _trained(_quantity("hardware_flops_utilization"), "fraction"),
    "time_per_1k_iterations": _trained(_thousand_micro_batches, "s"),
    "gpu_hours": _trained(_device_seconds, "device*s"),
    "output_tokens_per_s": _served(_quantity("output_tokens_per_second"), "tokens/s", "serving_throughput"),
    "output_tokens_per_s_per_gpu": _served(
        lambda answer, case: _scaled_by(
            _member(answer, "output_tokens_per_second"), 1.0 / case.question.cluster.accelerator_count
        ),
        "tokens/s",
        "serving_throughput",
    ),
    "total_tokens_per_s": _served(_total_tokens, "tokens/s", "serving_throughput"),
    "samples_per_s": _served(_quantity("requests_per_second"), "samples/s", "serving_throughput"),
    "prompt_tokens_per_s": _served(_prompt_tokens, "tokens/s", "serving_throughput"),
    "ttft": _served(_quantity("time_to_first_token_seconds"), "s", "serving_ttft"),
    "ttft_median": _served(_middle("time_to_first_token_seconds"), "s", "serving_ttft"),
    "tpot": _served(_quantity("time_per_output_token_seconds"), "s", "serving_tpot"),
    "tpot_median": _served(_middle("time_per_output_token_seconds"), "s", "serving_tpot"),
    "median_itl": _served(_middle("time_per_output_token_seconds"), "s", "serving_tpot"),
    "gpu_power_mean": _served(_all_devices("power_per_device_watts"), "W", "serving_power"),
    "energy_per_output_token": _served(
        _quantity("energy_per_output_token_joules"), "J/token", "serving_energy"
    ),
}
"""Metrics that the service answers, by their name in the measured rows."""

ONLY_MEASURED: Mapping[str, str] = {
    "days_for_300B_tokens": "s",
    "time_to_train": "s",
    "cost": "USD",
    "co2": "kg",
    "energy": "J",
    "cpu_memory": "bytes",
    "system_power_mean": "W",
}
"""Metrics of the rows that no answer has yet, with their unit."""

METRIC_UNITS: Mapping[str, str] = {**{name: metric.unit for name, metric in METRICS.items()}, **ONLY_MEASURED}
"""Unit of every known metric."""


def error_of(metric: MeasuredMetric, estimated: float, measured: float, scale: float | None) -> float:
    """Returns the signed relative error; for probabilities and figures around 0, the difference.

    A figure that may be 0 or less is compared as a share of ``scale``, the device's memory.
    """
    if metric.unit == "bool":
        return estimated - measured
    if metric.signed or measured <= 0.0:
        return (estimated - measured) / scale if scale else math.nan
    return estimated / measured - 1.0
