"""Fit of named constants of the reference set to measured rows.

A constant is an entry of the set that states a ``range`` and the ``metrics`` it serves, or one of the
sections of physical quantities, whose low and high are their plausible range. The fit minimises the sum of
absolute relative errors, which is robust to outliers, keeps every constant in its range and weighs groups of
rows by the root of their size. Estimates are nearly linear in such constants: the fit solves the linear model
and repeats it with derivatives at the solution.
"""

import json
import math
import multiprocessing
import os
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accuracy.folds import FOLDS, fold_of, group_of
from accuracy.metrics import METRICS, SERVING_TIMES, MetricFamily
from accuracy.scoring import (
    AskedRow,
    Estimators,
    ScoredRow,
    likeliest_first,
    score_row,
)
from accuracy.spreads import DIGITS, MeasuredRatio, is_of_serving, residuals, rounded
from service.evidence.service import parse_curves
from service.planning.hardware.curves import ReferenceCurves
from service.resolve.catalog import CatalogView
from service.resolve.software import get_software_name

Document = dict[str, Any]
Floats = NDArray[np.float64]
WithCurves = Callable[[ReferenceCurves], CatalogView]
"""Returns the catalog under another reference set."""

LINEARISATIONS: Final = 4
_SWEEPS, _REWEIGHTINGS = 200, 40
_STEP: Final = 0.02
"""Step of a constant for its derivatives, as a share of its range."""
_EDGE: Final = 2e-3
"""Distance of a constant from the ends of its range, as a share, so that whole bytes stay within an
interval.
"""
_FLOOR: Final = 0.01
"""Relative errors below it count as their square, since no row is measured better."""
_UNMOVED: Final = 1e-6
"""Relative change of an estimate below which a constant does not count as affecting it."""
_PULL: Final = 0.02
"""Weight of the prior of a constant: that of one row in fifty."""


class FitConstant(NamedTuple):
    """A named physical quantity of the reference set, with its path."""

    path: tuple[str | int, ...]
    prior: float
    low: float
    high: float
    metrics: frozenset[str]
    software: str | None = None
    """Framework of the constant, after a slash in the last name; None if it serves all."""
    besides: frozenset[str] = frozenset()
    """Software with a constant of its own in place of this one."""

    def serves(self, one: AskedRow) -> bool:
        """Returns true if the constant can affect the estimate of a row."""
        if one.row.metric not in self.metrics:
            return False
        if self.software is None and not self.besides:
            return True
        software = get_software_name(one.shapes[0].workload)
        return software not in self.besides if self.software is None else software == self.software

    @property
    def span(self) -> float:
        """Difference between the largest and the smallest value."""
        return self.high - self.low

    @property
    def name(self) -> str:
        """Name in reports."""
        return ".".join(map(str, self.path))


SECTIONS: Final[Mapping[str, frozenset[str]]] = {
    "training_overhead": frozenset({"peak_memory_per_gpu"}),
    "training_memory": frozenset({"peak_memory_per_gpu"}),
    "steps": frozenset(
        name for name, metric in METRICS.items() if metric.family is MetricFamily.THROUGHPUT and metric.target
    ),
    "serving_memory": frozenset(
        name for name, metric in METRICS.items() if metric.family is MetricFamily.MEMORY
    ),
    "serving": frozenset(name for name, metric in METRICS.items() if metric.spread in SERVING_TIMES),
}
"""Sections of physical quantities, and the metrics that they serve."""


OF_EXACT_FORMULA = "_factor"
"""Suffix of a factor of 1 whose low and high bound the error of an exact formula. It is not fitted."""


def constants_of(
    document: Any,  # noqa: ANN401
    path: tuple[str | int, ...] = (),
    metrics: frozenset[str] = frozenset(),
) -> Iterator[FitConstant]:
    """Yields every constant with a range, in the order of the document."""
    if isinstance(document, dict):
        served = frozenset(document.get("metrics", metrics)) - {"fits"}
        low, high = _range(document)
        exact = bool(path) and str(path[-1]).endswith(OF_EXACT_FORMULA)
        given = exact or document.get("pooled", False)
        if "value" in document and served and low < high and not given:
            prior = document["prior"] if "prior" in document else document["value"]
            software = str(path[-1]).split("/")[1] if path and "/" in str(path[-1]) else ""
            software = software.replace("-", "_").replace(".", "_")
            yield FitConstant(path, float(prior), low, high, served, software or None)
        for name, member in document.items():
            yield from constants_of(member, (*path, name), SECTIONS.get(name, metrics))
    elif isinstance(document, list):
        for place, member in enumerate(document):
            yield from constants_of(member, (*path, place), metrics)


