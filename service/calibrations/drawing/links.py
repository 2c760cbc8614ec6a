"""Links: the alpha-beta of each collective, and the constants with which planning estimates all of them.

Of every collective of one number of devices a line through its times is kept, with what it leaves:

    seconds = alpha + bytes / beta

by the least sum of absolute logarithms, so that a size that went wrong does not move it. The constants of the
link are those of :mod:`service.planning.hardware.collectives` that fit all times at once; what no message
tells, such as hops where all collectives have as many, stays as it was and is not drawn.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from service.calibrations.drawing.search import Range, best
from service.planning.hardware.calibration.links import LinkCalibration, LinkShare
from service.planning.hardware.calibration.measured import MeasuredFigure, MeasuredLink
from service.planning.hardware.collectives import Algorithm, Collective, Fabric, collective_seconds, rail_of
from service.planning.hardware.links import Link

_LEAST_SIZES: Final = 2
_WIDE: Final = 8.0
"""How many times more or less than the reference's a latency may be."""
_LEAST_SHARE: Final = 0.02
_MOST_SHARE: Final = 1.0
_TOLD: Final = 0.25
"""A constant is told by messages of whose time it is so large a share."""
_FREE: Final = 1e3
"""So many times its rate a link would cost nothing."""


class Message(NamedTuple):
    """One collective as it was measured; bytes as nccl-tests and planning count a message."""

    collective: Collective
    devices: int
    message_bytes: float
    seconds: float
    algorithm: Algorithm | None = None
    """None where the library chose."""


class Line(NamedTuple):
    """The line through the times of one collective: a start, a rate, and measured over estimated times."""

    collective: Collective
    devices: int
    algorithm: Algorithm | None
    alpha_seconds: float
    beta_bytes_per_second: float
    residuals: tuple[tuple[float, float], ...]
    """Bytes of each message, and its measured time over that of the line."""

    def document(self) -> dict[str, Any]:
        """As it is kept."""
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


def lines(messages: Sequence[Message]) -> list[Line]:
    """A line for each collective of which several sizes were measured."""
    groups: dict[tuple[Collective, int, Algorithm | None], list[Message]] = {}
    for one in messages:
        groups.setdefault((one.collective, one.devices, one.algorithm), []).append(one)
    return [
        _line(key, sorted(found, key=lambda one: one.message_bytes))
        for key, found in groups.items()
        if len({one.message_bytes for one in found}) >= _LEAST_SIZES
    ]


def _line(key: tuple[Collective, int, Algorithm | None], messages: Sequence[Message]) -> Line:
    shortest = min(one.seconds for one in messages)
    fastest = max(one.message_bytes / one.seconds for one in messages)

    def at(values: Mapping[str, float], one: Message) -> float:
        return values["alpha"] + one.message_bytes / values["beta"]

    found = best(
        {
            "alpha": Range(shortest * 1e-3, shortest * 0.5, shortest * 2.0),
            "beta": Range(fastest * 0.5, fastest, fastest * 4.0),
        },
        lambda values: [math.log(at(values, one) / one.seconds) for one in messages],
    )
    left = tuple((one.message_bytes, one.seconds / at(found, one)) for one in messages)
    return Line(*key, found["alpha"], found["beta"], left)


_RATE, _HOP, _LAUNCH, _SWITCH = "rate", "hop_seconds", "launch_seconds", "in_network_rate"
_RATES: Final = frozenset({_RATE, _SWITCH})
Values = Mapping[str, float]


def link_of(
    messages: Sequence[Message],
    link: Link,
    reference: LinkCalibration,
    *,
    generation: str = "",
    runs: int = 1,
    source: str = "",
) -> MeasuredLink | None:
    """The constants of ``link`` that fit collectives inside one domain; None where none tells its rate.

    ``reference`` holds for what messages do not tell, which is not drawn. A link that states its own latency
    keeps it.
    """
    fit = _Fit(messages, link, reference, generation)
    values = fit.values()

    def figure(name: str) -> MeasuredFigure | None:
        left = fit.left(values, name)
        if not left:
            return None
        limit = link.bytes_per_second if name in _RATES else None
        low, high = min(1.0, *left), max(1.0, *left)
        value = values[name] * (limit or 1.0)
        return MeasuredFigure(value * low, value, value * high, runs, limit, source)

    rate = figure(_RATE)
    if rate is None:
        return None
    return MeasuredLink(rate, figure(_HOP), figure(_LAUNCH), figure(_SWITCH))


class _Fit:
    """The constants of one link beside the messages that went over it."""

    def __init__(
        self, messages: Sequence[Message], link: Link, reference: LinkCalibration, generation: str
    ) -> None:
        self._messages, self._link, self._reference = messages, link, reference
        share = reference.links[link.kind]
        switched = reference.in_network.get(generation, reference.in_network_pooled)
        self._start: Values = {
            _RATE: share.rate,
            _HOP: share.hop_seconds,
            _LAUNCH: reference.launch_seconds,
            _SWITCH: switched,
        }
        self._ranges = {
            _RATE: Range(_LEAST_SHARE, share.rate, _MOST_SHARE),
            _LAUNCH: _latency(reference.launch_seconds),
        }
        if link.latency_seconds is None:
            self._ranges[_HOP] = _latency(share.hop_seconds)
        if link.in_network and any(_may_switch(one) for one in messages):
            self._ranges[_SWITCH] = Range(_LEAST_SHARE, switched, _MOST_SHARE)

    def values(self) -> Values:
        """The constants under which the times of all messages are estimated best."""
        return {**self._start, **best(self._ranges, self._residuals)}

    def _residuals(self, values: Values) -> list[float]:
        tried = {**self._start, **values}
        return [math.log(self._estimated(tried, one) / one.seconds) for one in self._messages]

    def left(self, values: Values, name: str) -> list[float]:
        """Of the messages that tell a constant, how far off it leaves each; none where it is at an end."""
        if name not in self._ranges or not self._ranges[name].is_inside(values[name]):
            return []
        free = {**values, name: values[name] * _FREE if name in _RATES else 0.0}
        ratios = []
        for one in self._messages:
            whole = self._estimated(values, one)
            if whole - self._estimated(free, one) >= _TOLD * whole:
                ratios.append(whole / one.seconds if name in _RATES else one.seconds / whole)
        return ratios

    def _estimated(self, values: Values, one: Message) -> float:
        """Seconds of a collective inside one domain under ``values``."""
        link = self._link
        share = LinkShare(values[_RATE], values[_HOP])
        calibration = self._reference._replace(
            links={**self._reference.links, link.kind: share}, launch_seconds=values[_LAUNCH]
        )
        rail = rail_of(link, calibration)
        fabric = Fabric(
            intra=rail,
            inter=rail,
            domain=one.devices,
            launch_seconds=values[_LAUNCH],
            in_network=rail_of(link, calibration, values[_SWITCH]) if link.in_network else None,
        )
        return collective_seconds(
            one.collective,
            one.message_bytes,
            devices=float(one.devices),
            per_domain=float(one.devices),
            fabric=fabric,
            algorithm=one.algorithm,
        )


def _latency(seconds: float) -> Range:
    return Range(seconds / _WIDE, seconds, seconds * _WIDE)


def _may_switch(one: Message) -> bool:
    return one.collective is Collective.ALL_REDUCE and one.algorithm in (None, Algorithm.IN_NETWORK)
