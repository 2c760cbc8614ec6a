"""How far a served system is from the nearest one that was measured: intervals widen with it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.quantity import Spread

_RELEASE: Final = re.compile(r"v?(\d+\.\d+)")


class Near(StrEnum):
    """What the nearest measured system shares, the nearest first."""

    SYSTEM = "system"
    """Engine with its minor release, and accelerator."""
    GENERATION = "engine_and_generation"
    ENGINE = "engine"
    DEVICE = "generation"
    """The generation of devices, under another engine."""
    NOTHING = "nothing"


class System(NamedTuple):
    """A server as evidence knows it; None where the question does not say."""

    engine: str | None
    release: str | None
    accelerator: str | None
    generation: str | None


def release_of(version: str | None) -> str | None:
    """The minor release of an engine's version: 0.11 of v0.11.0.post1."""
    match = _RELEASE.match(version or "")
    return match[1] if match else None


_WITHOUT_DEVICE: Final = {Near.ENGINE: Near.GENERATION, Near.NOTHING: Near.DEVICE}
"""Levels that are left where the device is known by itself: what its generation would say of it."""

_SAME_MODEL: Final = 0.005
"""Relative difference of parameters up to which models count as one: releases of the same shape."""


@dataclass(frozen=True, slots=True)
class ServingEvidence:
    """Systems and models that measured rows are of.

    Of ``calibrated`` accelerators rate and bandwidth were measured: no row is of another device than they.
    """

    systems: frozenset[System] = frozenset()
    parameter_counts: tuple[int, ...] = ()
    calibrated: frozenset[str] = frozenset()

    def near(self, system: System) -> Near:
        """What the nearest measured system shares with this one."""
        found = self._near(system)
        if system.accelerator in self.calibrated:
            return _WITHOUT_DEVICE.get(found, found)
        return found

    def _near(self, system: System) -> Near:
        engine, release, accelerator, generation = system
        if engine and release and accelerator and system in self.systems:
            return Near.SYSTEM
        of_engine = [known for known in self.systems if engine and known.engine == engine]
        if any(known.generation == generation for known in of_engine):
            return Near.GENERATION
        if of_engine:
            return Near.ENGINE
        if any(known.generation == generation for known in self.systems):
            return Near.DEVICE
        return Near.NOTHING

    def knows(self, parameter_count: int | None) -> bool:
        """Whether a measured model has this shape."""
        count = parameter_count or 0
        return any(abs(known - count) <= _SAME_MODEL * known for known in self.parameter_counts)

    def level(self, system: System, parameter_count: int | None) -> str:
        """The level of evidence, as tables of residuals name it."""
        return level_of(self.near(system), known=self.knows(parameter_count))


def level_of(near: Near, *, known: bool) -> str:
    """The name of a level: what is shared, and whether the model is among the measured ones."""
    return f"{near.value}/{'known' if known else 'new'}_model"


LEVELS: Final = tuple(level_of(near, known=known) for near in Near for known in (True, False))
"""Every level, the nearest first."""


def widened(residuals: Mapping[tuple[str, str], Spread], family: str, level: str) -> Spread | None:
    """What measured rows of a kind of answer were off by at a level.

    A level without rows takes the widest of all that have some: nothing says that it is nearer.
    """
    known = residuals.get((family, level))
    if known is None:
        of_family = [residuals[family, other] for other in LEVELS if (family, other) in residuals]
        if not of_family:
            steady = family.removesuffix(_BURST)
            return widened(residuals, steady, level) if steady != family else None
        known = max(of_family, key=lambda spread: spread.high / spread.low)
    return Spread(min(known.low, 1.0), max(known.high, 1.0), known.source)


_BURST: Final = "/burst"


def family_of(answer: str, *, all_at_once: bool) -> str:
    """The kind of answer in tables of residuals: of requests that are all there from the start it is another.

    How fast a cold server takes a queue of prompts in is less sure than what it does under a steady load.
    """
    return f"{answer}{_BURST}" if all_at_once else answer


def evidence_of(systems: Iterable[System], parameter_counts: Iterable[int]) -> ServingEvidence:
    """The evidence of some measured rows."""
    return ServingEvidence(frozenset(systems), tuple(sorted(set(parameter_counts))))
