"""Links: the alpha-beta line of each collective, and the constants with which planning estimates all.

A line through the times of every collective of one number of devices is stored with its residuals:
    seconds = alpha + bytes / beta

It has the least sum of absolute logarithms, so that one bad size does not move it. The constants of the link
are those of :mod:`service.planning.hardware.collectives` that fit all times at once. A constant that no
message determines, such as hops where all collectives have as many, keeps its reference and is not stored.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from service.calibrations.fitting.search import ConstantRange, fit_values
from service.planning.hardware.calibration.links import LinkCalibration, LinkShare
from service.planning.hardware.calibration.measured import MeasuredFigure, MeasuredLink
from service.planning.hardware.collectives import (
    ClusterFabric,
    Collective,
    CollectiveAlgorithm,
    build_rail,
    collective_seconds,
)
from service.planning.hardware.links import Link

_LEAST_SIZES: Final = 2
_WIDE: Final = 8.0
"""Largest ratio of a fitted latency to the reference's, or the reverse."""
_LEAST_SHARE: Final = 0.02
_MOST_SHARE: Final = 1.0
_TOLD: Final = 0.25
"""A constant is determined by messages if it accounts for at least this share of their time."""
_FREE: Final = 1e3
"""Factor of the rate at which a link would cost nothing."""


class CollectiveMessage(NamedTuple):
    """One measured collective; bytes as nccl-tests and planning count a message."""

    collective: Collective
    devices: int
    message_bytes: float
    seconds: float
    algorithm: CollectiveAlgorithm | None = None
    """Algorithm that was set; None if the library chose."""


class CollectiveLine(NamedTuple):
    """The line through the times of one collective: a start, a rate, and ratios of measured to line times."""

    collective: Collective
    devices: int
    algorithm: CollectiveAlgorithm | None
    alpha_seconds: float
    beta_bytes_per_second: float
    residuals: tuple[tuple[float, float], ...]
    """Bytes of each message, and its measured time over that of the line."""

    def to_document(self) -> dict[str, Any]:
        """Returns the line as it is stored."""
        named = {"algorithm": str(self.algorithm)} if self.algorithm else {}
        return {
            "collective": str(self.collective),
            "devices": self.devices,
            **named,
            "alpha_seconds": self.alpha_seconds,
            "beta_bytes_per_second": self.beta_bytes_per_second,
            "residuals": [
                {"message_bytes": size, "measured_over_line": ratio} for size, ratio in self.residuals
            ],
        }


def fit_lines(messages: Sequence[CollectiveMessage]) -> list[CollectiveLine]:
    """Fits a line for each collective that was measured at several sizes."""
    groups: dict[tuple[Collective, int, CollectiveAlgorithm | None], list[CollectiveMessage]] = {}
    for one in messages:
        groups.setdefault((one.collective, one.devices, one.algorithm), []).append(one)
    return [
        _fit_line(key, sorted(found, key=lambda one: one.message_bytes))
        for key, found in groups.items()
        if len({one.message_bytes for one in found}) >= _LEAST_SIZES
    ]


def _fit_line(
    key: tuple[Collective, int, CollectiveAlgorithm | None], messages: Sequence[CollectiveMessage]
) -> CollectiveLine:
    shortest = min(one.seconds for one in messages)
    fastest = max(one.message_bytes / one.seconds for one in messages)

    def estimate_seconds(values: Mapping[str, float], one: CollectiveMessage) -> float:
        return values["alpha"] + one.message_bytes / values["beta"]

    found = fit_values(
        {
            "alpha": ConstantRange(shortest * 1e-3, shortest * 0.5, shortest * 2.0),
            "beta": ConstantRange(fastest * 0.5, fastest, fastest * 4.0),
        },
        lambda values: [math.log(estimate_seconds(values, one) / one.seconds) for one in messages],
    )
    left = tuple((one.message_bytes, one.seconds / estimate_seconds(found, one)) for one in messages)
    return CollectiveLine(*key, found["alpha"], found["beta"], left)


_RATE, _HOP, _LAUNCH, _SWITCH = "rate", "hop_seconds", "launch_seconds", "in_network_rate"
_RATES: Final = frozenset({_RATE, _SWITCH})
ConstantValues = Mapping[str, float]


