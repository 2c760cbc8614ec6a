"""Fit of the constants of serving, validated on whole groups, devices, models, releases and engines.

An estimate of serving takes about a millisecond and there are thousands of rows, so the fit takes its
derivatives on a part of the rows of large groups, and once for all hold-outs: each is solved from the rows
inside of it, with a linear model around the constants of all rows, and scored with the whole model on the
rows outside of it. The only influence of held-out rows is the point at which derivatives are taken.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from accuracy.fitting import (
    Document,
    FitConstant,
    FittedConstants,
    FittingProblem,
    Floats,
    WithCurves,
    answered_once,
    constants_of,
    solve,
    text_of,
    with_values,
)
from accuracy.folds import fold_of, group_of
from accuracy.metrics import METRICS, MetricFamily
from accuracy.rows import MeasuredRow
from accuracy.scoring import AskedRow, Estimators, ScoredRow, percentile, score_row, served_system
from accuracy.serving_facts import is_contradicted
from accuracy.spreads import FamilyRatios, MeasuredRatio, is_of_serving, pooled_ends, ratios_of, rounded
from service.evidence.service import parse_curves
from service.planning.hardware.distance import EvidenceSystem, ServingEvidence, build_evidence
from service.resolve.catalog import CatalogView

FOLD: Final = "fold"
LINEARISATIONS: Final = 2
MOST_OF_GROUP: Final = 6
"""Rows of one group and metric for derivatives. A group weighs as the root of its rows."""
MOST_TRIED: Final = 6
"""Rows of one group and metric on which a held-out device, model, release or engine is scored."""
FEWEST_HELD_OUT: Final = 10
"""Rows below which a device, a model or a release is not held out separately."""


class HoldOut(NamedTuple):
    """Rows outside of a fit, and those of them on which it is scored."""

    kind: str
    name: str
    outside: tuple[int, ...]
    tried: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TriedHoldOut:
    """A hold-out with the constants that were fitted without it, and its rows under them."""

    held: HoldOut
    fitted: FittedConstants
    scored: tuple[ScoredRow, ...]


class ServedSystem(NamedTuple):
    """Evidence facts of a row: its system, and the parameters of its model."""

    system: EvidenceSystem
    parameter_count: int | None


def systems_of(asked: Sequence[AskedRow], catalog: CatalogView) -> list[ServedSystem]:
    """Returns the system of each row."""
    found = []
    for one in asked:
        served = served_system(one.shapes[0], catalog)
        found.append(
            ServedSystem(*served) if served else ServedSystem(EvidenceSystem(None, None, None, None), None)
        )
    return found


def evidence_inside(served: Sequence[ServedSystem], outside: Sequence[int] = ()) -> ServingEvidence:
    """Returns the evidence of all rows except those outside."""
    left = set(outside)
    inside = [one for place, one in enumerate(served) if place not in left]
    return build_evidence(
        (one.system for one in inside), (one.parameter_count for one in inside if one.parameter_count)
    )


def hold_outs(
    asked: Sequence[AskedRow], served: Sequence[ServedSystem], split: Mapping[str, int]
) -> list[HoldOut]:
    """Returns five folds of groups, and each device, model, release and engine with enough rows."""
    keys: dict[tuple[str, str], list[int]] = {}
    for place, (one, (system, count)) in enumerate(zip(asked, served, strict=True)):
        names = {
            FOLD: str(fold_of(group_of(one.row), split)),
            "accelerator": system.accelerator,
            "model": f"{count / 1e9:.4g}B" if count else None,
            "release": f"{system.engine} {system.release}" if system.release else None,
            "engine": system.engine,
        }
        for kind, name in names.items():
            if name:
                keys.setdefault((kind, name), []).append(place)
    few = frozenset(thinned(asked, MOST_TRIED))
    return [
        HoldOut(
            kind,
            name,
            tuple(places),
            tuple(place for place in places if kind == FOLD or place in few),
        )
        for (kind, name), places in sorted(keys.items())
        if kind == FOLD or len(places) >= FEWEST_HELD_OUT
    ]


def thinned(asked: Sequence[AskedRow], most: int) -> list[int]:
    """Returns at most ``most`` rows of each group and metric, evenly spaced, each figure of a run once."""
    groups: dict[tuple[str, str], dict[tuple[int, float], int]] = {}
    for place, one in enumerate(asked):
        known = groups.setdefault((group_of(one.row), one.row.metric), {})
        known.setdefault((id(one.shapes[0]), one.row.value), place)
    found: list[int] = []
    for known in groups.values():
        places = sorted(known.values())
        step = max(1.0, len(places) / most)
        found += [places[int(k * step)] for k in range(min(len(places), most))]
    return sorted(found)


_UNCLEAR: Final = frozenset({"layout", "batch"})


def is_clear(row: MeasuredRow) -> bool:
    """Returns true if a row states layout and batch. Other rows are scored but not fitted."""
    return not (_UNCLEAR & row.missing) and not is_contradicted(row)


class _LinearErrors(NamedTuple):
    """Errors of some rows around some constants."""

    rows: tuple[int, ...]
    at: Floats
    errors: Floats
    slopes: Floats
    weights: Floats

    def solved(self, problem: FittingProblem, outside: Sequence[int] = ()) -> FittedConstants:
        """Returns the constants that fit the rows inside best."""
        left = set(outside)
        inside = np.array([row not in left for row in self.rows])
        values = solve(
            self.errors[inside], self.slopes[inside], self.weights[inside], self.at, problem.bounds
        )
        groups = {group_of(problem.asked[row].row) for row in self.rows if row not in left}
        return FittedConstants(tuple(rounded(value) for value in values), int(inside.sum()), len(groups))


def _aim(one: AskedRow) -> float:
    target = METRICS[one.row.metric].target
    return target.median if target else 1.0


def _linear(problem: FittingProblem, values: Floats, rows: Sequence[int]) -> _LinearErrors:
    errors = problem.errors(values.tolist(), rows)
    usable = np.isfinite(errors)
    rows = tuple(row for row, finite in zip(rows, usable, strict=True) if finite)
    errors = errors[usable]
    return _LinearErrors(rows, values, errors, problem.slopes(values, rows, errors), _weights(problem, rows))


def _weights(problem: FittingProblem, rows: Sequence[int]) -> Floats:
    """Returns the weight of each row: a group as the root of its rows, an error as a share of its target."""
    sizes = Counter(group_of(one.row) for one in problem.asked)
    taken = Counter(group_of(problem.asked[row].row) for row in rows)
    weights = []
    for row in rows:
        one = problem.asked[row]
        group = group_of(one.row)
        weights.append(math.sqrt(sizes[group]) / taken[group] / _aim(one))
    return np.array(weights)


class HoldOutValidation(NamedTuple):
    """The fit to all rows, and every hold-out under constants that were fitted without it."""

    fitted: FittedConstants
    tried: tuple[TriedHoldOut, ...]
    served: tuple[ServedSystem, ...]

    @property
    def folds(self) -> list[TriedHoldOut]:
        """The five folds."""
        return [one for one in self.tried if one.held.kind == FOLD]

    def scored(self) -> list[ScoredRow]:
        """Returns every row under the constants of the fold that does not hold its group."""
        ordered = {
            place: scored
            for one in self.folds
            for place, scored in zip(one.held.tried, one.scored, strict=True)
        }
        return [ordered[place] for place in sorted(ordered)]


def validate(problem: FittingProblem, split: Mapping[str, int]) -> HoldOutValidation:
    """Fits all rows, then scores each hold-out."""
    served = systems_of(problem.asked, problem.catalog(parse_curves(problem.document)))
    rows = [place for place in thinned(problem.asked, MOST_OF_GROUP) if is_clear(problem.asked[place].row)]
    held = hold_outs(problem.asked, served, split)
    values = problem.bounds[0].copy()
    fitted = FittedConstants(tuple(values), 0, 0)
    for _ in range(LINEARISATIONS):
        linear = _linear(problem, values, rows)
        fitted = linear.solved(problem)
        values = np.array(fitted.values)
    tried = [
        TriedHoldOut(
            one, without := linear.solved(problem, one.outside), under(problem, without, one, served)
        )
        for one in held
    ]
    return HoldOutValidation(fitted, tuple(tried), tuple(served))


def under(
    problem: FittingProblem, fitted: FittedConstants, held: HoldOut, served: Sequence[ServedSystem]
) -> tuple[ScoredRow, ...]:
    """Returns the rows of a hold-out under some constants, with the evidence of the other rows."""
    curves = parse_curves(with_values(problem.document, problem.constants, fitted.values))
    left = replace(curves, serving_evidence=evidence_inside(served, held.outside))
    catalog, estimators = problem.catalog(left), answered_once(problem.estimators)
    return tuple(score_row(problem.asked[place], catalog, estimators) for place in held.tried)


_FEWEST: Final = 5
_ALL_AS_GROUPS: Final = 12
"""Weight of the spread over all levels, in groups, against that of one level: shared errors of systems say
little about the errors where the engine is measured.
"""


def spreads(tried: Sequence[TriedHoldOut], without: Sequence[int] = ()) -> list[MeasuredRatio]:
    """Returns the errors of rows of all hold-outs, by kind of answer and level, without some rows.

    A group weighs as the root of its rows; ends with few groups are drawn towards those of all levels.
    """
    left = set(without)
    scored = [
        one
        for each in tried
        for place, one in zip(each.held.tried, each.scored, strict=True)
        if place not in left and is_clear(one.row)
    ]
    ratios = ratios_of(scored)
    families: dict[str, FamilyRatios] = {}
    for (family, _), of in ratios.items():
        every = families.setdefault(family, FamilyRatios([], []))
        every.figures.extend(of.figures)
        every.groups.extend(of.groups)
    found = []
    for (family, level), of in sorted(ratios.items()):
        if len(of.figures) < _FEWEST:
            continue
        own, every_end = of.ends_by_group, families[family].ends_by_group
        low, high = pooled_ends(own, every_end, len(set(of.groups)), _ALL_AS_GROUPS)
        middle = percentile(of.figures, 0.5)
        found.append(
            MeasuredRatio(family, level, rounded(low), rounded(middle), rounded(high), len(of.figures))
        )
    return found


def _evidence(evidence: ServingEvidence) -> Document:
    return {
        "systems": sorted(map(list, evidence.systems), key=str),
        "parameter_counts": list(evidence.parameter_counts),
    }


def served_document(problem: FittingProblem, found: HoldOutValidation, provenance: Mapping[str, Any]) -> str:
    """Returns the reference set with fitted constants of serving, those of each hold-out, and the spreads."""
    names = [constant.name for constant in problem.constants]

    def values(fitted: FittedConstants) -> dict[str, float]:
        return dict(zip(names, fitted.values, strict=True))

    document = with_values(problem.document, problem.constants, found.fitted.values)
    kept = [entry for entry in document.get("residuals", []) if not is_of_serving(entry["family"])]
    document["residuals"] = kept + [one._asdict() for one in spreads(found.tried)]
    document["serving_evidence"] = _evidence(evidence_inside(found.served))
    document["fitted_serving"] = {
        **provenance,
        "rows": found.fitted.rows,
        "groups": found.fitted.groups,
        "folds": [
            {
                "values": values(one.fitted),
                "residuals": [each._asdict() for each in spreads(found.tried, one.held.outside)],
                "serving_evidence": _evidence(evidence_inside(found.served, one.held.outside)),
            }
            for one in found.folds
        ],
        "hold_outs": [
            {"kind": one.held.kind, "name": one.held.name, "values": values(one.fitted)}
            for one in found.tried
            if one.held.kind != FOLD
        ],
    }
    return text_of(document)


def again(problem: FittingProblem, split: Mapping[str, int]) -> list[TriedHoldOut]:
    """Returns the hold-outs of a fitted set, each scored under its stored constants."""
    served = systems_of(problem.asked, problem.catalog(parse_curves(problem.document)))
    section = problem.document.get("fitted_serving", {})
    kept = {(one["kind"], one["name"]): one["values"] for one in section.get("hold_outs", [])}
    tried = []
    for held in hold_outs(problem.asked, served, split):
        values = kept.get((held.kind, held.name))
        if values is not None:
            fitted = FittedConstants(tuple(values[constant.name] for constant in problem.constants), 0, 0)
            tried.append(TriedHoldOut(held, fitted, under(problem, fitted, held, served)))
    return tried


def serving_problem(
    document: Document, asked: Sequence[AskedRow], estimators: Estimators, catalog: WithCurves
) -> FittingProblem:
    """Returns the problem of the rows of serving that have a question, and the constants that serve them."""
    rows = tuple(one for one in asked if is_serving(one) and not one.skipped)
    known = [constant for constant in constants_of(document) if any(constant.serves(one) for one in rows)]
    constants = tuple(constant._replace(besides=_own(constant, known)) for constant in known)
    return FittingProblem(document, constants, rows, estimators, catalog)


def _own(constant: FitConstant, known: Sequence[FitConstant]) -> frozenset[str]:
    """Returns the software with a constant of its own in the place of one that serves all."""
    if constant.software is not None:
        return frozenset()
    within, name = constant.path[:-1], f"{constant.path[-1]}/"
    same = (one for one in known if one.path[:-1] == within and str(one.path[-1]).startswith(name))
    return frozenset(one.software for one in same if one.software and str(one.path[-1]).count("/") == 1)


def is_serving(one: AskedRow) -> bool:
    """Returns true if a row is a latency, rate, power or energy of serving."""
    metric = METRICS.get(one.row.metric)
    return metric is not None and metric.family is MetricFamily.SERVING


def by_kind(tried: Sequence[TriedHoldOut]) -> Iterator[tuple[str, list[TriedHoldOut]]]:
    """Yields hold-outs by kind."""
    for kind in dict.fromkeys(one.held.kind for one in tried):
        yield kind, [one for one in tried if one.held.kind == kind]
