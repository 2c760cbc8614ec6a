"""Resolution of the site of a run, its load profile and its measured energy."""

from datetime import UTC, datetime

from pydantic import MISSING

from service.planning.energy.site import (
    ContractInstrument,
    GridIntensity,
    LoadCourse,
    Maintenance,
    MeasuredEnergy,
    Site,
)
from service.planning.errors import PlanningError
from service.planning.hardware.calibration.facility import Cooling
from service.planning.notes import AnswerNotes
from service.planning.quantity import EvidenceBasis, Quantity, assumed
from service.planning.tariff.calendar import resolve_zone
from service.resolve.catalog import CatalogView, KnownGrid, KnownSite, resolve_row
from service.schemas.carbon import ResidualMix
from service.schemas.carbon import to_planning as series_of
from service.schemas.energy import RunLoadInput
from service.schemas.estimates import UtilityBillRequest
from service.schemas.site import RunSiteInput


def find_site(given: RunSiteInput, catalog: CatalogView) -> KnownSite | None:
    """Returns the site of the catalog that a question names, or None."""
    return None if given.site_id is MISSING else resolve_row(catalog.sites, given.site_id, "/site/site_id")


def _to_instrument(mix: ResidualMix) -> ContractInstrument:
    rate = mix.carbon_intensity_kg_co2e_per_kwh
    return ContractInstrument("residual_mix", 0.0, rate, mix.accounting, mix.source)


def _resolve_measured(question: UtilityBillRequest) -> MeasuredEnergy | None:
    given = question.measured
    if given is MISSING:
        return None
    at_facility = given.boundary == "facility"
    return MeasuredEnergy(given.energy_kwh, given.duration_seconds, given.device_count, at_facility)


def _resolve_load(given: RunLoadInput) -> LoadCourse:
    maintenance, asked = None, given.maintenance
    if asked is not MISSING:
        first = asked.first_after_seconds
        maintenance = Maintenance(
            asked.every_seconds,
            asked.duration_seconds,
            asked.every_seconds if first is MISSING else first,
            draws_idle_power=asked.power == "idle",
        )
    return LoadCourse(
        interval_minutes=given.interval_minutes,
        ramp_seconds=given.ramp_seconds,
        idle_seconds=given.idle_seconds,
        maintenance=maintenance,
        daily_shape=() if given.daily_shape is MISSING else tuple(given.daily_shape),
        include_intervals=given.include_intervals,
    )


def _to_reference_quantity(value: float | None) -> Quantity | None:
    return None if value is None else Quantity(value, value, value, EvidenceBasis.REFERENCE)


_OTHER_ACCOUNTING = {
    "life_cycle": "the grid's figure counts the life cycle of its power plants, Scope 2 only generation",
    "provider": "the grid's figure is published by the provider, whose method may differ from Scope 2",
    "unstated": "the source of the grid's figure does not say what it counts",
}
"""Reasons why a figure is not a Scope 2 figure, which counts generation (GHG Protocol Scope 2 Guidance,
2015).
"""


def _resolve_start(question: UtilityBillRequest, catalog: CatalogView) -> datetime | None:
    """Returns the start of the run on the clock of the site, or in UTC if that clock is unknown."""
    if question.starts_at is MISSING:
        return None
    given = question.site
    if given is MISSING:
        return question.starts_at.astimezone(UTC)
    known = catalog.sites.get(given.site_id) if given.site_id is not MISSING else None
    name = given.time_zone if given.time_zone is not MISSING else known and known.time_zone
    if not name:
        return question.starts_at.astimezone(UTC)
    return question.starts_at.astimezone(resolve_zone(name, "/site/time_zone"))


def _to_grid_intensity(grid: KnownGrid) -> GridIntensity:
    mean = _to_reference_quantity(grid.carbon_intensity_kg_co2e_per_kwh)
    return GridIntensity(mean, grid.series, grid.accounting, grid.emission_rate)


