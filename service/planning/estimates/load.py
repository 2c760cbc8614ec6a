"""Power of a run over time, at the low, middle and high end of power and duration."""

from typing import NamedTuple

from service.planning.energy.facility import EQUIPMENT, NodeRates, compute_node_draw, dynamic_share
from service.planning.energy.load_profile import (
    EquipmentPower,
    LoadProfile,
    PhaseName,
    PowerPause,
    PowerPhase,
    ProfilePart,
    TimeUse,
    build_daily_parts,
    build_regular_pauses,
    build_run_parts,
)
from service.planning.energy.site import LoadCourse, Maintenance
from service.planning.errors import PlanningError
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.quantity import Quantity
from service.planning.reliability.interruptions import estimate_elapsed_time
from service.planning.units import DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS

_MOST_PAUSES = 2_000
_SHAPE_TOLERANCE = 1e-3


class ProfileBounds(NamedTuple):
    """A load profile at the value, low and high end."""

    value: LoadProfile
    low: LoadProfile
    high: LoadProfile


class MachinePower(NamedTuple):
    """Watts of the machines of a run at one end of their intervals.

    ``device`` is the mean draw of one device while the run works, ``idle`` its draw without work. Without
    ``node``, everything beside the accelerators of a node draws ``hosts`` constantly.
    """

    devices: float
    nodes: float
    device: float
    idle: float
    limit: float
    node: NodeRates | None
    hosts: float
    fabric: float

    def compute_watts(self, device: float) -> tuple[float, ...]:
        """Returns the watts of each kind of equipment while every device draws ``device``."""
        accelerators = self.devices * device
        if self.node is None:
            return (accelerators, self.hosts * self.nodes, 0.0, 0.0, self.fabric)
        load = dynamic_share(device, self.idle, self.limit)
        beside = compute_node_draw(accelerators / self.nodes, load, self.node)
        return (accelerators, *(each * self.nodes for each in beside), self.fabric)

    @property
    def draws(self) -> EquipmentPower:
        """Power of the equipment while the run works and while it waits."""
        return EquipmentPower(self.compute_watts(self.device), self.compute_watts(self.idle))


def pick_end(quantity: Quantity, end: str) -> float:
    """Returns one end of a quantity: "value", "low" or "high"."""
    figure: float = getattr(quantity, end)
    return figure


def split_time(run: Run, duration: Quantity, end: str) -> TimeUse:
    """Returns the phases that the run spends its time in, at one end of its duration."""
    if not isinstance(run, TrainingRun):
        return TimeUse(pick_end(duration, end))
    found = run.interruptions
    if found.saved is None or found.productive is None:
        return TimeUse(pick_end(duration, end))
    recovery = found.saved
    if found.failures is not None:
        other = {"low": "high", "high": "low"}.get(end, end)
        mtbf, restart = pick_end(found.failures.mtbf, other), pick_end(found.failures.restart, end)
        recovery = recovery._replace(mtbf=mtbf, restart=restart)
    elapsed = estimate_elapsed_time(pick_end(found.productive, end), recovery)
    return TimeUse(
        working=elapsed.productive + elapsed.lost_work,
        checkpoints=elapsed.checkpoints,
        restarts=elapsed.restarts,
        interval=recovery.interval,
        failures=elapsed.failures,
    )


def _shape_by_day(
    shape: tuple[float, ...], machines: MachinePower, seconds: float, *, begins: float, checked: bool
) -> list[ProfilePart]:
    """Returns the parts of a service that follows the hours of the day.

    Refuses a load that no device can take.
    """
    if abs(sum(shape) / len(shape) - 1.0) > _SHAPE_TOLERANCE:
        detail = "the mean of the 24 values must be 1"
        raise PlanningError("LOAD_SHAPE", "/load_profile/daily_shape", detail)
    dynamic = machines.device - machines.idle
    drawn = [machines.idle + share * dynamic for share in shape]
    if checked and max(drawn) > machines.limit:
        detail = (
            f"at its highest hour a device would draw {max(drawn):.0f} W, above its limit of "
            f"{machines.limit:.0f} W: the service cannot take that load"
        )
        raise PlanningError("LOAD_SHAPE", "/load_profile/daily_shape", detail)
    hours = [machines.compute_watts(min(watts, machines.limit)) for watts in drawn]
    return list(build_daily_parts(hours, seconds, from_second_of_day=begins))


def _build_pauses(given: Maintenance, running: float, watts: tuple[float, ...]) -> tuple[PowerPause, ...]:
    every, lasts = given.every_seconds, given.duration_seconds
    if lasts >= every:
        pointer = "/load_profile/maintenance/duration_seconds"
        raise PlanningError("MAINTENANCE", pointer, "a window must end before the next begins")
    if running / (every - lasts) > _MOST_PAUSES:
        pointer = "/load_profile/maintenance/every_seconds"
        raise PlanningError("MAINTENANCE", pointer, f"at most {_MOST_PAUSES} windows are allowed")
    drawn = watts if given.draws_idle_power else (0.0,) * len(EQUIPMENT)
    window = PowerPhase(PhaseName.MAINTENANCE, lasts, drawn)
    return build_regular_pauses(every, window, running, first_after_seconds=given.first_after_seconds)


def build_profile(
    run: Run,
    machines: MachinePower,
    duration: Quantity,
    load: LoadCourse,
    *,
    end: str,
    pue: tuple[float, ...],
    begins: float,
) -> LoadProfile:
    """Builds the profile at one end; ``begins`` is the second of the day at which the run starts."""
    draws, spent = machines.draws, split_time(run, duration, end)
    parts: list[ProfilePart] = []
    if load.ramp_seconds:
        half = tuple((work + wait) / 2.0 for work, wait in zip(draws.working, draws.waiting, strict=True))
        parts.append(PowerPhase(PhaseName.RAMP, load.ramp_seconds, half))
    if not load.daily_shape:
        parts += build_run_parts(spent, draws)
    else:
        begins = (begins + load.ramp_seconds) % DAY_SECONDS
        parts += _shape_by_day(
            load.daily_shape, machines, spent.working, begins=begins, checked=end == "value"
        )
    if load.idle_seconds:
        parts.append(PowerPhase(PhaseName.IDLE, load.idle_seconds, draws.waiting))
    profile = LoadProfile(EQUIPMENT, tuple(parts), pue)
    if load.maintenance is None:
        return profile
    return profile._replace(pauses=_build_pauses(load.maintenance, profile.running_seconds, draws.waiting))


def check_load(run: Run, load: LoadCourse) -> LoadCourse:
    """Returns the load without a daily shape if the run does not follow the hours of the day."""
    if not load.daily_shape or not isinstance(run, TrainingRun):
        return load
    run.notes.warn(
        "NOT_USED", "/load_profile/daily_shape", "a training run has no load by the hour of the day"
    )
    return load._replace(daily_shape=())


def compute_second_of_day(hour: int, minute: int, second: int) -> float:
    """Returns the seconds since midnight."""
    return hour * HOUR_SECONDS + minute * MINUTE_SECONDS + second
