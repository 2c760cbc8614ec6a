"""Estimates of measured rows, and their errors."""

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import MISSING, ValidationError

from accuracy import facts, mlperf
from accuracy.asking.questions import Question, questions
from accuracy.asking.skips import SkippedRowError, SkipReason
from accuracy.folds import fold_of, group_of
from accuracy.metrics import (
    METRICS,
    EstimatedFigure,
    FigureNotAnswered,
    MeasuredMetric,
    MetricCase,
    MetricFamily,
    error_of,
)
from accuracy.rows import MeasuredRow, by_run, printed_half_unit
from service.evidence.measured import SHAPES, MeasuredOperation
from service.planning.errors import PlanningError
from service.planning.hardware.distance import EvidenceSystem
from service.planning.notes import AnswerNotes
from service.planning.quantity import IntervalFactors
from service.resolve.catalog import CatalogView
from service.resolve.hardware import resolve_cluster
from service.resolve.model import resolve_model
from service.resolve.software import get_software_name, resolve_system
from service.schemas.estimates import MemoryEstimateRequest, ThroughputEstimateRequest
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput

Estimators = Mapping[str, Callable[[Any, CatalogView], Mapping[str, Any]]]
"""Estimators of the service by operation. They are passed in, since this package does not import their
room.
"""

_WANTED: Mapping[MeasuredOperation, Mapping[str, bool]] = {
    MeasuredOperation.MEMORY: {},
    MeasuredOperation.THROUGHPUT: {"explain": False},
}
"""Rows are compared with figures, so advice, which needs further estimates, is left out."""

