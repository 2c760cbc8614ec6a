"""Corrections of estimates by a tenant's own measured answers: their log ratios, shrunk by distance.

The logarithm of measured over estimated is modelled as a sum of independent normal parts: one shared by all
runs of a model by one engine or framework on one device, one by those of the same release and number formats,
one by those of the same layout, two whose sharing falls with the distance of their loads, and one of each run
alone. The estimate of another run is the conditional mean under these (best linear unbiased prediction:
Henderson 1975; Rasmussen and Williams 2006, equations 2.22 to 2.24). Standard deviations of the parts are
calibration data, fitted to whole sources (``service/evidence``). Runs of other models, devices or engines
share no part: in measurements, they did not make estimates better (docs/accuracy.md).
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
"""Distance of loads, in the natural logarithm of concurrent requests and of lengths, at which the shared

part has fallen to exp(-1/2).
"""
FURTHEST: Final = 1.5
"""Largest logarithm of a ratio that is used as it is.

Larger ones are cut to this value, because a wrong unit or a question of another run is likelier than an
estimate with such an error.
"""
PRIOR_RUNS: Final = 4.0
"""Weight, in runs, of the spread that the parts predict against that of cross-validation errors."""
FINGERPRINT_DIGITS: Final = 12
_STUDENT: Final = (1.2815515655446004**2 + 1.0) / 4.0
_FEWEST_RANKED: Final = 4
_INSIDE: Final = 0.8


class LogDeviations(NamedTuple):
    """Standard deviations of the parts of log ratios of one kind of answer, dimensionless."""

    model: float
    """Deviation shared by runs of a model by one engine or framework on one device."""
    system: float
    """Additional deviation shared by runs of the same release and number formats."""
    layout: float
    """Additional deviation shared by runs of the same layout on as many devices."""
    load: float
    """Deviation shared by runs of a model on a system, at the same load."""
    layout_load: float
    """Deviation shared by runs of a layout, at the same load."""
    run: float
    """Deviation of one run alone."""


class RunGroup(NamedTuple):
    """Properties that a run must share to correct another.

    A member is None where a question does not give it.
    """

    kind: str
    software: str | None
    device: str | None
    parameter_count: int | None


class RunSetting(NamedTuple):
    """Setting of a run.

    ``system`` and ``layout`` are compared for equality. ``load`` are logarithms: concurrent requests on a
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
    """Correction of an estimate and of its interval by runs nearby.

    ``factor`` multiplies the estimate. The ends of its interval, as factors of it, are raised to the power of
    ``narrowing``, but are never nearer than ``least`` in the logarithm.
    """

    factor: float
    narrowing: float = 1.0
    least: float = 0.0
    runs: int = 0
    calibration_ids: tuple[str, ...] = ()

    def apply_to_spread(self, spread: IntervalFactors) -> IntervalFactors:
        """Returns the corrected spread of an estimate."""
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
    """Returns a digest that identifies one published figure, however its question is written.

    The digest covers the kind of answer, the group, the load to 1% and the figure to four digits.
    """
    load = [round(each, 2) + 0.0 for each in setting.load]
    text = json.dumps([family, *setting.group, *load, f"{measured:.3e}"])
    return hashlib.sha256(text.encode()).hexdigest()[:FINGERPRINT_DIGITS]


class LocalEvidence(Protocol):
    """Measured runs of one tenant."""

    def compute_correction(self, family: str, setting: RunSetting) -> EstimateCorrection | None:
        """Returns the correction of a kind of answer in a setting; None where no run is of its group."""

    def list_layouts(self, family: str, group: RunGroup) -> frozenset[Hashable]:
        """Returns the layouts of a group's runs.

        Settings that differ only by another layout get the same correction.
        """


def apply_correction(
    local: LocalEvidence | None, family: str, setting: RunSetting, spread: IntervalFactors
) -> IntervalFactors:
    """Returns the spread of a kind of answer corrected by a tenant's own runs.

    Unchanged without runs nearby.
    """
    found = local.compute_correction(family, setting) if local is not None else None
    return spread if found is None else found.apply_to_spread(spread)


def compute_correlation(deviations: LogDeviations, one: RunSetting, other: RunSetting) -> float:
    """Returns the correlation of the log ratios of two runs, 0 to below 1.

    Their shared share of the variance. Errors of both estimates agree as far as they share parts, so that the
    ratio of both is more certain than either.
    """
    variances = np.square(deviations)
    shared = RunSettings([one]).compute_shared_parts(other)[:, 0]
    return float(variances[:-1] @ shared / variances.sum())


class RunSettings:
    """Several settings, and the parts that each shares with another."""

    def __init__(self, settings: Sequence[RunSetting]) -> None:
        """Encodes names as numbers once."""
        self._codes: dict[Hashable, int] = {}
        self._names = np.array(
            [
                [self._codes.setdefault(name, len(self._codes)) for name in _build_group_keys(each)]
                for each in settings
            ]
        )
        self._loads = np.array([each.load for each in settings])

    def compute_shared_parts(self, setting: RunSetting) -> Floats:
        """Returns the share of each part that a setting has in common with each of these.

        Parts x settings, 0 to 1. The parts are in the order of :class:`LogDeviations`, without the part of
        one run alone.
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
        """Merges runs of one setting into one with their mean: their shared part is not measured twice."""
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
        """Returns the correction that these runs give for a setting."""
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
        """Returns the covariance of a setting with each of the runs."""
        found: Floats = self._variances @ self._settings.compute_shared_parts(setting)
        return found

    def _cross_validate(self) -> tuple[float, float, float]:
        """Returns scale and largest width of the spread over its prediction, and the worst fifth's error.

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
