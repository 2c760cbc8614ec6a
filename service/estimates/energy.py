"""Energy of a run on its site: accelerators and hosts, each a line of its own."""

from typing import NamedTuple

from pydantic import MISSING

from service.estimates.power import Draw
from service.estimates.run import Run
from service.planning.cluster import host_power
from service.planning.curves import ReferenceCurves
from service.planning.power import WATTS_PER_KILOWATT, energy_kwh, facility_kwh, power_watts
from service.planning.quantity import Basis, Quantity, assumed, combine
from service.questions.answer import quantity
from service.questions.catalog import Catalog
from service.questions.energy_answers import EnergyAnswer, EnergyLine
from service.questions.estimates import UtilityBillQuestion
from service.questions.notes import Notes, lookup
from service.questions.site import RunSite


class Site(NamedTuple):
    """The figures of the building that the question or the catalog gives."""

    given: RunSite | None = None
    pue: Quantity | None = None
    carbon_intensity_kg_co2e_per_kwh: Quantity | None = None
    onsite_water_liters_per_kwh: Quantity | None = None
    offsite_water_liters_per_kwh: Quantity | None = None


def _reference(value: float | None) -> Quantity | None:
    return None if value is None else Quantity(value, value, value, Basis.REFERENCE)


_OTHER_ACCOUNTING = {
    "life_cycle": "the grid's figure counts the life cycle of its power plants, Scope 2 only generation",
    "provider": "the grid's figure is published by the provider, whose method may differ from Scope 2",
    "unstated": "the source of the grid's figure does not say what it counts",
}
"""What Scope 2 figures should count is generation (GHG Protocol Scope 2 Guidance, 2015)."""


def resolve_site(question: UtilityBillQuestion, catalog: Catalog, notes: Notes) -> Site:
    """The site with the catalog's figures under those of the question."""
    if question.site is MISSING:
        return Site()
    given = question.site
    pue = intensity = onsite = offsite = grid_id = None
    if given.site_id is not MISSING:
        known = lookup(catalog.sites, given.site_id, "/site/site_id")
        notes.cite(known.source, "/site/site_id")
        grid_id = known.grid_id
        pue, onsite = _reference(known.pue), _reference(known.water_usage_effectiveness_liters_per_kwh)
    if given.grid_id is not MISSING:
        grid_id = given.grid_id
    if grid_id is not None:
        grid = lookup(catalog.grids, grid_id, "/site/grid_id")
        notes.cite(grid.source, "/site/grid_id")
        intensity = _reference(grid.carbon_intensity_kg_co2e_per_kwh)
        offsite = _reference(grid.water_liters_per_kwh)
        if grid.accounting != "generation" and given.carbon_intensity_kg_co2e_per_kwh is MISSING:
            notes.warn("CARBON_ACCOUNTING", "/site/grid_id", _OTHER_ACCOUNTING[grid.accounting])
    if given.pue is not MISSING:
        pue = assumed(given.pue)
    if given.carbon_intensity_kg_co2e_per_kwh is not MISSING:
        intensity = assumed(given.carbon_intensity_kg_co2e_per_kwh)
    if given.water_usage_effectiveness_liters_per_kwh is not MISSING:
        onsite = assumed(given.water_usage_effectiveness_liters_per_kwh)
    return Site(given, pue, intensity, onsite, offsite)


class Equipment(NamedTuple):
    """Power and energy of one kind of equipment; energy at the meter where the PUE is known."""

    name: str
    watts: Quantity
    it_kwh: Quantity
    facility_kwh: Quantity | None


class Energy(NamedTuple):
    """All equipment of a run; the sums are None where a part of them is unknown."""

    equipment: tuple[Equipment, ...] = ()
    it_kwh: Quantity | None = None
    facility_kwh: Quantity | None = None
    peak_kw: Quantity | None = None

    @property
    def answer(self) -> EnergyAnswer:
        """As the shape of the API."""
        lines: list[EnergyLine] = []
        answer: EnergyAnswer = {"lines": lines}
        for item in self.equipment:
            line: EnergyLine = {"name": item.name, "it_kwh": quantity(item.it_kwh)}  # type: ignore[typeddict-item]
            if item.facility_kwh:
                line["facility_kwh"] = quantity(item.facility_kwh)
            lines.append(line)
        if self.it_kwh:
            answer["it_kwh"] = quantity(self.it_kwh)
        if self.facility_kwh and self.peak_kw:
            answer["facility_kwh"] = quantity(self.facility_kwh)
            answer["peak_kw"] = quantity(self.peak_kw)
        return answer


def _sum(*parts: Quantity) -> Quantity:
    return combine(lambda *ends: sum(ends), *parts)


def run_energy(run: Run, site: Site, curves: ReferenceCurves, draw: Draw | None) -> Energy:
    """Energy of accelerators and of hosts.

    Without the draw of a device the value is its power limit, with measured loads as its interval.
    """
    cluster, duration = run.cluster, run.duration_seconds
    limit, host_watts = cluster.accelerator.power_limit_watts, host_power(cluster, curves)
    if limit is None or host_watts is None or duration is None:
        code = "POWER_UNKNOWN" if duration else "RATE_UNKNOWN"
        detail = "the power limit of the accelerator" if duration else "the duration"
        for name in ("it_kwh", "facility_kwh", "peak_kw"):
            run.notes.gap(f"/energy/{name}", code, f"{detail} is not known")
        return Energy()
    devices, nodes = float(cluster.accelerator_count), float(cluster.node_count)
    drawn = draw.watts if draw else curves.accelerator_power.around(limit, Basis.DATASHEET)
    watts = {
        "accelerators": combine(lambda w: power_watts(accelerators=devices, accelerator_watts=w), drawn),
        "hosts": combine(lambda w: power_watts(hosts=nodes, host_watts=w), host_watts),
    }
    equipment = []
    for name, power in watts.items():
        used = combine(energy_kwh, power, duration)
        metered = site.pue and combine(facility_kwh, used, site.pue)
        equipment.append(Equipment(name, power, used, metered))
    energy = Energy(tuple(equipment), it_kwh=_sum(*(item.it_kwh for item in equipment)))
    if site.pue is None:
        for name in ("facility_kwh", "peak_kw"):
            run.notes.gap(f"/energy/{name}", "PUE_REQUIRED", "the PUE of the site is not given")
        return energy
    kilowatts = combine(lambda w: w / WATTS_PER_KILOWATT, _sum(*watts.values()))
    return energy._replace(
        facility_kwh=_sum(*(item.facility_kwh for item in equipment if item.facility_kwh)),
        peak_kw=combine(facility_kwh, kilowatts, site.pue),
    )