def _range(document: Mapping[str, Any]) -> tuple[float, float]:
    """Returns the limits of a constant: its range, within the interval that answers derive from it."""
    low, high = document.get("range", (-math.inf, math.inf))
    low, high = max(low, document.get("low", low)), min(high, document.get("high", high))
    return (float(low), float(high)) if math.isfinite(high - low) else (0.0, 0.0)


def _entry(document: Any, path: Sequence[str | int]) -> dict[str, Any]:  # noqa: ANN401
    for step in path:
        document = document[step]
    assert isinstance(document, dict)  # noqa: S101
    return document


def _copy(value: Any) -> Any:  # noqa: ANN401
    """Returns a copy of a JSON value, several times as fast as a deep copy of any object."""
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(member) for member in value] if isinstance(value, list) else value


def with_values(document: Document, constants: Sequence[FitConstant], values: Sequence[float]) -> Document:
    """Returns the reference set with other values of its constants, next to the priors."""
    changed: Document = _copy(document)
    for constant, value in zip(constants, values, strict=True):
        entry = _entry(changed, constant.path)
        entry["prior"] = constant.prior
        entry["value"] = rounded(value)
    _pool(changed.get("calibration", {}).get("steps", {}))
    return changed


def _pool(steps: Document) -> None:
    """Sets constants that are ``pooled`` to the median of those of frameworks.

    The rows without a framework are few and odd, while a run that names none is like one of any framework.
    """
    for name, entry in steps.items():
        if entry.get("pooled"):
            named = [each["value"] for other, each in steps.items() if other.startswith(f"{name}/")]
            entry["value"] = rounded(statistics.median(named))


@dataclass(frozen=True, slots=True)
class FittingProblem:
    """Rows, constants, and the functions that estimate the rows."""

    document: Document
    constants: tuple[FitConstant, ...]
    asked: tuple[AskedRow, ...]
    estimators: Estimators
    catalog: WithCurves

    def scored(self, values: Sequence[float], rows: Sequence[int]) -> list[ScoredRow]:
        """Returns the scores of some rows under values of the constants."""
        catalog = self.catalog(parse_curves(with_values(self.document, self.constants, values)))
        estimators = answered_once(self.estimators)
        return [score_row(self.asked[place], catalog, estimators) for place in rows]

    def errors(self, values: Sequence[float], rows: Sequence[int]) -> Floats:
        """Returns the errors that a fit minimises, of the likeliest estimates; NaN without one.

        They are relative; for serving they are the logarithm of the ratio, since latencies are off by
        factors, and a ratio of one half would otherwise weigh less than one of two.
        """
        catalog = self.catalog(parse_curves(with_values(self.document, self.constants, values)))
        asked = (self.asked[place]._replace(shapes=self.asked[place].shapes[:1]) for place in rows)
        estimators = answered_once(self.estimators)
        return np.array([_pull(score_row(one, catalog, estimators)) for one in asked])

    def slopes(self, values: Floats, rows: Sequence[int], errors: Floats) -> Floats:
        """Returns the derivatives of the errors of rows by each constant."""
        slopes = np.zeros((len(rows), len(self.constants)))
        for place, constant in enumerate(self.constants):
            served = [k for k, row in enumerate(rows) if constant.serves(self.asked[row])]
            step = _STEP * constant.span
            step = -step if values[place] + step > constant.high else step
            moved = values.copy()
            moved[place] += step
            at = self.errors(moved.tolist(), [rows[k] for k in served])
            slopes[served, place] = (at - errors[served]) / (rounded(moved[place]) - rounded(values[place]))
        return np.nan_to_num(slopes)

    @property
    def bounds(self) -> Floats:
        """Prior, least and largest value of each constant."""
        prior, low, high = np.array([(c.prior, c.low, c.high) for c in self.constants]).T
        edge = _EDGE * (high - low)
        return np.array([prior, np.minimum(prior, low + edge), np.maximum(prior, high - edge)])


def _pull(scored: ScoredRow) -> float:
    serving = METRICS[scored.row.metric].family is MetricFamily.SERVING
    return math.log1p(scored.error) if serving and scored.error > -1.0 else scored.error


