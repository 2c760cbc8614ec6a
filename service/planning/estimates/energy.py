"""Energy of a run on its site: accelerators and each kind of equipment around them."""

from datetime import datetime
from typing import NamedTuple

from service.planning.energy.facility import EQUIPMENT, build_node_rates, fabric_watts
from service.planning.energy.load_profile import equipment_kwh, facility_kwh, it_kwh, peak_kw
from service.planning.energy.site import LoadCourse, MeasuredEnergy, Site
from service.planning.estimates.load import (
    MachinePower,
    ProfileBounds,
    build_profile,
    check_load,
    compute_second_of_day,
    pick_end,
)
from service.planning.estimates.measured import build_measured_profile, check_measured, note_other_run
from service.planning.estimates.power import DevicePower
from service.planning.estimates.runs import Run
from service.planning.hardware.calibration import PowerQuantity
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, assumed, weakest
from service.planning.units import MINUTE_SECONDS

_ENDS = ("value", "low", "high")
MOST_INTERVALS = 10_000
"""Maximum number of intervals whose power an answer lists: 104 days of quarters of an hour."""


def _to_point(value: float, basis: EvidenceBasis) -> Quantity:
    return Quantity(value, value, value, basis)


class EquipmentEnergy(NamedTuple):
    """Energy of one kind of equipment, at the building's meter too where the PUE is known."""

    name: str
    it_kwh: Quantity | None
    facility_kwh: Quantity | None
    source: str


class RunEnergy(NamedTuple):
    """Energy of all equipment of a run; a sum is None where a part of it is unknown.

    ``profiles`` hold the power over time at the value, low and high end of power and duration; their energy
    at the meter is ``facility_kwh``.
    """

    equipment: tuple[EquipmentEnergy, ...] = ()
    it_kwh: Quantity | None = None
    facility_kwh: Quantity | None = None
    peak_kw: Quantity | None = None
    profiles: ProfileBounds | None = None
    load: LoadCourse = LoadCourse()
    starts_at: datetime | None = None


def _order_ends(value: float, low: float, high: float, basis: EvidenceBasis) -> Quantity:
    return Quantity(value, min(value, low), max(value, high), basis)


def build_machines(
    cluster: Cluster, site: Site, curves: ReferenceCurves, drawn: Quantity, limit: float
) -> list[MachinePower]:
    """Returns the power of the machines at each end of ``drawn``, the watts of a device."""
    node, fabric = (
        build_node_rates(cluster, site.cooling, curves.facility),
        fabric_watts(cluster, curves.facility),
    )
    hosts = cluster.host_power_watts
    if hosts is not None:
        # The given power covers all equipment beside the accelerators.
        node = fabric = None
    if site.fabric_watts_per_device is not None:
        fabric = assumed(site.fabric_watts_per_device * cluster.accelerator_count)
    idle = curves.calibration.power.find_share(PowerQuantity.IDLE_SHARE, cluster.accelerator.generation)
    found = []
    for place, end in enumerate(_ENDS):
        device = pick_end(drawn, end)
        found.append(
            MachinePower(
                devices=float(cluster.accelerator_count),
                nodes=float(cluster.node_count),
                device=device,
                idle=min(device, limit * getattr(idle, end)),
                limit=limit,
                node=node[place] if node else None,
                hosts=hosts.value if hosts else 0.0,
                fabric=pick_end(fabric, end) if fabric else 0.0,
            )
        )
    return found


def _describe_sources(run: Run, site: Site, draw: DevicePower | None) -> dict[str, str]:
    """Returns the source of the power of each kind of equipment."""
    server, given = run.case.cluster.accelerator.server, "given with the question"
    host = (
        f"share of what {server.name} may draw beside its accelerators"
        if server
        else "share of the accelerators"
    )
    return {
        "accelerators": "what the devices do, by the model of their power"
        if draw
        else "power limit, a bound",
        "hosts": f"measured {host}" if run.case.cluster.host_power_watts is None else given,
        "fans": f"measured share of what they cool ({site.cooling.value})",
        "power_supplies": "efficiency of the 80 PLUS Titanium class at the load of the supplies",
        "fabric": given
        if site.fabric_watts_per_device is not None
        else "switch ports of a fat tree and their optics, by bandwidth",
    }


def estimate_energy(run: Run, site: Site, draw: DevicePower | None) -> RunEnergy:
    """Estimates the energy of accelerators and of the machines around them.

    Without the draw of a device, the value is its power limit, and measured loads give its interval.
    """
    cluster, duration, curves = run.case.cluster, run.duration_seconds, run.case.curves
    limit = cluster.accelerator.power_limit_watts
    if site.measured is not None:
        return _take_measured(run, site, limit, site.measured)
    if limit is None or duration is None:
        code = "POWER_UNKNOWN" if duration else "RATE_UNKNOWN"
        detail = "the power limit of the accelerator" if duration else "the duration"
        for name in ("it_kwh", "facility_kwh", "peak_kw"):
            run.notes.add_gap(f"/energy/{name}", code, f"{detail} is not known")
        return RunEnergy()
    drawn = draw.watts if draw else curves.accelerator_power.around(limit, EvidenceBasis.DATASHEET)
    machines, load = build_machines(cluster, site, curves, drawn, limit), check_load(run, site.load)
    local = site.starts_at
    begins = compute_second_of_day(local.hour, local.minute, local.second) if local else 0.0
    profiles = ProfileBounds(
        *(
            build_profile(run, each, duration, load, end=end, pue=site.pues or (1.0,), begins=begins)
            for end, each in zip(_ENDS, machines, strict=True)
        )
    )
    energy = _sum_energy(run, site, profiles, drawn, _describe_sources(run, site, draw))._replace(load=load)
    _note_intervals(run.notes, energy)
    return energy


