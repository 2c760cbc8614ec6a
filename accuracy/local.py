"""Fit of the deviations that runs of one tenant share, on whole sources, and their validation.

Each source stands for a tenant. Its log ratios are a sum of independent normal parts
(:mod:`service.planning.hardware.local_evidence`), whose variances are fitted by maximum likelihood, with the
multiplicative steps of Zhou, Hu, Zhou and Lange (2019, "MM algorithms for variance components models").
"""

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from pydantic import MISSING

from accuracy.fitting import Floats
from accuracy.folds import committed_split, fold_of, group_of
from accuracy.holdouts import is_clear
from accuracy.metrics import METRICS, SERVING_TIMES, MetricFamily
from accuracy.report import OWN_RUNS, TextTable
from accuracy.scoring import AskedRow, ScoredRow, percentile
from accuracy.spreads import rounded
from service.planning.hardware.distance import resolve_family
from service.planning.hardware.local_evidence import (
    FURTHEST,
    LogDeviations,
    MeasuredRun,
    NearbyRuns,
    RunGroup,
    RunSetting,
    RunSettings,
    compute_fingerprint,
)
from service.planning.quantity import IntervalFactors

RunPlacement = Callable[[Any], RunSetting | None]
"""Returns the run setting of a question. It is passed in, since this package does not import its room."""

_MEMORY: Final = frozenset({"peak_memory_per_gpu", "gpu_memory_total"})


class SourceRun(NamedTuple):
    """A run of a source, with the interval factors of its uncorrected estimate."""

    source: str
    group: str
    """Group of rows that are held out together."""
    run: MeasuredRun
    prior: IntervalFactors


def family_of_row(one: ScoredRow) -> str | None:
    """Returns the kind of answer of a row, or None if local evidence does not correct it."""
    metric = METRICS[one.row.metric]
    if one.row.metric in _MEMORY:
        return f"{one.row.kind}_memory"
    if metric.spread is None:
        return None
    return resolve_family(metric.spread, all_at_once=one.all_at_once and metric.spread in SERVING_TIMES)


def points(pairs: Iterable[tuple[AskedRow, ScoredRow]], placed: RunPlacement) -> dict[str, list[SourceRun]]:
    """Returns the rows with known settings by kind of answer, with each setting of a source once."""
    found: dict[str, dict[tuple[str, RunSetting], list[SourceRun]]] = {}
    for asked, one in pairs:
        family = family_of_row(one) if one.row.metric in METRICS else None
        if family is None or one.figure is None or not is_clear(one.row) or not asked.shapes:
            continue
        if one.row.value <= 0.0 or one.figure.low <= 0.0:
            continue
        setting = placed(asked.shapes[0])
        if setting is None:
            continue
        point = _point(one, setting)
        found.setdefault(family, {}).setdefault((point.source, setting), []).append(point)
    return {family: [_mean(same) for same in of.values()] for family, of in sorted(found.items())}


def _point(one: ScoredRow, setting: RunSetting) -> SourceRun:
    metric, figure = METRICS[one.row.metric], one.figure
    assert figure is not None  # noqa: S101
    ratio, low, high = (each / figure.value for each in (one.row.value, figure.low, figure.high))
    if metric.family is MetricFamily.THROUGHPUT and not metric.counts_time:
        # The time of a step is the inverse of its rate.
        ratio, low, high = 1.0 / ratio, 1.0 / high, 1.0 / low
    run = MeasuredRun(setting, math.log(ratio), one.row.source)
    return SourceRun(one.row.source, group_of(one.row), run, IntervalFactors(low, high, ""))


def _mean(same: Sequence[SourceRun]) -> SourceRun:
    mean = statistics.fmean(point.run.log_ratio for point in same)
    return same[0]._replace(run=same[0].run._replace(log_ratio=mean))


_MOST_OF_SOURCE: Final = 150
_MOST: Final = 450
_STEPS: Final = 40
_FIRST: Final = 0.02
_LEAST: Final = 1e-6
"""Variances of the parts before the first step, and their minimum."""


def fit(found: Sequence[SourceRun]) -> LogDeviations:
    """Returns the standard deviations of greatest likelihood, with each source as a tenant of its own."""
    by_source: dict[str, list[SourceRun]] = {}
    for point in found:
        by_source.setdefault(point.source, []).append(point)
    evenly = [point for of in by_source.values() for point in _evenly(of, _MOST_OF_SOURCE)]
    taken = _evenly(evenly, _MOST)
    parts = np.concatenate([_parts(taken), np.eye(len(taken))[None]])
    ratios = np.clip([point.run.log_ratio for point in taken], -FURTHEST, FURTHEST)
    variances = np.full(len(parts), _FIRST)
    for _ in range(_STEPS):
        inverse = np.linalg.inv(np.tensordot(variances, parts, 1))
        weights = inverse @ ratios
        explained = parts @ weights @ weights
        expected = np.tensordot(parts, inverse, 2)
        variances = np.maximum(_LEAST, variances * np.sqrt(explained / expected))
    return LogDeviations(*(rounded(float(each)) for each in np.sqrt(variances)))