def answered_once(estimators: Estimators) -> Estimators:
    """Returns estimators that answer each question once, since the rows of a run share theirs."""
    known: dict[tuple[str, int], Mapping[str, Any]] = {}

    def once(name: str, estimator: Callable[[Any, CatalogView], Mapping[str, Any]]) -> Any:  # noqa: ANN401
        def answer(shape: Any, catalog: CatalogView) -> Mapping[str, Any]:  # noqa: ANN401
            key = (name, id(shape))
            if key not in known:
                known[key] = estimator(shape, catalog)
            return known[key]

        return answer

    return {name: once(name, estimator) for name, estimator in estimators.items()}


class FittedConstants(NamedTuple):
    """Values of the constants, and the number of rows and groups of their fit."""

    values: tuple[float, ...]
    rows: int
    groups: int


def weights_of(asked: Sequence[AskedRow]) -> Floats:
    """Returns the weight of each row. A group weighs as the root of its rows."""
    groups = [group_of(one.row) for one in asked]
    sizes = Counter(groups)
    return np.array([1.0 / math.sqrt(sizes[group]) for group in groups])


def solve(errors: Floats, slopes: Floats, weights: Floats, at: Floats, bounds: Floats) -> Floats:
    """Minimises the sum of weighted absolute errors of a linear model within bounds, near ``at``.

    Reweighted least squares; the bounded quadratic is solved by coordinate descent, which reaches the minimum
    because it is convex.
    """
    prior, low, high = bounds
    span = high - low
    pull = _PULL * weights.sum() / span**2
    found = at.copy()
    for _ in range(_REWEIGHTINGS):
        left = errors + slopes @ (found - at)
        pulls = weights / np.maximum(np.abs(left), _FLOOR)
        curvature = slopes.T @ (pulls[:, None] * slopes)
        gradient = slopes.T @ (pulls * (errors - slopes @ at))
        before = found.copy()
        for _ in range(_SWEEPS):
            last = found.copy()
            for place in range(len(found)):
                steep = curvature[place, place] + pull[place]
                rest = gradient[place] + curvature[place] @ found - curvature[place, place] * found[place]
                found[place] = np.clip((pull[place] * prior[place] - rest) / steep, low[place], high[place])
            if np.all(np.abs(found - last) <= 1e-12 * span):
                break
        if np.all(np.abs(found - before) <= 1e-9 * span):
            break
    return found


def fit(problem: FittingProblem, rows: Sequence[int]) -> FittedConstants:
    """Returns the constants that fit some rows best."""
    bounds = problem.bounds
    values = bounds[0].copy()
    known = np.isfinite(problem.errors(values, rows))
    usable = [place for place, finite in zip(rows, known, strict=True) if finite]
    weights = weights_of([problem.asked[place] for place in usable])
    for _ in range(LINEARISATIONS):
        errors = problem.errors(values, usable)
        after = solve(errors, problem.slopes(values, usable, errors), weights, values, bounds)
        if np.all(np.abs(after - values) <= 10.0**-DIGITS * np.abs(values)):
            values = after
            break
        values = after
    groups = {group_of(problem.asked[place].row) for place in usable}
    return FittedConstants(tuple(rounded(value) for value in values), len(usable), len(groups))


class FitValidation(NamedTuple):
    """Every row under the constants that were fitted without its group, and those constants by fold."""

    whole: FittedConstants
    """Constants that were fitted to all rows."""
    scored: tuple[ScoredRow, ...]
    folds: tuple[FittedConstants, ...]
    outside: tuple[tuple[int, ...], ...]
    """Indexes of the rows of each fold, which are outside of its fit."""

    def without(self, fold: int) -> list[ScoredRow]:
        """Returns the rows of the other folds."""
        left = set(self.outside[fold])
        return [one for place, one in enumerate(self.scored) if place not in left]


def cross_validate(problem: FittingProblem, split: Mapping[str, int]) -> FitValidation:
    """Fits all rows, then four folds of them for each fifth, which is scored."""
    everything = range(len(problem.asked))
    fold = [fold_of(group_of(problem.asked[place].row), split) for place in everything]
    left = [tuple(place for place in everything if fold[place] == out) for out in range(FOLDS)]
    inside = [[place for place in everything if fold[place] != out] for out in range(FOLDS)]
    whole, *found = _fit_each(problem, [everything, *inside])
    scored: dict[int, ScoredRow] = {}
    for fitted, outside in zip(found, left, strict=True):
        scored |= zip(outside, problem.scored(fitted.values, outside), strict=True)
    ordered = tuple(scored[place] for place in everything)
    return FitValidation(whole, ordered, tuple(found), tuple(left))


_problems: list[FittingProblem] = []
"""The problem of forked processes: its functions cannot be sent to them."""


