"""Energy of a run on its site: accelerators and what is around them, each a line of its own."""

from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import MISSING

from service.estimates.load import Ends, Machines, at, checked_load, profile_at, second_of_day
from service.estimates.measured import check_measured, measured_profile, note_other_run
from service.estimates.power import Draw
from service.estimates.run import Run
from service.planning.energy.carbon import IntensitySeries
from service.planning.energy.facility import EQUIPMENT, fabric_watts, node_rates
from service.planning.energy.load_profile import (
    LoadProfile,
    equipment_kwh,
    facility_kwh,
    it_kwh,
    peak_kw,
    phase_shares,
    series,
)
from service.planning.errors import PlanningError
from service.planning.hardware.calibration import PowerQuantity
from service.planning.hardware.calibration.facility import Cooling
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.quantity import Basis, Quantity, assumed, scaled, weakest
from service.planning.tariff.calendar import zone_of
from service.planning.units import HOUR_SECONDS, MINUTE_SECONDS
from service.resolve.catalog import Catalog, KnownGrid
from service.schemas.answer import quantity
from service.schemas.carbon import to_planning as series_of
from service.schemas.energy import MeasuredEnergy, RunLoad
from service.schemas.energy_answers import CarbonMethod, EnergyAnswer, EnergyLine, LoadProfileAnswer
from service.schemas.estimates import UtilityBillQuestion
from service.schemas.notes import Notes, lookup
from service.schemas.site import RunSite

_ENDS = ("value", "low", "high")
_MOST_INTERVALS = 10_000
"""Of the power that an answer lists: 104 days of quarters of an hour."""


_LONGEST_SHOWN_SECONDS = _MOST_INTERVALS * HOUR_SECONDS
"""Of a run whose highest interval is looked for."""


class GridFigure(NamedTuple):
    """Carbon intensity of a grid: its mean, its course in time where that is known, and what it counts."""

    mean: Quantity | None = None
    in_time: IntensitySeries | None = None
    accounting: str | None = None
    emission_rate: str = "average"

    def times(self, factor: float | MISSING) -> "GridFigure":
        """The intensity multiplied by a factor of the question, if there is one."""
        if factor is MISSING:
            return self
        mean, in_time = self.mean, self.in_time
        return self._replace(
            mean=mean and scaled(mean, factor),
            in_time=in_time and in_time._replace(values=in_time.values * factor),
        )

    @property
    def method(self) -> CarbonMethod:
        """As the shape of the API, for a mean."""
        method: CarbonMethod = {"emission_rate": self.emission_rate, "in_time": False}  # type: ignore[typeddict-item]
        if self.accounting is not None:
            method["accounting"] = self.accounting  # type: ignore[typeddict-item]
        return method


class Site(NamedTuple):
    """The figures of the building that the question or the catalog gives.

    ``pues`` is one power usage effectiveness or one for each month, None where it is not known. ``asked`` is
    the question, None where it names no site.
    """

    given: RunSite | None = None
    pues: tuple[float, ...] | None = None
    pue_basis: Basis = Basis.ASSUMED
    grid: GridFigure = GridFigure()
    """Of the question, else of the catalog."""
    marginal: GridFigure | None = None
    onsite_water_liters_per_kwh: Quantity | None = None
    offsite_water_liters_per_kwh: Quantity | None = None
    load: RunLoad = RunLoad()
    starts_at: datetime | None = None
    """In the local time of the building."""
    measured: MeasuredEnergy | None = None


def _point(value: float, basis: Basis) -> Quantity:
    return Quantity(value, value, value, basis)


def _reference(value: float | None) -> Quantity | None:
    return None if value is None else _point(value, Basis.REFERENCE)


_OTHER_ACCOUNTING = {
    "life_cycle": "the grid's figure counts the life cycle of its power plants, Scope 2 only generation",
    "provider": "the grid's figure is published by the provider, whose method may differ from Scope 2",
    "unstated": "the source of the grid's figure does not say what it counts",
}
"""What Scope 2 figures should count is generation (GHG Protocol Scope 2 Guidance, 2015)."""


