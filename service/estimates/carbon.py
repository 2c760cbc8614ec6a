"""Carbon and water of a run: of its electricity, as it was bought, at the margin, and of its machines."""

from pydantic import MISSING

from service.estimates.allowance import estimate_interval_effort, spend_effort
from service.planning.energy.carbon import (
    HOUSEHOLD_MONTH_KWH,
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
from service.planning.energy.load_profile import LoadProfile, build_load_series
from service.planning.energy.site import ContractInstrument, GridIntensity, Site
from service.planning.energy.water import offsite_liters, onsite_liters
from service.planning.errors import PlanningError
from service.planning.estimates import Run, TrainingRun
from service.planning.estimates.energy import RunEnergy
from service.planning.hardware.curves import ReferenceCurves
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
from service.planning.units import DAY_SECONDS, HOUR_SECONDS, MILLION, MINUTE_SECONDS
from service.schemas.answer import to_quantity
from service.schemas.bill_answers import UtilityBill
from service.schemas.energy_answers import (
    CarbonEmissions,
    CarbonMethod,
    EmbodiedEmissionsLine,
    EnergyEquivalent,
    MarketBasedEmissionsLine,
    SoftwareCarbonIntensity,
)
from service.schemas.estimates import UtilityBillRequest

_HOUR, _QUARTER, _SHORTEST = 60, 15, 5
_YEAR_SECONDS = 366 * DAY_SECONDS
_WHOLE = 1.0 - 1e-9
_SHARES = 1.0 + 1e-9


def add_carbon(
    answer: UtilityBill,
    question: UtilityBillRequest,
    run: Run,
    energy: RunEnergy,
    *,
    site: Site,
    curves: ReferenceCurves,
) -> None:
    """Emissions of the run, each figure under its own name."""
    notes, carbon = run.notes, answer["carbon"]
    location = estimate_location_based(energy, site, notes)
    if location:
        carbon["location_based_kg_co2e"] = to_quantity(location)
        carbon["location_based_method"] = _to_method(site.grid, site)
    _add_marginal(carbon, energy, site, notes)
    _add_market_based(carbon, energy, site, notes)
    embodied = _add_embodied(carbon, question, run, curves)
    _add_software_carbon_intensity(carbon, run, location, embodied)
    if energy.facility_kwh:
        months = combine(household_months, energy.facility_kwh)
        equivalent: EnergyEquivalent = {
            "name": "household_months",
            "value": months.value,
            "detail": f"an illustration: households that take {HOUSEHOLD_MONTH_KWH:.0f} kWh a month",
        }
        answer["equivalents"] = [equivalent]


def _select_interval_minutes(in_time: IntensitySeries, elapsed_seconds: float) -> int:
    """Minutes that no hour of a series cuts, of any zone; the hour for runs of more than a year."""
    if elapsed_seconds > _YEAR_SECONDS:
        return _HOUR
    is_short = isinstance(in_time, IntervalIntensity) and in_time.interval_minutes == _SHORTEST
    return _SHORTEST if is_short else _QUARTER


def _estimate_emissions_in_time(
    grid: GridIntensity, energy: RunEnergy, site: Site, pointer: str, notes: AnswerNotes
) -> Quantity | None:
    """Sum over the hours of the run; what the series does not cover at the mean, with a warning."""
    in_time, profiles, starts_at = grid.in_time, energy.profiles, site.starts_at
    if in_time is None or profiles is None or starts_at is None or energy.facility_kwh is None:
        return None
    minutes = _select_interval_minutes(in_time, profiles.high.elapsed_seconds)
    spend_effort(
        estimate_interval_effort(sum(profile.elapsed_seconds for profile in profiles), minutes), "/site"
    )

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


def _estimate_emissions(
    grid: GridIntensity, energy: RunEnergy, site: Site, pointer: str, notes: AnswerNotes
) -> Quantity | None:
    """By the hour where series and start are known, else at the mean; a gap where neither can be."""
    if grid.mean is None and grid.in_time is None:
        return None
    if energy.facility_kwh is None:
        notes.add_gap(pointer, "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return None
    if grid.in_time is not None and site.starts_at is not None:
        return _estimate_emissions_in_time(grid, energy, site, pointer, notes)
    if grid.mean is None:
        return None
    if grid.in_time is not None:
        detail = "the grid's intensity varies in time: without starts_at its mean is taken"
        notes.warn("STARTS_AT_UNKNOWN", "/starts_at", detail)
    return combine(location_based_kg_co2e, energy.facility_kwh, grid.mean)


def _to_method(grid: GridIntensity, site: Site) -> CarbonMethod:
    in_time = grid.in_time is not None and site.starts_at is not None
    method: CarbonMethod = {"emission_rate": grid.emission_rate, "in_time": in_time}  # type: ignore[typeddict-item]
    if grid.accounting is not None:
        method["accounting"] = grid.accounting  # type: ignore[typeddict-item]
    return method


def estimate_location_based(energy: RunEnergy, site: Site, notes: AnswerNotes) -> Quantity | None:
    """Emissions of the electricity at the average of the grid; what is not known is a gap."""
    pointer, grid = "/carbon/location_based_kg_co2e", site.grid
    if grid.emission_rate == "marginal":
        detail = "the grid's figure is of one kWh more, not of the average one: name a grid with averages"
        notes.add_gap(pointer, "AVERAGE_REQUIRED", detail)
        return None
    if grid.mean is None and grid.in_time is None:
        notes.add_gap(pointer, "GRID_REQUIRED", "neither a grid nor a carbon intensity is given")
        return None
    return _estimate_emissions(grid, energy, site, pointer, notes)


def _add_marginal(carbon: CarbonEmissions, energy: RunEnergy, site: Site, notes: AnswerNotes) -> None:
    grid = site.marginal or (site.grid if site.grid.emission_rate == "marginal" else None)
    if grid is None:
        return
    found = _estimate_emissions(grid, energy, site, "/carbon/marginal_kg_co2e", notes)
    if found:
        carbon["marginal_kg_co2e"] = to_quantity(found)
        carbon["marginal_method"] = _to_method(grid, site)


def _add_market_based(carbon: CarbonEmissions, energy: RunEnergy, site: Site, notes: AnswerNotes) -> None:
    pointer, contracts, residual = "/carbon/market_based_kg_co2e", site.instruments, site.residual_mix
    if not contracts and residual is None:
        notes.add_gap(pointer, "CONTRACT_UNKNOWN", "no contract or certificate of the electricity is known")
        return
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
        return
    if energy.facility_kwh is None:
        notes.add_gap(pointer, "ENERGY_UNKNOWN", "the energy at the meter is not known")
        return
    supplies = [ContractedSupply(each.share, each.kg_co2e_per_kwh) for each in contracts]
    rest = residual.kg_co2e_per_kwh if residual else 0.0
    found = combine(lambda kwh: market_based_kg_co2e(kwh, supplies, rest), energy.facility_kwh)
    carbon["market_based_kg_co2e"] = to_quantity(found)
    accounting = counted.pop()
    carbon["market_based_method"] = {
        "emission_rate": "average",
        "accounting": accounting,  # type: ignore[typeddict-item]
        "in_time": False,
    }
    lines: list[MarketBasedEmissionsLine] = [_to_market_line(each, energy.facility_kwh) for each in contracts]
    if residual and bought < _WHOLE:
        lines.append(_to_market_line(residual._replace(share=1.0 - bought), energy.facility_kwh))
    carbon["market_based_lines"] = lines


def _to_market_line(bought: ContractInstrument, energy: Quantity) -> MarketBasedEmissionsLine:
    share = bought.share
    return {
        "name": bought.kind,  # type: ignore[typeddict-item]
        "share": share,
        "kwh": share * energy.value,
        "kg_co2e": share * energy.value * bought.kg_co2e_per_kwh,
        "source": bought.source,
    }


def _compute_device_hours(run: Run, question: UtilityBillRequest) -> Quantity | None:
    if question.measured is not MISSING:
        return assumed(question.measured.device_count * question.measured.duration_seconds / HOUR_SECONDS)
    duration = run.duration_seconds
    return duration and scaled(duration, run.case.cluster.accelerator_count / HOUR_SECONDS)


def _add_embodied(
    carbon: CarbonEmissions, question: UtilityBillRequest, run: Run, curves: ReferenceCurves
) -> Quantity | None:
    pointer, given, facility = "/carbon/embodied_kg_co2e", question.embodied, curves.facility
    accelerator, cluster, hours = (
        run.case.cluster.accelerator,
        run.case.cluster,
        _compute_device_hours(run, question),
    )
    device = accelerator.embodied_kg_co2e
    if given.kg_co2e_per_device is not MISSING:
        device = assumed(given.kg_co2e_per_device)
    if device is None or hours is None:
        code = "ASSESSMENT_UNKNOWN" if hours else "RATE_UNKNOWN"
        detail = (
            "no life-cycle assessment of the accelerator is known" if hours else "the duration is not known"
        )
        run.notes.add_gap(pointer, code, detail)
        return None

    def resolve_share(member: float | object, share_name: str) -> Quantity:
        if member is not MISSING:
            return assumed(member)  # type: ignore[arg-type]
        return getattr(facility, share_name).to_quantity(EvidenceBasis.REFERENCE)  # type: ignore[no-any-return]

    server = resolve_share(given.kg_co2e_per_server, "server_embodied_kg_co2e")
    years = resolve_share(given.lifetime_years, "lifetime_years")
    used = resolve_share(given.utilization, "lifetime_utilization")
    each = scaled(server, cluster.node_count / cluster.accelerator_count)
    parts = {}
    for name, made in (("accelerators", device), ("servers", each)):
        parts[name] = combine(
            embodied_kg_co2e,
            hours,
            made,
            inverted(years),
            inverted(used),
        )
    sources = {
        "accelerators": "given with the question"
        if given.kg_co2e_per_device is not MISSING
        else "the catalog",
        "servers": "given with the question"
        if given.kg_co2e_per_server is not MISSING
        else facility.server_embodied_kg_co2e.source,
    }
    lines: list[EmbodiedEmissionsLine] = [
        {"name": name, "kg_co2e": to_quantity(part), "source": sources[name]}  # type: ignore[typeddict-item]
        for name, part in parts.items()
    ]
    both = combine(lambda a, b: a + b, *parts.values())
    carbon["embodied_kg_co2e"] = to_quantity(both)
    carbon["embodied_lines"] = lines
    return both


def _add_software_carbon_intensity(
    carbon: CarbonEmissions, run: Run, operational: Quantity | None, embodied: Quantity | None
) -> None:
    if operational is None or embodied is None:
        detail = "needs the location-based and the embodied emissions"
        run.notes.add_gap("/carbon/software_carbon_intensity", "CARBON_UNKNOWN", detail)
        return
    units = {"run": exact(1.0)}
    if run.tokens is not None and run.tokens.low >= 1.0:
        units["million_tokens"] = scaled(run.tokens, 1.0 / MILLION)
    if not isinstance(run, TrainingRun) and run.requests is not None and run.requests.low >= 1.0:
        units["request"] = run.requests
    rates: list[SoftwareCarbonIntensity] = []
    for name, count in units.items():
        rate = combine(software_carbon_intensity, operational, embodied, inverted(count))
        rates.append({"per": name, "kg_co2e": to_quantity(rate)})  # type: ignore[typeddict-item]
    carbon["software_carbon_intensity"] = rates


def add_water(answer: UtilityBill, energy: RunEnergy, site: Site, notes: AnswerNotes) -> None:
    """Litres on the site and off it, and together where both are known."""
    onsite, offsite = site.onsite_water_liters_per_kwh, site.offsite_water_liters_per_kwh
    found: list[Quantity] = []
    answer["water"] = {}
    if onsite and energy.it_kwh:
        found.append(combine(onsite_liters, energy.it_kwh, onsite))
        answer["water"]["onsite_liters"] = to_quantity(found[-1])
    else:
        detail = "needs the energy and the site's water usage effectiveness"
        notes.add_gap("/water/onsite_liters", "WATER_UNKNOWN", detail)
    if offsite and energy.facility_kwh:
        found.append(combine(offsite_liters, energy.facility_kwh, offsite))
        answer["water"]["offsite_liters"] = to_quantity(found[-1])
    else:
        notes.add_gap("/water/offsite_liters", "WATER_UNKNOWN", "needs the energy and the grid's water")
    if len(found) == 1 or not found:
        detail = "needs the energy, the site's water usage effectiveness and the grid's water"
        notes.add_gap("/water_liters", "WATER_UNKNOWN", detail)
    else:
        answer["water_liters"] = to_quantity(combine(lambda on, off: on + off, *found))