def fit_link(
    messages: Sequence[CollectiveMessage],
    link: Link,
    reference: LinkCalibration,
    *,
    generation: str = "",
    runs: int = 1,
    source: str = "",
) -> MeasuredLink | None:
    """Fits the constants of ``link`` to collectives inside one domain; None if none determines its rate.

    ``reference`` is used where messages determine nothing, and such constants are not returned. A link that
    states its own latency keeps it. Messages that only a switch could have added are left out where the link
    has none.
    """
    possible = [
        one for one in messages if link.in_network or one.algorithm is not CollectiveAlgorithm.IN_NETWORK
    ]
    fit = _LinkFit(possible, link, reference, generation)
    values = fit.fit_values()

    def build_figure(name: str) -> MeasuredFigure | None:
        left = fit.list_ratios(values, name)
        if not left:
            return None
        limit = link.bytes_per_second if name in _RATES else None
        low, high = min(1.0, *left), max(1.0, *left)
        value = values[name] * (limit or 1.0)
        return MeasuredFigure(value * low, value, value * high, runs, limit, source)

    rate = build_figure(_RATE)
    if rate is None:
        return None
    return MeasuredLink(rate, build_figure(_HOP), build_figure(_LAUNCH), build_figure(_SWITCH))


class _LinkFit:
    """Fit of the constants of one link to the messages that went over it."""

    def __init__(
        self, messages: Sequence[CollectiveMessage], link: Link, reference: LinkCalibration, generation: str
    ) -> None:
        self._messages, self._link, self._reference = messages, link, reference
        share = reference.links[link.kind]
        switched = reference.in_network.get(generation, reference.in_network_pooled)
        self._start: ConstantValues = {
            _RATE: share.rate,
            _HOP: share.hop_seconds,
            _LAUNCH: reference.launch_seconds,
            _SWITCH: switched,
        }
        self._ranges = {
            _RATE: ConstantRange(_LEAST_SHARE, share.rate, _MOST_SHARE),
            _LAUNCH: _build_latency_range(reference.launch_seconds),
        }
        if link.latency_seconds is None:
            self._ranges[_HOP] = _build_latency_range(share.hop_seconds)
        if link.in_network and any(_is_switchable(one) for one in messages):
            self._ranges[_SWITCH] = ConstantRange(_LEAST_SHARE, switched, _MOST_SHARE)

    def fit_values(self) -> ConstantValues:
        """Returns the constants under which the times of all messages are estimated best."""
        return {**self._start, **fit_values(self._ranges, self._compute_residuals)}

    def _compute_residuals(self, values: ConstantValues) -> list[float]:
        tried = {**self._start, **values}
        return [math.log(self._estimate_seconds(tried, one) / one.seconds) for one in self._messages]

    def list_ratios(self, values: ConstantValues, name: str) -> list[float]:
        """Returns the errors of messages that determine a constant; none if it is at an end of its range."""
        if name not in self._ranges or not self._ranges[name].is_inside(values[name]):
            return []
        free = {**values, name: values[name] * _FREE if name in _RATES else 0.0}
        ratios = []
        for one in self._messages:
            whole = self._estimate_seconds(values, one)
            if whole - self._estimate_seconds(free, one) >= _TOLD * whole:
                ratios.append(whole / one.seconds if name in _RATES else one.seconds / whole)
        return ratios

    def _estimate_seconds(self, values: ConstantValues, one: CollectiveMessage) -> float:
        """Returns the seconds of a collective inside one domain under ``values``."""
        link = self._link
        share = LinkShare(values[_RATE], values[_HOP])
        calibration = self._reference._replace(
            links={**self._reference.links, link.kind: share}, launch_seconds=values[_LAUNCH]
        )
        rail = build_rail(link, calibration)
        fabric = ClusterFabric(
            intra=rail,
            inter=rail,
            domain=one.devices,
            launch_seconds=values[_LAUNCH],
            in_network=build_rail(link, calibration, values[_SWITCH]) if link.in_network else None,
        )
        return collective_seconds(
            one.collective,
            one.message_bytes,
            devices=float(one.devices),
            per_domain=float(one.devices),
            fabric=fabric,
            algorithm=one.algorithm,
        )


def _build_latency_range(seconds: float) -> ConstantRange:
    return ConstantRange(seconds / _WIDE, seconds, seconds * _WIDE)


def _is_switchable(one: CollectiveMessage) -> bool:
    return one.collective is Collective.ALL_REDUCE and one.algorithm in (None, CollectiveAlgorithm.IN_NETWORK)