def _fit_each(problem: FittingProblem, subsets: Sequence[Sequence[int]]) -> list[FittedConstants]:
    """Fits each subset of the rows, in as many processes as there are processors."""
    _problems[:] = [problem]
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        return pool.map(_fit_forked, subsets, chunksize=1)


def _fit_forked(rows: Sequence[int]) -> FittedConstants:
    return fit(_problems[0], rows)


def problem_of(
    document: Document, asked: Sequence[AskedRow], estimators: Estimators, catalog: WithCurves
) -> FittingProblem:
    """Returns the problem of the rows and constants of a document that affect each other."""
    constants = tuple(constants_of(document))
    served = frozenset().union(*(constant.metrics for constant in constants))
    rows = tuple(
        likeliest_first(one, catalog(parse_curves(document)), estimators)
        for one in asked
        if one.row.metric in served and not one.skipped
    )
    whole = FittingProblem(document, constants, rows, estimators, catalog)
    return replace(whole, constants=tuple(_moving(whole)))


def _moving(problem: FittingProblem) -> Iterator[FitConstant]:
    """Yields the constants that change an estimate; rows do not determine the others."""
    values = [constant.prior for constant in problem.constants]
    everything = range(len(problem.asked))
    start = problem.errors(values, everything)
    for place, constant in enumerate(problem.constants):
        moved = values.copy()
        middle = (constant.low + constant.high) / 2.0
        end = constant.high if constant.prior < middle else constant.low
        moved[place] = (constant.prior + end) / 2.0
        rows = [row for row in everything if constant.serves(problem.asked[row])]
        changes = problem.errors(moved, rows) - start[rows]
        if np.any(np.abs(np.nan_to_num(changes)) > _UNMOVED):
            yield constant


def fitted_document(
    problem: FittingProblem,
    fitted: FittedConstants,
    tried: FitValidation,
    provenance: Mapping[str, Any],
) -> str:
    """Returns the reference set with fitted values, those of each fold, the spreads, and the provenance."""
    spread = residuals(tried.scored)
    names = [constant.name for constant in problem.constants]
    document = with_values(problem.document, problem.constants, fitted.values)
    _spread(document, spread)
    kept = [entry for entry in document.get("residuals", []) if is_of_serving(entry["family"])]
    document["residuals"] = [residual._asdict() for residual in spread] + kept
    document["fitted"] = {
        **provenance,
        "rows": fitted.rows,
        "groups": fitted.groups,
        "folds": [
            {
                "values": dict(zip(names, fold.values, strict=True)),
                "residuals": [residual._asdict() for residual in residuals(tried.without(place))],
            }
            for place, fold in enumerate(tried.folds)
        ],
    }
    return text_of(document)


def text_of(document: Document) -> str:
    """Returns the text of the reference set's file."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


TOTALS: Final = {("training_memory", "total"): "training_memory"}
"""Entries with the interval of a whole answer, and the family of rows that determines it."""


def _spread(document: Document, spread: Sequence[MeasuredRatio]) -> None:
    """Writes the interval of each whole answer from rows outside of the fit."""
    for (section, name), family in TOTALS.items():
        entry = document.get(section, {}).get(name)
        of = [residual for residual in spread if residual.family == family]
        if entry is not None and of:
            widest = max(of, key=lambda residual: residual.rows)
            entry["low"], entry["high"] = min(widest.low, 1.0), max(widest.high, 1.0)
            entry["source"] = (
                f"Measured over estimated, 10th and 90th percentile of {widest.rows} rows, each under "
                "constants fitted without its group"
            )


def held_out(document: Document, fold: int) -> Document:
    """Returns the reference set as fitted without one fold, or unchanged if nothing was fitted.

    Raises :class:`ValueError` if a fitted constant is missing, since its rows would be scored in sample.
    """
    residuals: list[Document] = []
    for section in ("fitted", "fitted_serving"):
        folds = document.get(section, {}).get("folds", [])
        if not folds:
            continue
        document = with_fitted(document, folds[fold]["values"])
        residuals += folds[fold]["residuals"]
        evidence = folds[fold].get("serving_evidence")
        document |= {"serving_evidence": evidence} if evidence else {}
    return document | {"residuals": residuals} if residuals else document


def with_fitted(document: Document, values: Mapping[str, float]) -> Document:
    """Returns the reference set with other values of named constants."""
    constants = [constant for constant in constants_of(document) if constant.name in values]
    gone = values.keys() - {constant.name for constant in constants}
    if gone:
        raise ValueError(f"fitted, but no longer in the reference set: {', '.join(sorted(gone))}")
    return with_values(document, constants, [values[constant.name] for constant in constants])
