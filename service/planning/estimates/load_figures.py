"""Course of a run's power in time: its phases, and the intervals of its meter."""

from datetime import datetime
from typing import NamedTuple

from service.planning.energy.load_profile import PhaseShare, build_load_series, phase_shares
from service.planning.estimates.energy import MOST_INTERVALS, RunEnergy
from service.planning.quantity import Quantity
from service.planning.units import HOUR_SECONDS

_LONGEST_SECONDS = MOST_INTERVALS * HOUR_SECONDS
"""Longest run whose highest interval is looked for."""


class MeterIntervals(NamedTuple):
    """Mean power of the intervals of a meter, the first from ``start``."""

    start: datetime
    highest_kw: float
    kw: tuple[float, ...] | None
    """None where they are not asked for or are too many."""


class LoadFigures(NamedTuple):
    """Course of a run's power, at the middle of its interval."""

    elapsed_seconds: float
    phases: tuple[tuple[str, PhaseShare], ...]
    interval_minutes: int
    intervals: MeterIntervals | None
    """None where the start of the run or the energy at the meter is not known."""


def describe_load(energy: RunEnergy) -> LoadFigures | None:
    """Returns the course of a run's power; None where it is not known."""
    if energy.profiles is None:
        return None
    profile = energy.profiles.value
    phases = tuple((name.value, share) for name, share in phase_shares(profile).items())
    return LoadFigures(profile.elapsed_seconds, phases, energy.load.interval_minutes, _list_intervals(energy))


def _list_intervals(energy: RunEnergy) -> MeterIntervals | None:
    profiles, starts_at = energy.profiles, energy.starts_at
    if profiles is None or starts_at is None or not energy.facility_kwh:
        return None
    if profiles.value.elapsed_seconds > _LONGEST_SECONDS:
        return None
    load = build_load_series(profiles.value, starts_at, energy.load.interval_minutes)
    is_listed = energy.load.include_intervals and len(load.kw) <= MOST_INTERVALS + 1
    listed = tuple(float(kw) for kw in load.kw) if is_listed else None
    return MeterIntervals(load.start, float(load.kw.max()), listed)


def compute_overhead(energy: RunEnergy) -> Quantity | None:
    """Returns the kWh that cooling and distribution add to the equipment; both figures share their ends."""
    whole, used = energy.facility_kwh, energy.it_kwh
    if not whole or not used:
        return None
    return Quantity(whole.value - used.value, whole.low - used.low, whole.high - used.high, whole.basis)