def _parts(taken: Sequence[SourceRun]) -> Floats:
    """Returns the share of each part that pairs have in common. Sources share nothing."""
    alike = np.array([[one.source == other.source for other in taken] for one in taken])
    own = [point.run.setting for point in taken]
    settings = RunSettings(own)
    parts: Floats = np.stack([settings.compute_shared_parts(setting) for setting in own], axis=1) * alike
    return parts


def _evenly(found: Sequence[SourceRun], most: int) -> list[SourceRun]:
    if len(found) <= most:
        return list(found)
    return [found[int(k * len(found) / most)] for k in range(most)]


_FEWEST_OTHERS: Final = 80


def unit_of(point: SourceRun, found: Sequence[SourceRun]) -> str:
    """Returns the unit that is held out with a point: its source, or its fold if others have too few rows."""
    others = sum(other.source != point.source for other in found)
    return point.source if others >= _FEWEST_OTHERS else f"fold {fold_of(point.group, committed_split())}"


class CorrectedRun(NamedTuple):
    """A run with its estimate before and after the correction by other runs."""

    log_ratio: float
    before: IntervalFactors
    after: IntervalFactors

    def errors(self) -> tuple[float, float]:
        """Returns relative errors of the estimate, before and after."""
        measured = math.exp(self.log_ratio)
        return abs(self.before.middle / measured - 1.0), abs(self.after.middle / measured - 1.0)

    def covered(self) -> bool:
        """Returns true if the interval after the correction covers the measured figure."""
        return self.after.low <= math.exp(self.log_ratio) <= self.after.high


def local_document(found: Mapping[str, Sequence[SourceRun]]) -> dict[str, Any]:
    """Returns the deviations of each kind of answer, and those fitted without each held-out unit."""
    document = {}
    for family, of in found.items():
        if len(of) < _FEWEST_OTHERS:
            continue
        units = {point: unit_of(point, of) for point in of}
        entry: dict[str, Any] = {
            "values": fit(of)._asdict(),
            "rows": len(of),
            "sources": sorted({point.source for point in of}),
            "held_out": {
                name: fit([point for point in of if units[point] != name])._asdict()
                for name in sorted(set(units.values()))
            },
        }
        entry["counts"] = _helps(try_out(of, entry, _SEVERAL))
        document[family] = entry
    return document


def without(point: SourceRun, entry: Mapping[str, Any]) -> LogDeviations:
    """Returns the deviations fitted without the source of a point, or its fold, or those of all."""
    held, fold = entry["held_out"], f"fold {fold_of(point.group, committed_split())}"
    return LogDeviations(**(held.get(point.source) or held.get(fold) or entry["values"]))


_SEVERAL: Final = 3


def _helps(tried: Sequence[CorrectedRun]) -> bool:
    """Returns true if several own runs improved the estimates of others; other kinds are not corrected."""
    if not tried:
        return False
    before, after = zip(*(one.errors() for one in tried), strict=True)
    return bool(statistics.median(after) < statistics.median(before))


_KNOWN_AGAIN: Final = frozenset(
    {
        *("tpot", "tpot_median", "median_itl", "ttft", "ttft_median"),
        *("output_tokens_per_s", "energy_per_output_token", "gpu_power_mean"),
    }
)
"""Metrics whose values in rows equal those of answers, power up to the number of devices."""


def fingerprints(pairs: Iterable[tuple[AskedRow, ScoredRow]], placed: RunPlacement) -> list[str]:
    """Returns fingerprints by which rows are recognised if a tenant imports them."""
    found = set()
    for asked, one in pairs:
        if one.row.metric not in _KNOWN_AGAIN or one.figure is None:
            continue
        setting, family = placed(asked.shapes[0]), METRICS[one.row.metric].spread
        if setting is None or family is None:
            continue
        cluster = asked.shapes[0].cluster
        each = cluster.accelerator_count if family == "serving_power" and cluster is not MISSING else 1
        found.add(compute_fingerprint(family, setting, one.row.value / each))
    return sorted(found)


_GROUPS: Final = 100
_TRIED: Final = 8
_SEED: Final = 20


def _is_elsewhere(point: SourceRun, other: SourceRun) -> bool:
    """Returns true if runs that were renamed to one group have different models or devices."""
    one, two = point.run.setting, other.run.setting
    return point.source == other.source and one.group == two.group and _renamed(one) != _renamed(two)


