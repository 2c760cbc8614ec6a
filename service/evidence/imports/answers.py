"""Runs of a file as measured answers: each figure of an estimate with the question that it answers."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from service.evidence.imports.context import EstimateQuestion
from service.evidence.measured import UNSEEN_COMPONENTS, MemoryView
from service.formats.measurements import engine_logs, serving, training_logs
from service.formats.measurements.readings import FigureReading, MeasuredFileRun, select_worst
from service.formats.offers.listed import RowError

INFERENCE, TRAINING = "inference", "training"
MIDDLE: Final = ("mean", "p50")
_OF_TRAINING: Final = frozenset(
    {
        training_logs.STEP,
        training_logs.RATE,
        training_logs.SAMPLES,
        training_logs.RESERVED,
        training_logs.ALLOCATED,
    }
)


class MeasuredAnswerFigure(NamedTuple):
    """One measured figure of an answer.

    ``measured`` is in the unit of the answer's figure. ``unseen`` are components of a memory estimate that
    the reading does not count and that are added to it.
    """

    pointer: str
    family: str
    measured: float
    operation: str = "throughput"
    unseen: frozenset[str] = frozenset()


def resolve_kind(run: MeasuredFileRun) -> str:
    """Returns the kind of workload that a run measured."""
    return TRAINING if any(one.metric in _OF_TRAINING for one in run.readings) else INFERENCE


def list_measured(run: MeasuredFileRun, question: EstimateQuestion) -> Iterator[MeasuredAnswerFigure]:
    """Yields the figures of a run that an estimate answers. Raises RowError if there is none."""
    found = [
        *_list_serving_figures(run, question),
        *_list_training_figures(run, question),
        *_list_startup_figures(run, question),
    ]
    if not found:
        raise RowError("NO_FIGURE", "the run contains no figure that an estimate has")
    yield from found


def _compute_mean_tokens(length: Any) -> float:  # noqa: ANN401
    if isinstance(length, int):
        return float(length)
    match length["distribution"]:
        case "fixed":
            return float(length["tokens"])
        case "lognormal":
            return float(length["mean_tokens"])
    weighted = zip(length["tokens"], length["weights"], strict=True)
    return float(sum(tokens * weight for tokens, weight in weighted) / sum(length["weights"]))


def _list_serving_figures(run: MeasuredFileRun, question: EstimateQuestion) -> Iterator[MeasuredAnswerFigure]:
    for metric, family in ((serving.FIRST_TOKEN, "serving_ttft"), (serving.OUTPUT_TOKEN, "serving_tpot")):
        reading = run.find_reading(metric, *MIDDLE)
        if reading:
            median = "/median" if reading.statistic == "p50" else ""
            yield MeasuredAnswerFigure(reading.pointer, family + median, reading.value)
    if question["workload"]["kind"] == INFERENCE and "request_rate_per_second" not in question["workload"]:
        # At a given arrival rate the throughput is that rate.
        yield from _list_output_rates(run, question["workload"])
    for metric, family in (
        (serving.POWER, "serving_power"),
        ("energy_per_output_token_joules", "serving_energy"),
    ):
        reading = run.find_reading(metric, *MIDDLE, "single")
        if reading:
            yield MeasuredAnswerFigure(reading.pointer, family, reading.value)


def _list_output_rates(run: MeasuredFileRun, workload: Mapping[str, Any]) -> Iterator[MeasuredAnswerFigure]:
    """Yields output tokens per second of the whole cluster, from the first rate that the file has."""
    inputs, outputs = (_compute_mean_tokens(workload[f"{side}_tokens"]) for side in ("input", "output"))
    for metric, share in (
        (serving.OUTPUT, 1.0),
        (serving.TOTAL, outputs / (inputs + outputs)),
        (serving.REQUESTS, outputs),
    ):
        reading = run.find_reading(metric, *MIDDLE)
        if reading:
            yield MeasuredAnswerFigure(reading.pointer, "serving_throughput", reading.value * share)
            return
    batch = run.find_reading(serving.REQUEST, *MIDDLE)
    if batch and run.facts.get("scenario") == "batch":
        rate = workload["concurrency"] * outputs / batch.value
        yield MeasuredAnswerFigure(batch.pointer, "serving_throughput", rate)


def _list_training_figures(
    run: MeasuredFileRun, question: EstimateQuestion
) -> Iterator[MeasuredAnswerFigure]:
    workload, devices = question["workload"], question["cluster"]["accelerator_count"]
    if workload["kind"] != TRAINING:
        return
    batch = float(workload["global_batch_size"])
    tokens = batch * workload["sequence_length"]
    for metric, numerator in (
        (training_logs.STEP, None),
        (training_logs.RATE, tokens / devices),
        (training_logs.SAMPLES, batch),
    ):
        reading = run.find_reading(metric, "p50", "mean")
        if reading:
            seconds = reading.value if numerator is None else numerator / reading.value
            yield MeasuredAnswerFigure(reading.pointer, "training_step", seconds)
            break
    for metric, view in (
        (training_logs.RESERVED, MemoryView.RESERVED),
        (training_logs.ALLOCATED, MemoryView.ALLOCATED),
    ):
        reading = run.find_reading(metric, "max", "mean")
        if reading:
            unseen = UNSEEN_COMPONENTS[view]
            yield MeasuredAnswerFigure(reading.pointer, "training_memory", reading.value, "memory", unseen)
            return


def _list_startup_figures(run: MeasuredFileRun, question: EstimateQuestion) -> Iterator[MeasuredAnswerFigure]:
    """Yields the memory of a started engine, with the cache that the request's sequences take."""
    if question["workload"]["kind"] != INFERENCE or not run.find_reading(engine_logs.WEIGHTS):
        return
    parts = {
        metric: _find_binding_reading(run, metric, largest=metric != engine_logs.CACHE)
        for metric in (
            *(engine_logs.WEIGHTS, engine_logs.ACTIVATIONS, engine_logs.OUTSIDE),
            *(engine_logs.CACHE, engine_logs.TOKENS),
        )
    }
    graphs = _find_binding_reading(run, engine_logs.GRAPHS, largest=True)
    without = not question["workload"]["engine"].get("cuda_graphs", True)
    weights = parts[engine_logs.WEIGHTS]
    if weights is None or any(part is None for part in parts.values()) or (graphs is None and not without):
        detail = (
            "the log lacks one of weights, activations, memory outside of PyTorch, graphs, cache and tokens"
        )
        raise RowError("LOG_INCOMPLETE", detail)
    sizes = {metric: part.value for metric, part in parts.items() if part is not None}
    each = sizes.pop(engine_logs.CACHE) / sizes.pop(engine_logs.TOKENS)
    workload = question["workload"]
    held = sum(_compute_mean_tokens(workload[f"{side}_tokens"]) for side in ("input", "output"))
    held *= workload.get("concurrency", 1)
    total = sum(sizes.values()) + each * held + (graphs.value if graphs else 0.0)
    yield MeasuredAnswerFigure(weights.pointer, "inference_memory", total, "memory")


