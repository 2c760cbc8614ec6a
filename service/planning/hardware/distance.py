"""Distance of a served system from the nearest measured one, with which intervals widen."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.quantity import IntervalFactors

_RELEASE: Final = re.compile(r"v?(\d+\.\d+)")


class EvidenceDistance(StrEnum):
    """Properties that the nearest measured system shares, the nearest first."""

    SYSTEM = "system"
    """Engine with its minor release, and accelerator."""
    GENERATION = "engine_and_generation"
    ENGINE = "engine"
    DEVICE = "generation"
    """Generation of the devices, under another engine."""
    NOTHING = "nothing"


class EvidenceSystem(NamedTuple):
    """A server as evidence knows it; a member is None where the question does not give it."""

    engine: str | None
    release: str | None
    accelerator: str | None
    generation: str | None


def parse_release(version: str | None) -> str | None:
    """Returns the minor release of an engine's version: 0.11 of v0.11.0.post1."""
    match = _RELEASE.match(version or "")
    return match[1] if match else None


_WITHOUT_DEVICE: Final = {
    EvidenceDistance.ENGINE: EvidenceDistance.GENERATION,
    EvidenceDistance.NOTHING: EvidenceDistance.DEVICE,
}
"""Levels of a measured device: its own measurements stand in for rows of its generation."""

_SAME_MODEL: Final = 0.005
"""Relative difference of parameters up to which models count as one: releases of the same shape."""


@dataclass(frozen=True, slots=True)
class ServingEvidence:
    """Systems and models of the measured rows.

    For ``calibrated`` accelerators, rate and bandwidth were measured, so that rows of other devices apply to
    them.
    """

    systems: frozenset[EvidenceSystem] = frozenset()
    parameter_counts: tuple[int, ...] = ()
    calibrated: frozenset[str] = frozenset()

    def resolve_nearness(self, system: EvidenceSystem) -> EvidenceDistance:
        """Returns the properties that the nearest measured system shares with this one."""
        found = self._resolve_nearness(system)
        if system.accelerator in self.calibrated:
            return _WITHOUT_DEVICE.get(found, found)
        return found

    def _resolve_nearness(self, system: EvidenceSystem) -> EvidenceDistance:
        engine, release, accelerator, generation = system
        if engine and release and accelerator and system in self.systems:
            return EvidenceDistance.SYSTEM
        of_engine = [known for known in self.systems if engine and known.engine == engine]
        if any(known.generation == generation for known in of_engine):
            return EvidenceDistance.GENERATION
        if of_engine:
            return EvidenceDistance.ENGINE
        if any(known.generation == generation for known in self.systems):
            return EvidenceDistance.DEVICE
        return EvidenceDistance.NOTHING

    def has_model(self, parameter_count: int | None) -> bool:
        """Returns true if a measured model has this number of parameters."""
        count = parameter_count or 0
        return any(abs(known - count) <= _SAME_MODEL * known for known in self.parameter_counts)

    def resolve_level(self, system: EvidenceSystem, parameter_count: int | None) -> str:
        """Returns the level of evidence, as tables of residuals name it."""
        return format_level(self.resolve_nearness(system), known=self.has_model(parameter_count))


def format_level(near: EvidenceDistance, *, known: bool) -> str:
    """Returns the name of a level.

    The shared properties, and whether the model is among the measured ones.
    """
    return f"{near.value}/{'known' if known else 'new'}_model"


LEVELS: Final = tuple(format_level(near, known=known) for near in EvidenceDistance for known in (True, False))
"""All levels, the nearest first."""


def find_residual_spread(
    residuals: Mapping[tuple[str, str], IntervalFactors], family: str, level: str
) -> IntervalFactors | None:
    """Returns the residuals of measured rows of a kind of answer at a level.

    A level without rows takes the widest interval of the levels with rows, as it may not be nearer than they
    are.
    """
    known = residuals.get((family, level))
    if known is None:
        of_family = [residuals[family, other] for other in LEVELS if (family, other) in residuals]
        if not of_family:
            steady = family.removesuffix(_BURST)
            return find_residual_spread(residuals, steady, level) if steady != family else None
        known = max(of_family, key=lambda spread: spread.high / spread.low)
    return IntervalFactors(min(known.low, 1.0), max(known.high, 1.0), known.source)


_BURST: Final = "/burst"


def resolve_family(answer: str, *, all_at_once: bool) -> str:
    """Returns the kind of answer in tables of residuals; requests all there at the start have another.

    The rate at which a cold server takes in a queue of prompts is less certain than its steady state.
    """
    return f"{answer}{_BURST}" if all_at_once else answer


def build_evidence(systems: Iterable[EvidenceSystem], parameter_counts: Iterable[int]) -> ServingEvidence:
    """Builds the evidence of measured rows."""
    return ServingEvidence(frozenset(systems), tuple(sorted(set(parameter_counts))))