def _local(question: UtilityBillQuestion, catalog: Catalog) -> datetime | None:
    """When the run starts, by the clock of the site; UTC where that is not known."""
    if question.starts_at is MISSING:
        return None
    given = question.site
    if given is MISSING:
        return question.starts_at.astimezone(UTC)
    known = catalog.sites.get(given.site_id) if given.site_id is not MISSING else None
    name = given.time_zone if given.time_zone is not MISSING else known and known.time_zone
    if not name:
        return question.starts_at.astimezone(UTC)
    return question.starts_at.astimezone(zone_of(name, "/site/time_zone"))


def _figure(grid: KnownGrid) -> GridFigure:
    mean = _reference(grid.carbon_intensity_kg_co2e_per_kwh)
    return GridFigure(mean, grid.series, grid.accounting, grid.emission_rate)


def _given_figure(question: UtilityBillQuestion, given: RunSite) -> GridFigure | None:
    """The intensity that the question gives, in time or as a mean."""
    rate, in_time = given.carbon_intensity_kg_co2e_per_kwh, given.carbon_intensity_series
    pointer = "/site/carbon_intensity_series"
    if in_time is MISSING:
        return None if rate is MISSING else GridFigure(assumed(rate))
    if rate is not MISSING:
        raise PlanningError("INTENSITY_TWICE", pointer, "give the mean or the series")
    if question.starts_at is MISSING:
        detail = "an intensity in time needs to know when the run starts"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    return GridFigure(None, series_of(in_time, pointer))


def _marginal_figure(given: RunSite, catalog: Catalog, notes: Notes) -> GridFigure | None:
    if given.marginal_grid_id is MISSING:
        return None
    pointer = "/site/marginal_grid_id"
    grid = lookup(catalog.grids, given.marginal_grid_id, pointer)
    notes.cite(grid.source, pointer)
    if grid.emission_rate != "marginal":
        raise PlanningError("EMISSION_RATE", pointer, "the grid's figure is an average, not a marginal one")
    return _figure(grid)


def resolve_site(question: UtilityBillQuestion, catalog: Catalog, notes: Notes) -> Site:
    """The site with the catalog's figures under those of the question."""
    measured = None if question.measured is MISSING else question.measured
    asked = Site(load=question.load_profile, starts_at=_local(question, catalog), measured=measured)
    if question.site is MISSING:
        return asked
    given = question.site
    onsite = offsite = grid_id = None
    figure = GridFigure()
    pues: tuple[float, ...] | None = None
    basis = Basis.ASSUMED
    if given.site_id is not MISSING:
        known = lookup(catalog.sites, given.site_id, "/site/site_id")
        notes.cite(known.source, "/site/site_id")
        grid_id = known.grid_id
        pues, basis = (known.pue,), Basis.REFERENCE
        onsite = _reference(known.water_usage_effectiveness_liters_per_kwh)
    if given.grid_id is not MISSING:
        grid_id = given.grid_id
    if grid_id is not None:
        grid = lookup(catalog.grids, grid_id, "/site/grid_id")
        notes.cite(grid.source, "/site/grid_id")
        figure, offsite = _figure(grid), _reference(grid.water_liters_per_kwh)
    if given.pue is not MISSING:
        pues, basis = (given.pue,), Basis.ASSUMED
    if given.pue_by_month is not MISSING:
        pues, basis = tuple(given.pue_by_month), Basis.ASSUMED
    figure = (_given_figure(question, given) or figure).times(given.carbon_intensity_factor)
    if figure.accounting not in (None, "generation") and figure.emission_rate == "average":
        notes.warn("CARBON_ACCOUNTING", "/site/grid_id", _OTHER_ACCOUNTING[figure.accounting or ""])
    if given.water_usage_effectiveness_liters_per_kwh is not MISSING:
        onsite = assumed(given.water_usage_effectiveness_liters_per_kwh)
    return asked._replace(
        given=given,
        pues=pues,
        pue_basis=basis,
        grid=figure,
        marginal=_marginal_figure(given, catalog, notes),
        onsite_water_liters_per_kwh=onsite,
        offsite_water_liters_per_kwh=offsite,
    )