def _find_binding_reading(run: MeasuredFileRun, metric: str, *, largest: bool) -> FigureReading | None:
    """Returns the reading of the rank that binds. Raises RowError if one rank states two values."""
    known = [one for one in run.readings if one.metric == metric]
    by_rank: dict[object, set[float]] = {}
    for one in known:
        by_rank.setdefault(one.of.get("rank"), set()).add(one.value)
    if any(len(values) > 1 for values in by_rank.values()):
        raise RowError("SEVERAL_RUNS", "the log contains several starts of the engine; split it")
    return select_worst(known, largest=largest)


_FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "serving_ttft": ("time_to_first_token_seconds", "value"),
    "serving_ttft/median": ("time_to_first_token_seconds_percentiles", "p50"),
    "serving_tpot": ("time_per_output_token_seconds", "value"),
    "serving_tpot/median": ("time_per_output_token_seconds_percentiles", "p50"),
    "serving_throughput": ("output_tokens_per_second", "value"),
    "serving_power": ("power_per_device_watts", "value"),
    "serving_energy": ("energy_per_output_token_joules", "value"),
    "training_step": ("step_seconds", "value"),
    "training_memory": ("per_device", "total_bytes", "value"),
    "inference_memory": ("per_device", "total_bytes", "value"),
}


def get_estimated_figure(one: MeasuredAnswerFigure, answer: Mapping[str, Any]) -> float | None:
    """Returns the figure of an estimate that corresponds to a measured one; None if the answer lacks it."""
    place: Any = answer
    for name in _FIGURES[one.family]:
        place = place.get(name) if isinstance(place, Mapping) else None
    return None if place is None else float(place)


def sum_unseen_bytes(one: MeasuredAnswerFigure, answer: Mapping[str, Any]) -> float:
    """Returns the bytes of a memory estimate in components that the reading does not count."""
    if not one.unseen:
        return 0.0
    parts = answer["per_device"]["components"]
    return float(sum(part["bytes"] for part in parts if part["name"] in one.unseen))
