"""Power of a run over time: its phases, and the mean at the meter in each interval of the clock.

A run is phases of constant power that follow each other and repeat: steps until a checkpoint, the checkpoint,
steps again, and occasional restarts. Energy up to a moment is a sum over whole cycles and a part of the
current one, so that a year of it needs no list of its phases:

    E(t) = floor(t / p) E(p) + E(t - p floor(t / p))        p seconds of a cycle

A pause (a maintenance window) stops the run and has a separate power. The meter of the building reads the
power of the equipment times the power usage effectiveness (PUE, ISO/IEC 30134-2) of the month. The mean of an
interval is the difference of E at its ends over its length, so that the intervals add up to E of the whole.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from service.planning.energy.power import WATTS_PER_KILOWATT
from service.planning.errors import PlanningError
from service.planning.figures import larger, rounded_down, smaller
from service.planning.tariff.bill import MeteredLoad
from service.planning.units import DAY_SECONDS, HOUR_SECONDS, KILOWATT_HOUR_JOULES, MINUTE_SECONDS

INTERVAL_MINUTES = (5, 15, 30, 60)
MOST_INTERVALS = 1_000_000
"""Maximum intervals of one load: 28 years of quarter hours."""
_MONTHS = 12
_LONGEST_SECONDS = 40 * 366 * DAY_SECONDS


class PhaseName(StrEnum):
    """Activity of a run in a phase."""

    RAMP = "ramp"
    STEADY = "steady"
    CHECKPOINT = "checkpoint"
    RESTART = "restart"
    MAINTENANCE = "maintenance"
    IDLE = "idle"


class PowerPhase(NamedTuple):
    """Seconds at a constant power: watts of each kind of equipment, in the order of the profile's."""

    name: PhaseName
    seconds: float
    watts: tuple[float, ...]


class PowerCycle(NamedTuple):
    """Parts that follow each other repeatedly, until ``seconds`` are over."""

    parts: tuple["ProfilePart", ...]
    seconds: float


ProfilePart = PowerPhase | PowerCycle


class PowerPause(NamedTuple):
    """Pause of the run that starts ``after_seconds`` of the clock since its start."""

    after_seconds: float
    phase: PowerPhase