class Equipment(NamedTuple):
    """Energy of one kind of equipment, at the meter where the PUE is known."""

    name: str
    it_kwh: Quantity | None
    facility_kwh: Quantity | None
    source: str


class Energy(NamedTuple):
    """All equipment of a run; the sums are None where a part of them is unknown.

    ``profiles`` are the course of the power at the ends of power and duration; their energy at the meter is
    ``facility_kwh``.
    """

    equipment: tuple[Equipment, ...] = ()
    it_kwh: Quantity | None = None
    facility_kwh: Quantity | None = None
    peak_kw: Quantity | None = None
    profiles: Ends | None = None
    load: RunLoad = RunLoad()
    starts_at: datetime | None = None

    @property
    def answer(self) -> EnergyAnswer:
        """As the shape of the API."""
        lines: list[EnergyLine] = []
        answer: EnergyAnswer = {"lines": lines}
        for item in self.equipment:
            line: EnergyLine = {"name": item.name, "source": item.source}  # type: ignore[typeddict-item]
            if item.it_kwh:
                line["it_kwh"] = quantity(item.it_kwh)
            if item.facility_kwh:
                line["facility_kwh"] = quantity(item.facility_kwh)
            lines.append(line)
        if self.it_kwh:
            answer["it_kwh"] = quantity(self.it_kwh)
        if self.facility_kwh and self.peak_kw:
            answer["facility_kwh"] = quantity(self.facility_kwh)
            answer["peak_kw"] = quantity(self.peak_kw)
        if self.facility_kwh and self.it_kwh:
            answer["overhead_kwh"] = quantity(_difference(self.facility_kwh, self.it_kwh))
        if self.profiles:
            answer["load_profile"] = self._in_time(self.profiles.value)
        return answer

    def _in_time(self, profile: LoadProfile) -> LoadProfileAnswer:
        shown: LoadProfileAnswer = {
            "elapsed_seconds": profile.elapsed_seconds,
            "phases": [
                {"name": name.value, "seconds": share.seconds, "it_kwh": share.it_kwh}
                for name, share in phase_shares(profile).items()
            ],
            "interval_minutes": self.load.interval_minutes,
        }
        is_short = profile.elapsed_seconds <= _LONGEST_SHOWN_SECONDS
        if self.starts_at is not None and self.facility_kwh and is_short:
            load = series(profile, self.starts_at, self.load.interval_minutes)
            shown["first_interval_at"] = f"{load.start:%Y-%m-%dT%H:%M:%SZ}"
            shown["highest_interval_kw"] = float(load.kw.max())
            if self.load.include_intervals and len(load.kw) <= _MOST_INTERVALS + 1:
                shown["intervals_kw"] = [float(kw) for kw in load.kw]
        return shown


def _difference(larger: Quantity, smaller: Quantity) -> Quantity:
    """Of two figures that share their ends."""
    return Quantity(
        larger.value - smaller.value, larger.low - smaller.low, larger.high - smaller.high, larger.basis
    )


def _ordered(value: float, low: float, high: float, basis: Basis) -> Quantity:
    return Quantity(value, min(value, low), max(value, high), basis)


