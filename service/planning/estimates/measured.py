"""Measured energy of a run, checked against the energy that its machines can draw."""

import math
from datetime import datetime
from typing import NamedTuple

from service.planning.energy.load_profile import LoadProfile, PhaseName, PowerPhase, facility_kwh, it_kwh
from service.planning.energy.site import MeasuredEnergy
from service.planning.errors import PlanningError
from service.planning.estimates.load import MachinePower
from service.planning.estimates.runs import Run
from service.planning.quantity import Quantity
from service.planning.units import KILOWATT_HOUR_JOULES

_HIGHEST_PUE = 2.0
"""PUE of an unknown building: above all fleets of the catalog and the mean of the industry, 1.58."""
_SAME_DURATION = 0.1
"""Share by which a measured duration may differ from the estimated one without a warning."""


class MachineEnergyBounds(NamedTuple):
    """Least and most energy that machines draw, in kWh: without work, and at the limit of every device."""

    idle_kwh: float
    most_kwh: float


def compute_bounds(
    run: Run, least: MachinePower, most: MachinePower, measured: MeasuredEnergy, pues: tuple[float, ...]
) -> MachineEnergyBounds:
    """Returns the bounds for the measured devices and duration, on the side of the meter that was read."""
    count = float(measured.device_count)
    nodes = float(math.ceil(count / run.case.cluster.accelerators_per_node))
    lowest, highest = (min(pues), max(pues)) if measured.is_at_facility else (1.0, 1.0)

    def compute_kwh(machines: MachinePower, device: float, pue: float) -> float:
        fabric = machines.fabric * count / machines.devices
        all_of_them = machines._replace(devices=count, nodes=nodes, fabric=fabric)
        return sum(all_of_them.compute_watts(device)) * measured.duration_seconds * pue / KILOWATT_HOUR_JOULES

    return MachineEnergyBounds(compute_kwh(least, least.idle, lowest), compute_kwh(most, most.limit, highest))


def check_measured(
    run: Run,
    least: MachinePower,
    most: MachinePower,
    measured: MeasuredEnergy,
    pues: tuple[float, ...] | None,
) -> None:
    """Refuses more energy than the machines can draw; warns of less than they draw without work."""
    found = compute_bounds(run, least, most, measured, pues or (1.0, _HIGHEST_PUE))
    if measured.energy_kwh > found.most_kwh:
        detail = (
            f"at most {found.most_kwh:.1f} kWh: every device at its power limit all the time, what is around "
            "them, and the building's power usage effectiveness"
        )
        raise PlanningError("MEASURED_ABOVE_BOUND", "/measured/energy_kwh", detail)
    if measured.energy_kwh < found.idle_kwh:
        detail = f"less than the {found.idle_kwh:.1f} kWh that the machines draw without work"
        run.notes.warn("MEASURED_BELOW_IDLE", "/measured/energy_kwh", detail)


def note_other_run(run: Run, duration: Quantity | None, measured: MeasuredEnergy) -> None:
    """Warns if the measured run is not the run of the question."""
    if measured.device_count != run.case.cluster.accelerator_count:
        detail = "another number of devices than the cluster's was measured: the energy is not scaled"
        run.notes.warn("MEASURED_ELSEWHERE", "/measured/device_count", detail)
    if duration and abs(measured.duration_seconds / duration.value - 1.0) > _SAME_DURATION:
        detail = "the measured duration is not the estimated one: the energy is that of the measured one"
        run.notes.warn("MEASURED_ELSEWHERE", "/measured/duration_seconds", detail)


def build_measured_profile(
    measured: MeasuredEnergy, pues: tuple[float, ...], starts_at: datetime | None
) -> LoadProfile:
    """Returns a profile of constant power whose energy, at the meter that was read, is the measured one."""
    even = PowerPhase(PhaseName.STEADY, measured.duration_seconds, (1.0,))
    profile = LoadProfile(("measured",), (even,), pues)
    each = facility_kwh(profile, starts_at) if measured.is_at_facility else it_kwh(profile)
    return profile._replace(parts=(even._replace(watts=(measured.energy_kwh / each,)),))
