"""What a tenant's own measured answers say of further ones: their log ratios, shrunk by distance.

The logarithm of measured over estimated is taken for a sum of independent normal parts: one that all runs of
a model by one engine or framework on one device share, one of those of the same release and number formats,
one of the same layout, two that runs share the less the further their loads are apart, and one of each run
alone. The estimate of another run is the conditional mean under these (best linear unbiased prediction:
Henderson 1975; Rasmussen and Williams 2006, equations 2.22 to 2.24). Standard deviations of the parts are
calibration data, fitted to whole sources (``service/evidence``). Runs of other models, devices or engines
share no part: measured, they did not make estimates better (docs/accuracy.md).
"""

import hashlib
import json
import math
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from service.planning.quantity import EvidenceBasis, IntervalFactors

Floats = NDArray[np.float64]

LOAD_SCALE: Final = 1.5
"""Distance of loads, in the natural logarithm of requests at a time and of lengths, at which what runs share
of them has fallen to exp(-1/2)."""
FURTHEST: Final = 1.5
"""Largest logarithm of a ratio that counts as it is: a run that is further off counts as this far, because a
wrong unit or a question of another run is likelier than an estimate that far off."""
PRIOR_RUNS: Final = 4.0
"""How many runs the spread that the parts tell weighs as, in that of the runs which are left out in turn."""
FINGERPRINT_DIGITS: Final = 12
_STUDENT: Final = (1.2815515655446004**2 + 1.0) / 4.0
_FEWEST_RANKED: Final = 4
_INSIDE: Final = 0.8


class LogDeviations(NamedTuple):
    """Standard deviations of the parts of log ratios of one kind of answer, dimensionless."""

    model: float
    """Of a model by one engine or framework on one device."""
    system: float
    """Of the same release and number formats beside."""
    layout: float
    """Of the same layout on as many devices beside."""
    load: float
    """Of a model on a system, at the same load."""
    layout_load: float
    """Of a layout, at the same load."""
    run: float
    """Of one run alone."""


class RunGroup(NamedTuple):
    """What must be the same for a run to say anything of another; None where a question does not say."""

    kind: str
    software: str | None
    device: str | None
    parameter_count: int | None


class RunSetting(NamedTuple):
    """What a run is of.

    ``system`` and ``layout`` are compared as they are. ``load`` are logarithms: requests at a time on a
    replica or sequences of a micro-batch; tokens of a prompt or of a sequence; tokens of an answer, or
    devices.
    """

    group: RunGroup
    system: Hashable
    layout: Hashable
    load: tuple[float, ...]


class MeasuredRun(NamedTuple):
    """A run with the logarithm of its measured figure over the estimated one."""

    setting: RunSetting
    log_ratio: float
    calibration_id: str


class EstimateCorrection(NamedTuple):
    """What runs nearby make of an estimate and of its interval.

    ``factor`` multiplies the estimate. The ends of its interval, as factors of it, are raised to the power
    of ``narrowing``, but are never nearer than ``least`` of the logarithm.
    """

    factor: float
    narrowing: float = 1.0
    least: float = 0.0
    runs: int = 0
    calibration_ids: tuple[str, ...] = ()

    def apply_to_spread(self, spread: IntervalFactors) -> IntervalFactors:
        """The spread around an estimate, corrected."""
        reach = math.exp(self.least)
        return IntervalFactors(
            self.factor * min(spread.low**self.narrowing, 1.0 / reach),
            self.factor * max(spread.high**self.narrowing, reach),
            f"{spread.source}; {self.runs} measured runs of your own" if self.runs else spread.source,
            middle=self.factor * spread.middle,
            basis=EvidenceBasis.CALIBRATED_SKU,
            calibration_ids=self.calibration_ids,
        )


def compute_fingerprint(family: str, setting: RunSetting, measured: float) -> str:
    """A digest by which one published figure is known again, however its question is written.

    Of the kind of answer, the group, the load to 1% and the figure to four digits.
    """
    load = [round(each, 2) + 0.0 for each in setting.load]
    text = json.dumps([family, *setting.group, *load, f"{measured:.3e}"])
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_DIGITS]


class LocalEvidence(Protocol):
    """The measured runs of one tenant."""

    def compute_correction(self, family: str, setting: RunSetting) -> EstimateCorrection | None:
        """What they say of a kind of answer in a setting; None where none is of its group."""

    def list_layouts(self, family: str, group: RunGroup) -> frozenset[Hashable]:
        """Layouts of the runs of a group: in all others, settings that differ in it alone are the same."""