def machines_of(
    cluster: Cluster, site: Site, curves: ReferenceCurves, drawn: Quantity, limit: float
) -> list[Machines]:
    """The machines of a cluster whose devices draw ``drawn``, at the middle, low and high end."""
    given = site.given
    cooling = Cooling(given.cooling) if given else Cooling.AIR
    node, fabric = node_rates(cluster, cooling, curves.facility), fabric_watts(cluster, curves.facility)
    hosts = cluster.host_power_watts
    if hosts is not None:
        # What is given is everything beside the accelerators.
        node = fabric = None
    if given and given.fabric_power_watts_per_device is not MISSING:
        fabric = assumed(given.fabric_power_watts_per_device * cluster.accelerator_count)
    idle = curves.calibration.power.find(PowerQuantity.IDLE_SHARE, cluster.accelerator.generation)
    found = []
    for place, end in enumerate(_ENDS):
        device = at(drawn, end)
        found.append(
            Machines(
                devices=float(cluster.accelerator_count),
                nodes=float(cluster.node_count),
                device=device,
                idle=min(device, limit * getattr(idle, end)),
                limit=limit,
                node=node[place] if node else None,
                hosts=hosts.value if hosts else 0.0,
                fabric=at(fabric, end) if fabric else 0.0,
            )
        )
    return found


def _sources(run: Run, site: Site, draw: Draw | None) -> dict[str, str]:
    """Where the power of each kind of equipment comes from."""
    server, given = run.cluster.accelerator.server, "given with the question"
    host = (
        f"share of what {server.name} may draw beside its accelerators"
        if server
        else "share of the accelerators"
    )
    cooling = site.given.cooling if site.given else "air"
    is_given = site.given and site.given.fabric_power_watts_per_device is not MISSING
    return {
        "accelerators": "what the devices do, by the model of their power"
        if draw
        else "power limit, a bound",
        "hosts": f"measured {host}" if run.cluster.host_power_watts is None else given,
        "fans": f"measured share of what they cool ({cooling})",
        "power_supplies": "efficiency of the 80 PLUS Titanium class at the load of the supplies",
        "fabric": given if is_given else "switch ports of a fat tree and their optics, by bandwidth",
    }


def run_energy(run: Run, site: Site, curves: ReferenceCurves, draw: Draw | None) -> Energy:
    """Energy of accelerators and of the machines around them.

    Without the draw of a device the value is its power limit, with measured loads as its interval.
    """
    cluster, duration = run.cluster, run.duration_seconds
    limit = cluster.accelerator.power_limit_watts
    if site.measured is not None:
        return _measured(run, site, curves, limit, site.measured)
    if limit is None or duration is None:
        code = "POWER_UNKNOWN" if duration else "RATE_UNKNOWN"
        detail = "the power limit of the accelerator" if duration else "the duration"
        for name in ("it_kwh", "facility_kwh", "peak_kw"):
            run.notes.gap(f"/energy/{name}", code, f"{detail} is not known")
        return Energy()
    drawn = draw.watts if draw else curves.accelerator_power.around(limit, Basis.DATASHEET)
    machines, load = machines_of(cluster, site, curves, drawn, limit), checked_load(run, site.load)
    local = site.starts_at
    local = site.starts_at
    begins = second_of_day(local.hour, local.minute, local.second) if local else 0.0
    profiles = Ends(
        *(
            profile_at(run, each, duration, load, end=end, pue=site.pues or (1.0,), begins=begins)
            for end, each in zip(_ENDS, machines, strict=True)
        )
    )
    energy = _energy_of(run, site, profiles, drawn, _sources(run, site, draw))._replace(load=load)
    _note_intervals(run.notes, energy)
    return energy


def _note_intervals(notes: Notes, energy: Energy) -> None:
    """Why the power of every interval is not listed, where it was asked for."""
    pointer, profiles = "/energy/load_profile/intervals_kw", energy.profiles
    if not energy.load.include_intervals or profiles is None:
        return
    if energy.starts_at is None:
        notes.gap(pointer, "STARTS_AT_REQUIRED", "intervals are those of a clock: say when the run starts")
    elif energy.facility_kwh is None:
        notes.gap(pointer, "PUE_REQUIRED", "the PUE of the site is not given")
    elif profiles.value.elapsed_seconds > _MOST_INTERVALS * energy.load.interval_minutes * MINUTE_SECONDS:
        notes.gap(pointer, "SERIES_TOO_LONG", f"at most {_MOST_INTERVALS} intervals are listed")