def _renamed(setting: RunSetting) -> object:
    assert isinstance(setting.system, tuple)  # noqa: S101
    first: object = setting.system[0]
    return first


def try_out(
    found: Sequence[SourceRun], document: Mapping[str, Any], count: int, *, elsewhere: bool = False
) -> list[CorrectedRun]:
    """Returns runs of each system and model, estimated with ``count`` others, optionally ``elsewhere``."""
    targets: dict[tuple[str, RunGroup, Any], list[SourceRun]] = {}
    for point in found:
        setting = point.run.setting
        targets.setdefault((point.source, setting.group, setting.system), []).append(point)
    random, tried = np.random.default_rng(_SEED), []
    for of in _evenly_groups(list(targets.values())):
        pool = [other for other in found if _is_elsewhere(of[0], other)] if elsewhere else of
        if len(pool) < count + (not elsewhere):
            continue
        taken = {int(place) for place in random.choice(len(pool), count, replace=False)}
        near = [pool[place].run for place in sorted(taken)]
        rest = of if elsewhere else [point for place, point in enumerate(pool) if place not in taken]
        chosen = random.choice(len(rest), min(_TRIED, len(rest)), replace=False)
        neighbourhood = NearbyRuns(near, without(of[0], document))
        for point in (rest[int(place)] for place in sorted(chosen)):
            after = neighbourhood.compute_correction(point.run.setting).apply_to_spread(point.prior)
            tried.append(CorrectedRun(point.run.log_ratio, point.prior, after))
    return tried


def _evenly_groups(targets: Sequence[list[SourceRun]]) -> list[list[SourceRun]]:
    if len(targets) <= _GROUPS:
        return list(targets)
    return [targets[int(k * len(targets) / _GROUPS)] for k in range(_GROUPS)]


def without_model(point: SourceRun) -> SourceRun:
    """Returns the run as if models of a system had a part in common."""
    setting = point.run.setting
    group = setting.group._replace(parameter_count=None)
    return _named(point, group, (setting.group.parameter_count, setting.system))


def without_device(point: SourceRun) -> SourceRun:
    """Returns the run as if runs of a model on several devices had a part in common."""
    setting = point.run.setting
    return _named(point, setting.group._replace(device=None), (setting.group.device, setting.system))


def _named(point: SourceRun, group: RunGroup, system: tuple[Hashable, Hashable]) -> SourceRun:
    setting = point.run.setting._replace(group=group, system=system)
    return point._replace(run=point.run._replace(setting=setting))


ROWS: Final = (1, 3, 10)
_ELSEWHERE: Final = frozenset({"serving_tpot", "serving_ttft", "training_step"})
"""Kinds of answer that are also tested with runs of other models and devices."""


_RENAMED: Final = (
    ("of other models on the system", without_model),
    ("of the model on other devices", without_device),
)


def local_table(found: Mapping[str, Sequence[SourceRun]], document: Mapping[str, Any]) -> TextTable:
    """Returns a table of the effect of own runs on estimates of other runs."""
    lines = []
    for family, of in found.items():
        if family not in document:
            continue
        for count in ROWS:
            lines += _line(
                f"{family}: {count} of the same model and system", try_out(of, document[family], count)
            )
        for title, renamed in _RENAMED if family in _ELSEWHERE else ():
            wide = [renamed(point) for point in of]
            for fitted in local_document({family: wide}).values():
                tried = try_out(wide, fitted, ROWS[-1], elsewhere=True)
                lines += _line(f"{family}: {ROWS[-1]} {title}", tried)
    head = ("kind of answer and own runs", "rows", "median before", "after", "p90 before", "after")
    return TextTable(OWN_RUNS, (*head, "coverage", "width before", "after"), lines)


_FEWEST_SHOWN: Final = 20


def _line(title: str, tried: Sequence[CorrectedRun]) -> list[list[str]]:
    if len(tried) < _FEWEST_SHOWN:
        return []
    before, after = zip(*(one.errors() for one in tried), strict=True)
    shares = (
        statistics.median(before),
        statistics.median(after),
        percentile(before, 0.9),
        percentile(after, 0.9),
    )
    widths = [
        statistics.median(spread.high / spread.low for spread in spreads)
        for spreads in ([one.before for one in tried], [one.after for one in tried])
    ]
    covered = statistics.fmean(one.covered() for one in tried)
    return [
        [
            title,
            str(len(tried)),
            *(f"{share:.1%}" for share in shares),
            f"{covered:.0%}",
            *(f"{width:.2f}" for width in widths),
        ]
    ]
