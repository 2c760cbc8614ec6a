"""Carbon and water of a run: location-based, market-based, marginal and embodied emissions, and litres."""

from typing import Final, NamedTuple

from service.planning.energy.carbon import (
    ContractedSupply,
    IntensitySeries,
    IntervalIntensity,
    compute_emissions,
    embodied_kg_co2e,
    household_months,
    location_based_kg_co2e,
    market_based_kg_co2e,
    software_carbon_intensity,
)
from service.planning.energy.embodied import EmbodiedTerms
from service.planning.energy.load_profile import LoadProfile, build_load_series
from service.planning.energy.site import ContractInstrument, GridIntensity, Site
from service.planning.energy.water import offsite_liters, onsite_liters
from service.planning.errors import PlanningError
from service.planning.estimates.energy import RunEnergy
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.notes import AnswerNotes
from service.planning.quantity import (
    EvidenceBasis,
    Quantity,
    assumed,
    combine,
    exact,
    inverted,
    scaled,
    weakest,
)
from service.planning.tariff.allowance import SpendEffort
from service.planning.tariff.effort import BillingEffort, EffortShare
from service.planning.units import DAY_SECONDS, HOUR_SECONDS, MILLION, MINUTE_SECONDS

_HOUR, _QUARTER, _SHORTEST = 60, 15, 5
_YEAR_SECONDS = 366 * DAY_SECONDS
_WHOLE = 1.0 - 1e-9
_SHARES = 1.0 + 1e-9
_INTERVAL_STEPS: Final = 0.25
"""Steps of an interval of a load that an intensity in time is multiplied with."""
_GIVEN: Final = "given with the question"


class GridEmissions(NamedTuple):
    """Emissions of a run's electricity at the intensity of a grid."""

    kg_co2e: Quantity
    grid: GridIntensity
    is_in_time: bool
    """True if the emissions are summed over the intervals of the run."""


class InstrumentEmissions(NamedTuple):
    """Emissions of the electricity of one contract or certificate, at the middle of the energy."""

    instrument: ContractInstrument
    kwh: float
    kg_co2e: float


class MarketBasedEmissions(NamedTuple):
    """Emissions of a run's electricity as it was bought, in all and by instrument."""

    kg_co2e: Quantity
    accounting: str
    instruments: tuple[InstrumentEmissions, ...]


class EmbodiedPart(NamedTuple):
    """Emissions of making the machines of one kind, as far as a run uses them up."""

    name: str
    kg_co2e: Quantity
    source: str


class EmbodiedEmissions(NamedTuple):
    """Emissions of making the machines of a run, in all and by kind of machine."""

    kg_co2e: Quantity
    parts: tuple[EmbodiedPart, ...]


class UnitEmissions(NamedTuple):
    """Software carbon intensity of one functional unit: ``run``, ``million_tokens`` or ``request``."""

    unit: str
    kg_co2e: Quantity


class RunCarbon(NamedTuple):
    """Emissions of a run by method; None for what is not known."""

    location_based: GridEmissions | None = None
    marginal: GridEmissions | None = None
    market_based: MarketBasedEmissions | None = None
    embodied: EmbodiedEmissions | None = None
    intensities: tuple[UnitEmissions, ...] = ()
    household_months: float | None = None
    """Months in which a household takes as much energy: an illustration."""


class RunWater(NamedTuple):
    """Litres of water that a run takes on its site and at power plants; None for what is not known."""

    onsite_liters: Quantity | None
    offsite_liters: Quantity | None

    @property
    def liters(self) -> Quantity | None:
        """Litres of both places together."""
        if self.onsite_liters is None or self.offsite_liters is None:
            return None
        return combine(lambda on, off: on + off, self.onsite_liters, self.offsite_liters)


def estimate_carbon(
    run: Run, energy: RunEnergy, site: Site, terms: EmbodiedTerms, spend: SpendEffort
) -> RunCarbon:
    """Returns the emissions of a run; the notes of the run name what is not known.

    ``spend`` counts the effort of an intensity in time before it is computed, and may refuse it.
    Raises :class:`PlanningError` for contracts of more than all energy, or of two ways of accounting.
    """
    notes = run.notes
    location = estimate_location_based(energy, site, notes, spend)
    marginal = _estimate_marginal(energy, site, notes, spend)
    market = _estimate_market_based(energy, site, notes)
    embodied = _estimate_embodied(run, site, terms)
    return RunCarbon(
        location,
        marginal,
        market,
        embodied,
        _estimate_intensities(run, location and location.kg_co2e, embodied and embodied.kg_co2e),
        combine(household_months, energy.facility_kwh).value if energy.facility_kwh else None,
    )


def estimate_location_based(
    energy: RunEnergy, site: Site, notes: AnswerNotes, spend: SpendEffort
) -> GridEmissions | None:
    """Returns emissions of a run's electricity at the grid's average; None, with a gap, if unknown."""
    pointer, grid = "/carbon/location_based_kg_co2e", site.grid
    if grid.emission_rate == "marginal":
        detail = "the grid's figure is of one kWh more, not of the average one: name a grid with averages"
        notes.add_gap(pointer, "AVERAGE_REQUIRED", detail)
        return None
    if grid.mean is None and grid.in_time is None:
        notes.add_gap(pointer, "GRID_REQUIRED", "neither a grid nor a carbon intensity is given")
        return None
    return _estimate_grid_emissions(grid, energy, site, pointer, notes, spend=spend)