class LoadProfile(NamedTuple):
    """Power of a run over time: ``parts`` in order, interrupted by ``pauses`` in order of time.

    ``pue`` is one value, or one for each month of the year.
    """

    equipment: tuple[str, ...]
    parts: tuple[ProfilePart, ...]
    pue: tuple[float, ...] = (1.0,)
    pauses: tuple[PowerPause, ...] = ()

    @property
    def running_seconds(self) -> float:
        """Seconds of the parts."""
        return sum(part.seconds for part in self.parts)

    @property
    def effective_pauses(self) -> tuple[PowerPause, ...]:
        """Pauses that begin before the run is over."""
        left, kept = self.running_seconds, []
        paused = 0.0
        for pause in self.pauses:
            if pause.after_seconds - paused >= left:
                break
            kept.append(pause)
            paused += pause.phase.seconds
        return tuple(kept)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds by the clock, with pauses."""
        return self.running_seconds + sum(pause.phase.seconds for pause in self.effective_pauses)

    @property
    def is_seasonal(self) -> bool:
        """True if the energy at the meter depends on the start of the run."""
        return len(set(self.pue)) > 1


def _list_phases(part: ProfilePart) -> Iterator[PowerPhase]:
    if isinstance(part, PowerPhase):
        yield part
    else:
        for inner in part.parts:
            yield from _list_phases(inner)


_PhasePower = Callable[[PowerPhase], float]
_Times = NDArray[np.float64]


def _sum_watts(phase: PowerPhase) -> float:
    return sum(phase.watts)


def _select_equipment(place: int) -> _PhasePower:
    return lambda phase: phase.watts[place]


def _select_phase(name: PhaseName, pick: _PhasePower) -> _PhasePower:
    return lambda phase: pick(phase) if phase.name is name else 0.0


def _clip_seconds(at: float, seconds: float) -> float:
    return smaller(larger(at, 0.0), seconds)


def _integrate_part(part: ProfilePart, at: float, pick: _PhasePower) -> float:
    """Returns the integral of ``pick`` over the first ``at`` seconds of a part, for a number or an array."""
    at = _clip_seconds(at, part.seconds)
    if isinstance(part, PowerPhase):
        return at * pick(part)
    period = sum(inner.seconds for inner in part.parts)
    if period == 0.0:
        return at * 0.0
    times = rounded_down(at / period)
    return times * _integrate_parts(part.parts, period, pick) + _integrate_parts(
        part.parts, at - times * period, pick
    )


def _integrate_parts(parts: Sequence[ProfilePart], at: float, pick: _PhasePower) -> float:
    """Returns the integral over parts that follow each other."""
    total, begun = 0.0 * at, 0.0
    for part in parts:
        total = total + _integrate_part(part, at - begun, pick)
        begun += part.seconds
    return total


def _integrate_profile(profile: LoadProfile, at: float, pick: _PhasePower = _sum_watts) -> float:
    """Returns the integral of ``pick`` over the first ``at`` seconds by the clock."""
    paused, standing = 0.0 * at, 0.0 * at
    for after, phase in profile.effective_pauses:
        within = _clip_seconds(at - after, phase.seconds)
        paused = paused + within
        standing = standing + within * pick(phase)
    return _integrate_parts(profile.parts, at - paused, pick) + standing


def _integrate_total(profile: LoadProfile, pick: _PhasePower) -> float:
    return _integrate_profile(profile, profile.elapsed_seconds, pick)


def it_kwh(profile: LoadProfile) -> float:
    """Returns the energy of all equipment, in kWh."""
    return _integrate_total(profile, _sum_watts) / KILOWATT_HOUR_JOULES


def equipment_kwh(profile: LoadProfile) -> dict[str, float]:
    """Returns the energy of each kind of equipment, inside the building, in kWh."""
    return {
        name: _integrate_total(profile, _select_equipment(place)) / KILOWATT_HOUR_JOULES
        for place, name in enumerate(profile.equipment)
    }


class PhaseShare(NamedTuple):
    """Seconds and energy of a run in all phases of one name; energy inside the building."""

    seconds: float
    it_kwh: float


def phase_shares(profile: LoadProfile) -> dict[PhaseName, PhaseShare]:
    """Returns time and energy by phase, for phases that take time."""
    shares = {}
    for name in PhaseName:
        seconds = _integrate_total(profile, _select_phase(name, lambda _: 1.0))
        if seconds > 0.0:
            joules = _integrate_total(profile, _select_phase(name, _sum_watts))
            shares[name] = PhaseShare(seconds, joules / KILOWATT_HOUR_JOULES)
    return shares


def _check_length(profile: LoadProfile) -> None:
    if profile.elapsed_seconds > _LONGEST_SECONDS:
        detail = "the run lasts longer than the 40 years that a load profile covers"
        raise PlanningError("RUN_TOO_LONG", "/workload", detail)


def _list_pue_changes(profile: LoadProfile, starts_at: datetime | None) -> list[tuple[float, float]]:
    """Returns seconds since the start at which the PUE changes, with the new PUE; the first is the start."""
    if not profile.is_seasonal:
        return [(0.0, profile.pue[0])]
    if starts_at is None:
        detail = "the power usage effectiveness differs by month: give `starts_at` of the run"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    _check_length(profile)
    found = [(0.0, profile.pue[(starts_at.month - 1) % len(profile.pue)])]
    year, month, end = starts_at.year, starts_at.month, profile.elapsed_seconds
    while True:
        year, month = (year + 1, 1) if month == _MONTHS else (year, month + 1)
        begins = datetime(year, month, 1, tzinfo=starts_at.tzinfo)
        seconds = (begins.astimezone(UTC) - starts_at.astimezone(UTC)).total_seconds()
        if seconds >= end:
            return found
        found.append((seconds, profile.pue[month - 1]))


def _compute_metered_joules(profile: LoadProfile, starts_at: datetime | None, edges: _Times) -> _Times:
    """Returns joules at the meter between consecutive ``edges``, in seconds since the start."""
    changes = _list_pue_changes(profile, starts_at)
    ends = [begins for begins, _ in changes[1:]] + [profile.elapsed_seconds]
    total = np.zeros(len(edges) - 1)
    for (begins, pue), ends_at in zip(changes, ends, strict=True):
        # Outside of these, edges are clipped to one moment, between which no energy is drawn.
        first = max(int(np.searchsorted(edges, begins, side="right")) - 1, 0)
        last = min(int(np.searchsorted(edges, ends_at)), len(edges) - 1)
        inside = np.clip(edges[first : last + 1], begins, ends_at)
        joules = _integrate_profile(profile, cast("float", inside))
        total[first:last] += np.diff(cast("_Times", joules)) * pue
    return total


def peak_kw(profile: LoadProfile, starts_at: datetime | None = None) -> float:
    """Returns the power at the meter in the phase that draws most, at the highest PUE of the run's months.

    No mean of an interval is above it. ``starts_at`` as for :func:`facility_kwh`.
    """
    phases = [phase for part in profile.parts for phase in _list_phases(part)]
    phases += [pause.phase for pause in profile.effective_pauses]
    highest = max(_sum_watts(phase) for phase in phases if phase.seconds > 0.0)
    pue = max(pue for _, pue in _list_pue_changes(profile, starts_at))
    return highest * pue / WATTS_PER_KILOWATT


def facility_kwh(profile: LoadProfile, starts_at: datetime | None = None) -> float:
    """Returns the energy at the meter of the building, in kWh.

    ``starts_at``, in the local time of the building, is needed where the PUE differs by month; without it the
    call is refused with ``STARTS_AT_REQUIRED``.
    """
    edges = np.array([0.0, profile.elapsed_seconds])
    return float(_compute_metered_joules(profile, starts_at, edges)[0]) / KILOWATT_HOUR_JOULES


def build_load_series(profile: LoadProfile, starts_at: datetime, interval_minutes: int) -> MeteredLoad:
    """Returns the mean kW at the meter in each interval of the clock that the run touches.

    Intervals begin at whole multiples of ``interval_minutes`` (5, 15, 30 or 60) of the day in the zone of
    ``starts_at``; the parts of the first and the last one outside the run have no load. Energy is that of
    :func:`facility_kwh`, and no interval is above the profile's peak.
    """
    if interval_minutes not in INTERVAL_MINUTES:
        detail = f"must be one of {', '.join(map(str, INTERVAL_MINUTES))} minutes"
        raise PlanningError("INTERVAL_MINUTES", "/interval_minutes", detail)
    width = interval_minutes * MINUTE_SECONDS
    of_day = starts_at.hour * HOUR_SECONDS + starts_at.minute * MINUTE_SECONDS
    of_day += starts_at.second + starts_at.microsecond / 1e6
    before = of_day % width
    _check_length(profile)
    count = max(1, math.ceil((before + profile.elapsed_seconds) / width))
    if count > MOST_INTERVALS:
        detail = f"the run is {count:,} intervals long, at most {MOST_INTERVALS:,} are read: take longer ones"
        raise PlanningError("LOAD_TOO_LONG", "/load_profile/interval_minutes", detail)
    edges = np.clip(np.arange(count + 1) * width - before, 0.0, profile.elapsed_seconds)
    # Differences of sums may fall below zero by their last digit.
    joules = np.maximum(_compute_metered_joules(profile, starts_at, edges), 0.0)
    begins = starts_at.astimezone(UTC) - timedelta(seconds=before)
    return MeteredLoad(begins, interval_minutes, joules / width / WATTS_PER_KILOWATT)


class TimeUse(NamedTuple):
    """Time of a run by use, in seconds; ``working`` includes lost work.

    ``interval`` is the work between checkpoints, ``failures`` the expected number of restarts.
    """

    working: float
    checkpoints: float = 0.0
    restarts: float = 0.0
    interval: float = math.inf
    failures: float = 0.0


class EquipmentPower(NamedTuple):
    """Watts of each kind of equipment while the run works, and while it waits for storage or a restart."""

    working: tuple[float, ...]
    waiting: tuple[float, ...]


def build_run_parts(spent: TimeUse, draws: EquipmentPower) -> tuple[ProfilePart, ...]:
    """Builds the phases of a run with its expected checkpoints and restarts.

    Checkpoints and restarts are spread evenly, in the whole number that is closest to the expected one, and
    take together their expected time.
    """
    if spent.checkpoints == 0.0 and spent.restarts == 0.0:
        return (PowerPhase(PhaseName.STEADY, spent.working, draws.working),)
    outer = max(1, round(spent.failures)) if spent.restarts > 0.0 else 1
    inner = max(1, round(spent.working / spent.interval / outer))
    each = outer * inner
    saved = (
        PowerPhase(PhaseName.STEADY, spent.working / each, draws.working),
        PowerPhase(PhaseName.CHECKPOINT, spent.checkpoints / each, draws.waiting),
    )
    worked = (spent.working + spent.checkpoints) / outer
    restart = PowerPhase(PhaseName.RESTART, spent.restarts / outer, draws.waiting)
    return (PowerCycle((PowerCycle(saved, worked), restart), worked * outer + spent.restarts),)


def build_daily_parts(
    watts_by_hour: Sequence[tuple[float, ...]], seconds: float, *, from_second_of_day: float
) -> tuple[ProfilePart, ...]:
    """Builds the phases of a service whose load follows the hour of the day, by the clock at its start.

    ``watts_by_hour`` are the 24 hours from midnight on.
    """
    hours = [PowerPhase(PhaseName.STEADY, HOUR_SECONDS, watts) for watts in watts_by_hour]
    first, into = divmod(from_second_of_day % DAY_SECONDS, HOUR_SECONDS)
    place = int(first)
    begun = hours[place]._replace(seconds=HOUR_SECONDS - into)
    rest = hours[place]._replace(seconds=into)
    return (PowerCycle((begun, *hours[place + 1 :], *hours[:place], rest), seconds),)


def build_regular_pauses(
    every_seconds: float, phase: PowerPhase, running_seconds: float, *, first_after_seconds: float
) -> tuple[PowerPause, ...]:
    """Builds pauses at equal distances by the clock, from start to start, until the end of the run."""
    found: list[PowerPause] = []
    after = first_after_seconds
    while after - len(found) * phase.seconds < running_seconds:
        found.append(PowerPause(after, phase))
        after += every_seconds
    return tuple(found)