_REFUSALS = {
    "PARALLELISM_MISMATCH": SkipReason.LAYOUT_UNKNOWN,
    "BATCH_MISMATCH": SkipReason.BATCH_UNKNOWN,
    "BATCH_REQUIRED": SkipReason.BATCH_UNKNOWN,
    "PEAK_RATE_UNKNOWN": SkipReason.ACCELERATOR_UNKNOWN,
    "UNKNOWN_REFERENCE": SkipReason.ACCELERATOR_UNKNOWN,
    "CAPACITY_UNKNOWN": SkipReason.ACCELERATOR_UNKNOWN,
    "BANDWIDTH_UNKNOWN": SkipReason.ACCELERATOR_UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """A row with its estimate, or the reason why it has none."""

    row: MeasuredRow
    figure: EstimatedFigure | None
    error: float = math.nan
    skipped: SkipReason | None = None
    detail: str = ""
    basis: str = ""
    """Evidence that the answer names for its total."""
    chance: float | None = None
    """Probability of fitting in the answer."""
    software: str = ""
    """Framework or engine of the question."""
    utilization: float | None = None
    """Hardware FLOPs utilization of the estimate of a training run."""
    all_at_once: bool = False
    """True if all requests of a served run are present from the start."""
    ways: tuple[float, float] | None = None
    """Least and largest value over the likely questions, for a figure without an interval of its own."""

    @property
    def is_eligible(self) -> bool:
        """True if the file lists no missing fact that the metric needs."""
        metric = METRICS.get(self.row.metric)
        return metric is not None and not (metric.needs & self.row.missing)

    @property
    def is_covered(self) -> bool:
        """True if the interval covers the measured value, within the printed precision of the source."""
        half = printed_half_unit(self.row)
        figure, value = self.figure, self.row.value
        return figure is not None and figure.low <= value + half and value - half <= figure.high

    @property
    def width(self) -> float | None:
        """High divided by low, if both are above zero."""
        if self.figure is None or self.figure.low <= 0.0:
            return None
        return self.figure.high / self.figure.low


class AskedRow(NamedTuple):
    """A row with its parsed questions, which do not depend on any constant."""

    row: MeasuredRow
    run: Mapping[str, MeasuredRow]
    shapes: tuple[MemoryEstimateRequest | ThroughputEstimateRequest, ...]
    skipped: SkipReason | None = None
    detail: str = ""


_EstimateRequest = MemoryEstimateRequest | ThroughputEstimateRequest


def _shape(
    question: Question, metric: MeasuredMetric, known: dict[tuple[MeasuredOperation, str], _EstimateRequest]
) -> _EstimateRequest:
    """Returns the parsed question. Rows of the same run share theirs."""
    text = json.dumps({**question, **_WANTED[metric.operation]})
    shape = known.get((metric.operation, text))
    if shape is not None:
        return shape
    try:
        shape = SHAPES[metric.operation].model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        pointer = "/".join(str(part) for part in first["loc"])
        raise SkippedRowError(SkipReason.NOT_MODELLED_YET, f"{pointer}: {first['msg']}") from None
    known[metric.operation, text] = shape
    return shape


def ask(rows: Sequence[MeasuredRow], catalog: CatalogView) -> list[AskedRow]:
    """Returns every row with its questions, or the reason why there are none."""
    runs = by_run(rows)
    asked = []
    known: dict[tuple[MeasuredOperation, str], _EstimateRequest] = {}
    for row in rows:
        run = runs[row.run_id]
        try:
            shapes = tuple(
                _shape(question, METRICS[row.metric], known) for question in questions(row, catalog, run)
            )
            asked.append(AskedRow(row, run, shapes))
        except SkippedRowError as skipped:
            asked.append(AskedRow(row, run, (), skipped.reason, skipped.detail))
    return asked


def envelope(figures: Sequence[EstimatedFigure]) -> EstimatedFigure:
    """Returns the likeliest value, between the lowest low and the highest high of all alternatives."""
    return EstimatedFigure(
        figures[0].value, min(figure.low for figure in figures), max(figure.high for figure in figures)
    )


def _chance(figures: Sequence[EstimatedFigure]) -> EstimatedFigure:
    """Returns the mean probability over alternatives."""
    values = [figure.value for figure in figures]
    return EstimatedFigure(statistics.fmean(values), min(values), max(values))


def _read(metric: MeasuredMetric, answer: Mapping[str, Any], case: MetricCase) -> EstimatedFigure:
    try:
        return metric.read(answer, case)
    except FigureNotAnswered as missing:
        raise SkippedRowError(_REFUSALS.get(missing.gap, SkipReason.NOT_MODELLED_YET), missing.gap) from None


def _scale(row: MeasuredRow, answer: Mapping[str, Any]) -> float | None:
    printed = facts.device_bytes(row)
    return float(printed) if printed else answer.get("capacity_bytes")


def _basis(answer: Mapping[str, Any]) -> str:
    total = answer.get("per_device", {}).get("total_bytes") or answer.get("tokens_per_second")
    return str(total["basis"]) if total else ""


def _widened(
    figure: EstimatedFigure, metric: MeasuredMetric, spread: IntervalFactors | None
) -> EstimatedFigure:
    """Returns a figure without an interval of its own, with the spread of rows outside of the fit."""
    if spread is None:
        return figure
    value, low, high = figure
    if metric.signed:
        return EstimatedFigure(value, min(value, low + spread.low), max(value, high + spread.high))
    return EstimatedFigure(value, min(value, low * spread.low), max(value, high * spread.high))


def served_system(shape: _EstimateRequest, catalog: CatalogView) -> tuple[EvidenceSystem, int | None] | None:
    """Returns engine, accelerator and parameters of a serving question, or None for training."""
    if not isinstance(shape.workload, InferenceWorkloadInput) or shape.cluster is MISSING:
        return None
    notes = AnswerNotes()
    accelerator = resolve_cluster(shape.cluster, catalog, notes).accelerator
    count = resolve_model(shape.model, catalog, notes).profile.parameter_count
    return resolve_system(shape.workload, accelerator), count


def _all_at_once(shape: _EstimateRequest) -> bool:
    workload = shape.workload
    if not isinstance(workload, InferenceWorkloadInput) or workload.horizon is MISSING:
        return False
    total, together = workload.horizon.total_requests, workload.concurrency
    return total is not MISSING and together is not MISSING and total <= together


def _level(shape: _EstimateRequest, catalog: CatalogView) -> str:
    """Returns the level of evidence for the system of a serving question."""
    served = served_system(shape, catalog)
    return catalog.curves.serving_evidence.resolve_level(*served) if served else ""


class _FigureEstimate(NamedTuple):
    """Figure of one question, and its whole answer."""

    figure: EstimatedFigure
    answer: Mapping[str, Any]


def _estimates(
    asked: AskedRow, catalog: CatalogView, estimators: Estimators
) -> tuple[list[_FigureEstimate], list[SkippedRowError]]:
    """Returns the estimates of a row's questions, and the reasons of those without one."""
    metric = METRICS[asked.row.metric]
    estimates: list[_FigureEstimate] = []
    refused: list[SkippedRowError] = []
    for shape in asked.shapes:
        try:
            answer = estimators[metric.operation](shape, catalog)
            estimates.append(_FigureEstimate(_read(metric, answer, MetricCase(shape, asked.run)), answer))
        except SkippedRowError as skipped:
            refused.append(skipped)
        except PlanningError as error:
            reason = _REFUSALS.get(error.code, SkipReason.NOT_MODELLED_YET)
            refused.append(SkippedRowError(reason, f"{error.code} {error.pointer}: {error.detail}"))
        except ArithmeticError as error:
            refused.append(SkippedRowError(SkipReason.NOT_MODELLED_YET, f"figures out of range: {error}"))
    return estimates, refused


_IMPOSSIBLE = 0.01


_TUNED = 0.5


def likeliest_first(asked: AskedRow, catalog: CatalogView, estimators: Estimators) -> AskedRow:
    """Returns a training run without stated recomputation, with its likeliest question first.

    A submission under a limit of latency has the most requests that keep to it. A measured run was possible
    and tuned: nothing is recomputed if the device holds all activations, or would with less than half of the
    blocks recomputed; otherwise all blocks are recomputed.
    """
    limit = mlperf.get_token_seconds(asked.row)
    if limit is not None:
        return asked._replace(shapes=(_find_within(asked.shapes, limit, catalog, estimators),))
    if (
        asked.row.recomputation != "unknown"
        or METRICS[asked.row.metric].operation is MeasuredOperation.MEMORY
    ):
        return asked
    ways = {_recomputed(shape): shape for shape in reversed(asked.shapes)}
    needed, usable = {}, None
    for name in ("none", "full"):
        if name not in ways:
            return asked
        shape = MemoryEstimateRequest.model_validate(ways[name].model_dump(include=set(_MEMORY_MEMBERS)))
        try:
            answer = estimators[MeasuredOperation.MEMORY](shape, catalog)
        except PlanningError:
            return asked
        needed[name] = answer["per_device"].get("total_bytes", {}).get("value")
        usable = answer.get("usable_bytes")
    if usable is None or None in needed.values():
        return asked
    fits = needed["none"] <= usable + _TUNED * (needed["none"] - needed["full"])
    first = ways["none" if fits else "full"]
    return asked._replace(shapes=(first, *(shape for shape in asked.shapes if shape is not first)))


def _find_within(
    shapes: Sequence[_EstimateRequest], limit: float, catalog: CatalogView, estimators: Estimators
) -> _EstimateRequest:
    """Returns the first question whose time per output token is within a limit, or the last."""
    for shape in shapes:
        try:
            answer = estimators[MeasuredOperation.THROUGHPUT](shape, catalog)
        except PlanningError:
            continue
        if answer["time_per_output_token_seconds"]["value"] <= limit:
            return shape
    return shapes[-1]


def _recomputed(shape: _EstimateRequest) -> str:
    workload = shape.workload
    if not isinstance(workload, TrainingWorkloadInput) or workload.recomputation is MISSING:
        return ""
    return workload.recomputation.strategy.value


_MEMORY_MEMBERS = frozenset({"model", "workload", "cluster", "parallelism"})


def _that_ran(estimates: list[_FigureEstimate], metric: MeasuredMetric) -> list[_FigureEstimate]:
    """Returns the estimates that fit the device, since the measured run did, or all if none fits."""
    if metric.family is not MetricFamily.MEMORY or metric.unit == "bool":
        return estimates
    ran = [one for one in estimates if one.answer.get("fit_probability", 1.0) > _IMPOSSIBLE]
    return ran or estimates


def score_row(asked: AskedRow, catalog: CatalogView, estimators: Estimators) -> ScoredRow:
    """Estimates and compares one row."""
    row = asked.row
    if asked.skipped:
        return ScoredRow(row, None, skipped=asked.skipped, detail=asked.detail)
    metric = METRICS[row.metric]
    asked = likeliest_first(asked, catalog, estimators)
    estimates, refused = _estimates(asked, catalog, estimators)
    if not estimates:
        return ScoredRow(row, None, skipped=refused[0].reason, detail=refused[0].detail)
    estimates = _that_ran(estimates, metric)
    answer = estimates[0].answer
    figures = [one.figure for one in estimates]
    figure = _chance(figures) if metric.unit == "bool" else envelope(figures)
    serving = metric.family is MetricFamily.SERVING
    basis = _level(asked.shapes[0], catalog) if serving else _basis(answer)
    ways = (figure.low, figure.high) if metric.plain else None
    if serving:
        ways = (min(one.value for one in figures), max(one.value for one in figures))
    if metric.plain:
        figure = _widened(figure, metric, catalog.curves.residuals.get((row.metric, basis)))
    return ScoredRow(
        row,
        figure,
        error_of(metric, figure.value, row.value, _scale(row, answer)),
        basis=basis,
        chance=answer.get("fit_probability"),
        utilization=answer.get("hardware_flops_utilization", {}).get("value"),
        software=get_software_name(asked.shapes[0].workload),
        all_at_once=_all_at_once(asked.shapes[0]),
        ways=ways,
    )


def score(rows: Sequence[MeasuredRow], catalog: CatalogView, estimators: Estimators) -> list[ScoredRow]:
    """Estimates every row through the service's own questions, and compares it."""
    return [score_row(asked, catalog, estimators) for asked in ask(rows, catalog)]


def score_held_out(
    rows: Sequence[MeasuredRow],
    catalogs: Sequence[CatalogView],
    split: Mapping[str, int],
    estimators: Estimators,
) -> list[ScoredRow]:
    """Scores every row under the catalog of the fold whose constants were fitted without the row's group."""
    return [
        score_row(asked, catalogs[fold_of(group_of(asked.row), split)], estimators)
        for asked in ask(rows, catalogs[0])
    ]


class ErrorStatistics(NamedTuple):
    """Errors of the estimates of some rows; None without rows."""

    rows: int
    skipped: int
    median_error: float | None
    p90_error: float | None
    bias: float | None
    coverage: float | None
    median_width: float | None


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value below which ``share`` of the values lie, interpolated linearly."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


_P90 = 0.9


def statistics_of(scored: Iterable[ScoredRow]) -> ErrorStatistics:
    """Returns error, bias, coverage and width over rows, without rows of metrics that no answer has."""
    counted = [one for one in scored if one.skipped is not SkipReason.METRIC_NOT_ANSWERED]
    estimated = [one for one in counted if one.figure is not None]
    errors = [one.error for one in estimated if math.isfinite(one.error)]
    sized = [abs(error) for error in errors]
    intervals = [one for one in estimated if METRICS[one.row.metric].unit != "bool"]
    widths = [one.width for one in intervals if one.width is not None]
    return ErrorStatistics(
        rows=len(estimated),
        skipped=len(counted) - len(estimated),
        median_error=statistics.median(sized) if sized else None,
        p90_error=percentile(sized, _P90) if sized else None,
        bias=statistics.median(errors) if errors else None,
        coverage=statistics.fmean(one.is_covered for one in intervals) if intervals else None,
        median_width=statistics.median(widths) if widths else None,
    )


def reasons(scored: Iterable[ScoredRow]) -> Counter[SkipReason]:
    """Returns the numbers of skipped rows by reason."""
    return Counter(one.skipped for one in scored if one.skipped is not None)


LEAST_ESTIMATED = 0.8
"""Share of the eligible rows of a source that must be estimated."""


def is_targeted(row: MeasuredRow) -> bool:
    """Returns true if the row's metric has a target."""
    metric = METRICS.get(row.metric)
    return metric is not None and metric.target is not None


def short_sources(scored: Iterable[ScoredRow]) -> dict[str, float]:
    """Returns sources with a targeted metric and too small a share of estimated eligible rows."""
    eligible: dict[str, list[bool]] = {}
    for one in scored:
        if is_targeted(one.row) and one.is_eligible:
            eligible.setdefault(one.row.source, []).append(one.figure is not None)
    shares = {source: statistics.fmean(done) for source, done in eligible.items()}
    return {source: share for source, share in shares.items() if share < LEAST_ESTIMATED}