def apply_correction(
    local: LocalEvidence | None, family: str, setting: RunSetting, spread: IntervalFactors
) -> IntervalFactors:
    """The spread of a kind of answer under a tenant's own runs; as it is where there are none nearby."""
    found = local.compute_correction(family, setting) if local is not None else None
    return spread if found is None else found.apply_to_spread(spread)


def compute_correlation(deviations: LogDeviations, one: RunSetting, other: RunSetting) -> float:
    """Correlation of the log ratios of two runs, 0 to below 1: the variance of what they have in common.

    An estimate of both is wrong alike as far as they share parts, so that their ratio is surer than either.
    """
    variances = np.square(deviations)
    shared = RunSettings([one]).compute_shared_parts(other)[:, 0]
    return float(variances[:-1] @ shared / variances.sum())


class RunSettings:
    """Some settings, and what each shares with another."""

    def __init__(self, settings: Sequence[RunSetting]) -> None:
        """Names become numbers once."""
        self._codes: dict[Hashable, int] = {}
        self._names = np.array(
            [
                [self._codes.setdefault(name, len(self._codes)) for name in _build_group_keys(each)]
                for each in settings
            ]
        )
        self._loads = np.array([each.load for each in settings])

    def compute_shared_parts(self, setting: RunSetting) -> Floats:
        """Share of each part that a setting has in common with each of these: parts x settings, 0 to 1.

        In the order of :class:`LogDeviations`, without the part of one run alone.
        """
        own = np.array([self._codes.get(name, -1) for name in _build_group_keys(setting)])
        model, system, layout = (self._names == own).T.astype(float)
        apart = (self._loads - np.array(setting.load)) / LOAD_SCALE
        near = np.exp(-0.5 * (apart * apart).sum(axis=1))
        return np.stack([model, system, layout, system * near, layout * near])


def _build_group_keys(setting: RunSetting) -> tuple[Hashable, Hashable, Hashable]:
    group, system, layout, _ = setting
    return group, (group, system), (group, system, layout)


class NearbyRuns:
    """Measured runs of one tenant, solved once."""

    def __init__(self, runs: Sequence[MeasuredRun], deviations: LogDeviations) -> None:
        """Runs of one setting count as one of their mean: what they have in common is not measured twice."""
        merged: dict[RunSetting, list[float]] = {}
        for run in runs:
            merged.setdefault(run.setting, []).append(run.log_ratio)
        ratios = [math.fsum(each) / len(each) for each in merged.values()]
        self._settings = RunSettings(list(merged))
        self.layouts = frozenset(setting.layout for setting in merged)
        self._variances = np.square(deviations[:-1])
        self._run = deviations.run**2
        self._prior = float(self._variances.sum()) + self._run
        self._runs = len(merged)
        self._ids = tuple(dict.fromkeys(run.calibration_id for run in runs))
        shared = np.array([self._compute_covariance(setting) for setting in merged])
        self._inverse = np.linalg.inv(shared + self._run * np.eye(self._runs))
        self._weights = self._inverse @ np.clip(ratios, -FURTHEST, FURTHEST)
        self._scale, self._most, self._least = self._cross_validate()

    def compute_correction(self, setting: RunSetting) -> EstimateCorrection:
        """What these runs say of a setting."""
        shared = self._compute_covariance(setting)
        variance = self._prior - float(shared @ self._inverse @ shared)
        return EstimateCorrection(
            math.exp(float(shared @ self._weights)),
            min(math.sqrt(max(variance, self._run) / self._prior) * self._scale, self._most),
            self._least,
            self._runs,
            self._ids,
        )

    def _compute_covariance(self, setting: RunSetting) -> Floats:
        """Covariance of a setting with each of the runs."""
        found: Floats = self._variances @ self._settings.compute_shared_parts(setting)
        return found

    def _cross_validate(self) -> tuple[float, float, float]:
        """How much wider the spread is than the parts tell, how wide at most, the error of the worst fifth.

        Each run is predicted from the others (Rasmussen and Williams 2006, equation 5.12). The rank of an
        error among n others is k / (n + 1) (Vovk et al. 2005, section 2.2); few runs have no such rank.
        """
        precision = np.diag(self._inverse)
        errors = np.abs(self._weights / precision)
        squares = float((errors * errors * precision).sum())
        counted = PRIOR_RUNS + self._runs
        # The 90th percentile of Student's t over that of the normal distribution (Peiser 1943).
        tail = 1.0 + _STUDENT / counted
        most = math.sqrt(max(1.0, (PRIOR_RUNS + squares) / counted))
        scale = tail * most
        if self._runs < _FEWEST_RANKED:
            return scale, most, 0.0
        rank = min(self._runs, math.ceil(_INSIDE * (self._runs + 1)))
        return scale, most, float(np.sort(errors)[rank - 1])