def _measured(
    run: Run, site: Site, curves: ReferenceCurves, limit: float | None, measured: MeasuredEnergy
) -> Energy:
    """What was measured, in place of an estimate."""
    if limit is None:
        detail = "the power limit of the accelerator is not known: nothing bounds what was measured"
        run.notes.warn("MEASURED_UNCHECKED", "/measured/energy_kwh", detail)
    else:
        drawn = curves.accelerator_power.around(limit, Basis.DATASHEET)
        _, least, most = machines_of(run.cluster, site, curves, drawn, limit)
        check_measured(run, least, most, measured, site.pues)
    note_other_run(run, run.duration_seconds, measured)
    pues = site.pues or (1.0,)
    profile = measured_profile(measured, pues, site.starts_at)
    figure, source = assumed(measured.energy_kwh), f"measured, {_METERED[measured.boundary]}"
    used = metered = None
    if measured.boundary == "it":
        used = figure
    else:
        metered = figure
    if site.pues is None:
        name = "facility_kwh" if used else "it_kwh"
        run.notes.gap(f"/energy/{name}", "PUE_REQUIRED", "the PUE of the site is not given")
        if used:
            run.notes.gap("/energy/peak_kw", "PUE_REQUIRED", "the PUE of the site is not given")
    else:
        used = used or _point(it_kwh(profile), site.pue_basis)
        metered = metered or _point(facility_kwh(profile, site.starts_at), site.pue_basis)
    peak = peak_kw(profile, site.starts_at)
    return Energy(
        (Equipment("measured", used, metered, source),),
        used,
        metered,
        _point(peak, Basis.ASSUMED) if metered else None,
        Ends(profile, profile, profile),
        site.load,
        site.starts_at,
    )


_METERED = {"facility": "at the meter of the building", "it": "at the supply of the machines"}


def _energy_of(run: Run, site: Site, profiles: Ends, drawn: Quantity, sources: dict[str, str]) -> Energy:
    duration, hosts = run.duration_seconds or drawn, run.cluster.host_power_watts
    beside = hosts or Quantity(0.5, 0.0, 1.0, Basis.DATASHEET)
    bases = dict.fromkeys(EQUIPMENT, weakest(beside, duration)) | {"accelerators": weakest(drawn, duration)}
    effects = [1.0, 1.0, 1.0]
    if site.pues is not None:
        effects = [facility_kwh(each, site.starts_at) / it_kwh(each) for each in profiles]
    at_meter = _point(effects[0], site.pue_basis)
    by_name = [equipment_kwh(each) for each in profiles]
    equipment = []
    for name in EQUIPMENT:
        kwh = [each[name] for each in by_name]
        if not any(kwh):
            continue
        used = _ordered(kwh[0], kwh[1], kwh[2], bases[name])
        metered = None
        if site.pues is not None:
            each = [part * effect for part, effect in zip(kwh, effects, strict=True)]
            metered = _ordered(each[0], each[1], each[2], weakest(used, at_meter))
        equipment.append(Equipment(name, used, metered, sources[name]))
    used = _sum([item.it_kwh for item in equipment if item.it_kwh])
    energy = Energy(tuple(equipment), used, profiles=profiles, starts_at=site.starts_at)
    if site.pues is None:
        for name in ("facility_kwh", "peak_kw"):
            run.notes.gap(f"/energy/{name}", "PUE_REQUIRED", "the PUE of the site is not given")
        return energy
    metered = _sum([item.facility_kwh for item in equipment if item.facility_kwh])
    peaks = [peak_kw(each, site.starts_at) for each in profiles]
    return energy._replace(
        facility_kwh=metered, peak_kw=_ordered(peaks[0], peaks[1], peaks[2], metered.basis)
    )


def _sum(parts: list[Quantity]) -> Quantity:
    return Quantity(
        sum(part.value for part in parts),
        sum(part.low for part in parts),
        sum(part.high for part in parts),
        weakest(*parts),
    )