def _resolve_intensity(question: UtilityBillRequest, given: RunSiteInput) -> GridIntensity | None:
    """Returns the carbon intensity of the question, as a series or a mean."""
    rate, in_time = given.carbon_intensity_kg_co2e_per_kwh, given.carbon_intensity_series
    pointer = "/site/carbon_intensity_series"
    if in_time is MISSING:
        return None if rate is MISSING else GridIntensity(assumed(rate))
    if rate is not MISSING:
        raise PlanningError("INTENSITY_TWICE", pointer, "give either the mean or the series")
    if question.starts_at is MISSING:
        detail = "a series of carbon intensities needs the start of the run"
        raise PlanningError("STARTS_AT_REQUIRED", "/starts_at", detail)
    return GridIntensity(None, series_of(in_time, pointer))


def _resolve_marginal(given: RunSiteInput, catalog: CatalogView, notes: AnswerNotes) -> GridIntensity | None:
    if given.marginal_grid_id is MISSING:
        return None
    pointer = "/site/marginal_grid_id"
    grid = resolve_row(catalog.grids, given.marginal_grid_id, pointer)
    notes.cite(grid.source, pointer)
    if grid.emission_rate != "marginal":
        raise PlanningError("EMISSION_RATE", pointer, "the grid's figure is an average, not a marginal one")
    return _to_grid_intensity(grid)


def resolve_site(question: UtilityBillRequest, catalog: CatalogView, notes: AnswerNotes) -> Site:
    """Returns the site, with the catalog's figures as defaults for those of the question."""
    asked = Site(
        load=_resolve_load(question.load_profile),
        starts_at=_resolve_start(question, catalog),
        measured=_resolve_measured(question),
    )
    if question.site is MISSING:
        return asked
    given = question.site
    onsite = offsite = grid_id = None
    figure = GridIntensity()
    pues: tuple[float, ...] | None = None
    basis = EvidenceBasis.ASSUMED
    if given.site_id is not MISSING:
        known = resolve_row(catalog.sites, given.site_id, "/site/site_id")
        notes.cite(known.source, "/site/site_id")
        grid_id = known.grid_id
        pues, basis = (known.pue,), EvidenceBasis.REFERENCE
        onsite = _to_reference_quantity(known.water_usage_effectiveness_liters_per_kwh)
    if given.grid_id is not MISSING:
        grid_id = given.grid_id
    if grid_id is not None:
        grid = resolve_row(catalog.grids, grid_id, "/site/grid_id")
        notes.cite(grid.source, "/site/grid_id")
        figure, offsite = _to_grid_intensity(grid), _to_reference_quantity(grid.water_liters_per_kwh)
    if given.pue is not MISSING:
        pues, basis = (given.pue,), EvidenceBasis.ASSUMED
    if given.pue_by_month is not MISSING:
        pues, basis = tuple(given.pue_by_month), EvidenceBasis.ASSUMED
    figure = _resolve_intensity(question, given) or figure
    if given.carbon_intensity_factor is not MISSING:
        figure = figure.scale(given.carbon_intensity_factor)
    if figure.accounting not in (None, "generation") and figure.emission_rate == "average":
        notes.warn("CARBON_ACCOUNTING", "/site/grid_id", _OTHER_ACCOUNTING[figure.accounting or ""])
    if given.water_usage_effectiveness_liters_per_kwh is not MISSING:
        onsite = assumed(given.water_usage_effectiveness_liters_per_kwh)
    fabric, mix = given.fabric_power_watts_per_device, given.residual_mix
    return asked._replace(
        is_given=True,
        cooling=Cooling(given.cooling),
        fabric_watts_per_device=None if fabric is MISSING else fabric,
        instruments=tuple(
            ContractInstrument(
                each.kind, each.share, each.carbon_intensity_kg_co2e_per_kwh, each.accounting, each.source
            )
            for each in given.contracts
        ),
        residual_mix=None if mix is MISSING else _to_instrument(mix),
        pues=pues,
        pue_basis=basis,
        grid=figure,
        marginal=_resolve_marginal(given, catalog, notes),
        onsite_water_liters_per_kwh=onsite,
        offsite_water_liters_per_kwh=offsite,
    )