def _estimate_marginal(
    energy: RunEnergy, site: Site, notes: AnswerNotes, spend: SpendEffort
) -> GridEmissions | None:
    grid = site.marginal or (site.grid if site.grid.emission_rate == "marginal" else None)
    if grid is None:
        return None
    return _estimate_grid_emissions(grid, energy, site, "/carbon/marginal_kg_co2e", notes, spend=spend)


def _estimate_grid_emissions(
    grid: GridIntensity,
    energy: RunEnergy,
    site: Site,
    pointer: str,
    notes: AnswerNotes,
    *,
    spend: SpendEffort,
) -> GridEmissions | None:
    """Sums over intervals where series and start are known, and takes the mean elsewhere."""
    if grid.mean is None and grid.in_time is None:
        return None
    if energy.facility_kwh is None:
        notes.add_gap(pointer, "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return None
    if grid.in_time is not None and site.starts_at is not None:
        found = _sum_in_time(grid, energy, site, pointer, notes, spend=spend)
        return found and GridEmissions(found, grid, is_in_time=True)
    if grid.mean is None:
        return None
    if grid.in_time is not None:
        detail = "the grid's intensity varies in time: without starts_at its mean is taken"
        notes.warn("STARTS_AT_UNKNOWN", "/starts_at", detail)
    mean = combine(location_based_kg_co2e, energy.facility_kwh, grid.mean)
    return GridEmissions(mean, grid, is_in_time=False)


def _sum_in_time(
    grid: GridIntensity,
    energy: RunEnergy,
    site: Site,
    pointer: str,
    notes: AnswerNotes,
    *,
    spend: SpendEffort,
) -> Quantity | None:
    """Sums over the intervals of a run; energy that the series does not cover counts at the mean."""
    in_time, profiles, starts_at = grid.in_time, energy.profiles, site.starts_at
    if in_time is None or profiles is None or starts_at is None or energy.facility_kwh is None:
        return None
    minutes = _select_interval_minutes(in_time, profiles.high.elapsed_seconds)
    spend(_estimate_effort(sum(profile.elapsed_seconds for profile in profiles), minutes), "/site")

    def compute_kilograms(profile: LoadProfile) -> tuple[float, float]:
        load = build_load_series(profile, starts_at, minutes)
        found = compute_emissions(in_time, load)
        left = float(load.kw.sum()) * minutes * MINUTE_SECONDS / HOUR_SECONDS * (1.0 - found.covered_share)
        mean = grid.mean.value if grid.mean else 0.0
        return found.kg_co2e + left * mean, found.covered_share

    (value, share), (low, _), (high, _) = (compute_kilograms(profile) for profile in profiles)
    if share < _WHOLE:
        detail = f"the series covers {share:.1%} of the run's energy; the rest is taken at the mean"
        if grid.mean is None:
            notes.add_gap(pointer, "SERIES_TOO_SHORT", "the series ends before the run and no mean is known")
            return None
        notes.warn("SERIES_TOO_SHORT", "/site", detail)
    basis = weakest(energy.facility_kwh, grid.mean or assumed(0.0))
    return Quantity(value, min(low, value), max(high, value), basis)


def _select_interval_minutes(in_time: IntensitySeries, elapsed_seconds: float) -> int:
    """Returns minutes that no hour of a series cuts, in any zone; an hour for runs of more than a year."""
    if elapsed_seconds > _YEAR_SECONDS:
        return _HOUR
    is_short = isinstance(in_time, IntervalIntensity) and in_time.interval_minutes == _SHORTEST
    return _SHORTEST if is_short else _QUARTER


def _estimate_effort(seconds: float, interval_minutes: int) -> BillingEffort:
    intervals = seconds / (interval_minutes * MINUTE_SECONDS)
    share = EffortShare(_INTERVAL_STEPS * intervals, f"{intervals:,.0f} intervals at an intensity in time")
    return BillingEffort((share,))


def _estimate_market_based(energy: RunEnergy, site: Site, notes: AnswerNotes) -> MarketBasedEmissions | None:
    pointer, contracts, residual = "/carbon/market_based_kg_co2e", site.instruments, site.residual_mix
    if not contracts and residual is None:
        notes.add_gap(pointer, "CONTRACT_UNKNOWN", "no contract or certificate of the electricity is known")
        return None
    bought = sum(contract.share for contract in contracts)
    if bought > _SHARES:
        raise PlanningError(
            "CONTRACT_SHARES", "/site/contracts", "the shares are more than all of the energy"
        )
    counted = {contract.accounting for contract in contracts} | ({residual.accounting} if residual else set())
    if len(counted) > 1:
        detail = "emissions of generation and of the life cycle do not add up: state all of them alike"
        raise PlanningError("ACCOUNTING_MIXED", "/site/contracts", detail)
    if residual is None and bought < _WHOLE:
        detail = f"{1.0 - bought:.0%} of the energy has no contract: give the residual mix"
        notes.add_gap(pointer, "RESIDUAL_MIX_REQUIRED", detail)
        return None
    if energy.facility_kwh is None:
        notes.add_gap(pointer, "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return None
    supplies = [ContractedSupply(each.share, each.kg_co2e_per_kwh) for each in contracts]
    rest = residual.kg_co2e_per_kwh if residual else 0.0
    found = combine(lambda kwh: market_based_kg_co2e(kwh, supplies, rest), energy.facility_kwh)
    used = list(contracts)
    if residual and bought < _WHOLE:
        used.append(residual._replace(share=1.0 - bought))
    kwh = energy.facility_kwh.value
    return MarketBasedEmissions(
        found,
        counted.pop(),
        tuple(
            InstrumentEmissions(each, each.share * kwh, each.share * kwh * each.kg_co2e_per_kwh)
            for each in used
        ),
    )


def _estimate_device_hours(run: Run, site: Site) -> Quantity | None:
    measured, duration = site.measured, run.duration_seconds
    if measured is not None:
        return assumed(measured.device_count * measured.duration_seconds / HOUR_SECONDS)
    return duration and scaled(duration, run.case.cluster.accelerator_count / HOUR_SECONDS)


def _estimate_embodied(run: Run, site: Site, terms: EmbodiedTerms) -> EmbodiedEmissions | None:
    cluster, facility, hours = run.case.cluster, run.case.curves.facility, _estimate_device_hours(run, site)
    device = cluster.accelerator.embodied_kg_co2e
    if terms.kg_co2e_per_device is not None:
        device = assumed(terms.kg_co2e_per_device)
    if device is None or hours is None:
        code, detail = "RATE_UNKNOWN", "the duration is not known"
        if hours:
            code = "ASSESSMENT_UNKNOWN"
            detail = "no life-cycle assessment of the accelerator is known"
        run.notes.add_gap("/carbon/embodied_kg_co2e", code, detail)
        return None
    of_server, years, used = (
        reference.to_quantity(EvidenceBasis.REFERENCE) if given is None else assumed(given)
        for given, reference in (
            (terms.kg_co2e_per_server, facility.server_embodied_kg_co2e),
            (terms.lifetime_years, facility.lifetime_years),
            (terms.utilization, facility.lifetime_utilization),
        )
    )
    server = scaled(of_server, cluster.node_count / cluster.accelerator_count)
    sources = (
        "the catalog" if terms.kg_co2e_per_device is None else _GIVEN,
        facility.server_embodied_kg_co2e.source if terms.kg_co2e_per_server is None else _GIVEN,
    )
    parts = tuple(
        EmbodiedPart(name, combine(embodied_kg_co2e, hours, made, inverted(years), inverted(used)), source)
        for name, made, source in zip(("accelerators", "servers"), (device, server), sources, strict=True)
    )
    return EmbodiedEmissions(combine(lambda a, b: a + b, *(part.kg_co2e for part in parts)), parts)


def _estimate_intensities(
    run: Run, operational: Quantity | None, embodied: Quantity | None
) -> tuple[UnitEmissions, ...]:
    if operational is None or embodied is None:
        detail = "needs the location-based and the embodied emissions"
        run.notes.add_gap("/carbon/software_carbon_intensity", "CARBON_UNKNOWN", detail)
        return ()
    units = {"run": exact(1.0)}
    if run.tokens is not None and run.tokens.low >= 1.0:
        units["million_tokens"] = scaled(run.tokens, 1.0 / MILLION)
    if not isinstance(run, TrainingRun) and run.requests is not None and run.requests.low >= 1.0:
        units["request"] = run.requests
    return tuple(
        UnitEmissions(name, combine(software_carbon_intensity, operational, embodied, inverted(count)))
        for name, count in units.items()
    )


def estimate_water(energy: RunEnergy, site: Site, notes: AnswerNotes) -> RunWater:
    """Returns the litres of water of a run on its site and off it; gaps in ``notes`` if unknown."""
    onsite, offsite = site.onsite_water_liters_per_kwh, site.offsite_water_liters_per_kwh
    found = RunWater(
        combine(onsite_liters, energy.it_kwh, onsite) if onsite and energy.it_kwh else None,
        combine(offsite_liters, energy.facility_kwh, offsite) if offsite and energy.facility_kwh else None,
    )
    if found.onsite_liters is None:
        detail = "needs the energy and the site's water usage effectiveness"
        notes.add_gap("/water/onsite_liters", "WATER_UNKNOWN", detail)
    if found.offsite_liters is None:
        notes.add_gap("/water/offsite_liters", "WATER_UNKNOWN", "needs the energy and the grid's water")
    if found.onsite_liters is None or found.offsite_liters is None:
        detail = "needs the energy, the site's water usage effectiveness and the grid's water"
        notes.add_gap("/water_liters", "WATER_UNKNOWN", detail)
    return found