def _note_intervals(notes: AnswerNotes, energy: RunEnergy) -> None:
    """Adds a gap with the reason why the power of every interval is not listed, if it was requested."""
    pointer, profiles = "/energy/load_profile/intervals_kw", energy.profiles
    if not energy.load.include_intervals or profiles is None:
        return
    if energy.starts_at is None:
        notes.add_gap(pointer, "STARTS_AT_REQUIRED", "intervals follow a clock: give `starts_at` of the run")
    elif energy.facility_kwh is None:
        notes.add_gap(pointer, "PUE_REQUIRED", "the PUE of the site is not given")
    elif profiles.value.elapsed_seconds > MOST_INTERVALS * energy.load.interval_minutes * MINUTE_SECONDS:
        notes.add_gap(pointer, "SERIES_TOO_LONG", f"at most {MOST_INTERVALS} intervals are listed")


def _take_measured(run: Run, site: Site, limit: float | None, measured: MeasuredEnergy) -> RunEnergy:
    """Returns the measured energy in place of an estimate."""
    curves = run.case.curves
    if limit is None:
        detail = "the measured energy is not checked: the power limit of the accelerator is not known"
        run.notes.warn("MEASURED_UNCHECKED", "/measured/energy_kwh", detail)
    else:
        drawn = curves.accelerator_power.around(limit, EvidenceBasis.DATASHEET)
        _, least, most = build_machines(run.case.cluster, site, curves, drawn, limit)
        check_measured(run, least, most, measured, site.pues)
    note_other_run(run, run.duration_seconds, measured)
    pues = site.pues or (1.0,)
    profile = build_measured_profile(measured, pues, site.starts_at)
    figure, source = assumed(measured.energy_kwh), f"measured, {_METERED[measured.is_at_facility]}"
    used = metered = None
    if not measured.is_at_facility:
        used = figure
    else:
        metered = figure
    if site.pues is None:
        name = "facility_kwh" if used else "it_kwh"
        run.notes.add_gap(f"/energy/{name}", "PUE_REQUIRED", "the PUE of the site is not given")
        if used:
            run.notes.add_gap("/energy/peak_kw", "PUE_REQUIRED", "the PUE of the site is not given")
    else:
        used = used or _to_point(it_kwh(profile), site.pue_basis)
        metered = metered or _to_point(facility_kwh(profile, site.starts_at), site.pue_basis)
    peak = peak_kw(profile, site.starts_at)
    return RunEnergy(
        (EquipmentEnergy("measured", used, metered, source),),
        used,
        metered,
        _to_point(peak, EvidenceBasis.ASSUMED) if metered else None,
        ProfileBounds(profile, profile, profile),
        site.load,
        site.starts_at,
    )


_METERED = {True: "at the meter of the building", False: "at the supply of the machines"}


def _sum_energy(
    run: Run, site: Site, profiles: ProfileBounds, drawn: Quantity, sources: dict[str, str]
) -> RunEnergy:
    duration, hosts = run.duration_seconds or drawn, run.case.cluster.host_power_watts
    around = hosts or Quantity(0.5, 0.0, 1.0, EvidenceBasis.DATASHEET)
    bases = dict.fromkeys(EQUIPMENT, weakest(around, duration)) | {"accelerators": weakest(drawn, duration)}
    effects = [1.0, 1.0, 1.0]
    if site.pues is not None:
        effects = [facility_kwh(each, site.starts_at) / it_kwh(each) for each in profiles]
    at_meter = _to_point(effects[0], site.pue_basis)
    by_name = [equipment_kwh(each) for each in profiles]
    equipment = []
    for name in EQUIPMENT:
        kwh = [each[name] for each in by_name]
        if not any(kwh):
            continue
        used = _order_ends(kwh[0], kwh[1], kwh[2], bases[name])
        metered = None
        if site.pues is not None:
            each = [part * effect for part, effect in zip(kwh, effects, strict=True)]
            metered = _order_ends(each[0], each[1], each[2], weakest(used, at_meter))
        equipment.append(EquipmentEnergy(name, used, metered, sources[name]))
    used = _sum_quantities([item.it_kwh for item in equipment if item.it_kwh])
    energy = RunEnergy(tuple(equipment), used, profiles=profiles, starts_at=site.starts_at)
    if site.pues is None:
        for name in ("facility_kwh", "peak_kw"):
            run.notes.add_gap(f"/energy/{name}", "PUE_REQUIRED", "the PUE of the site is not given")
        return energy
    metered = _sum_quantities([item.facility_kwh for item in equipment if item.facility_kwh])
    peaks = [peak_kw(each, site.starts_at) for each in profiles]
    return energy._replace(
        facility_kwh=metered, peak_kw=_order_ends(peaks[0], peaks[1], peaks[2], metered.basis)
    )


def _sum_quantities(parts: list[Quantity]) -> Quantity:
    return Quantity(
        sum(part.value for part in parts),
        sum(part.low for part in parts),
        sum(part.high for part in parts),
        weakest(*parts),
    )
