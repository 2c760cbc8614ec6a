"""What if a run began at another time: cost and emissions of every start of a window."""

from datetime import UTC
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.estimates.allowance import spend_effort
from service.estimates.electricity import build_metered_load, resolve_start
from service.estimates.rates import plan_run
from service.planning.cost import round_amount
from service.planning.energy.carbon import IntensitySeries, sample_intensities
from service.planning.energy.site import Site
from service.planning.errors import PlanningError
from service.planning.estimates.energy import RunEnergy, estimate_energy
from service.planning.estimates.power import estimate_draw
from service.planning.notes import AnswerNotes
from service.planning.scheduling.shift import (
    StartTimes,
    build_starts,
    check_shift_length,
    compute_sliding_sums,
    compute_start_costs,
    estimate_pairs_effort,
)
from service.planning.tariff.bill import MeteredLoad
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.contract import TariffContract, relocate_errors, resolve_contract
from service.resolve.site import find_site, resolve_site
from service.schemas.answer import to_evidence, to_quantity
from service.schemas.base import MoneyAmount
from service.schemas.what_if import StartFigures, StartShiftEstimate, StartShiftEstimateRequest


class MovableRun(NamedTuple):
    """A run that may begin at several moments: its load at the first, and where it is billed."""

    starts: StartTimes
    load: MeteredLoad
    contract: TariffContract | None


class StartCosts(NamedTuple):
    """What each start costs, rounded to the currency."""

    amounts: list[Decimal]
    currency_code: str

    @property
    def ranked(self) -> NDArray[np.float64]:
        """As numbers."""
        return np.array([float(amount) for amount in self.amounts])

    def get_amount(self, place: int) -> MoneyAmount:
        """Of one start."""
        return {"amount": f"{self.amounts[place]:f}", "currency_code": self.currency_code}


class ShiftedStarts(NamedTuple):
    """Every start of a window with its figures, at the middle of power and duration."""

    moves: MovableRun
    costs: StartCosts | None
    emissions: NDArray[np.float64] | None


def shift_run(
    question: StartShiftEstimateRequest,
    energy: RunEnergy,
    site: Site,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> ShiftedStarts:
    """Cost and emissions of a run whose energy is known from every start; what is not known is a gap."""
    moves = _build_moves(question, energy, site, catalog, notes)
    return ShiftedStarts(
        moves, _estimate_costs(question, moves, notes), _estimate_emissions(moves, site, notes)
    )


def estimate_shift(question: StartShiftEstimateRequest, catalog: CatalogView) -> StartShiftEstimate:
    """The bill and the emissions of every start of a window."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    question = question.model_copy(update={"starts_at": question.window.earliest_start_at})
    notes, site = run.notes, resolve_site(question, catalog, run.notes)
    energy = estimate_energy(run, site, estimate_draw(run))
    if energy.facility_kwh is None or energy.profiles is None or run.duration_seconds is None:
        raise _build_unknown_error()
    moves, costs, emissions = shift_run(question, energy, site, catalog, notes)
    order = _list_best_starts(costs, emissions)
    answer: StartShiftEstimate = {
        "starts_compared": moves.starts.number,
        "duration_seconds": to_quantity(run.duration_seconds),
        "facility_kwh": to_quantity(energy.facility_kwh),
        "first": _to_start(0, moves, costs, emissions),
        "best": [_to_start(place, moves, costs, emissions) for place in order],
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if costs is not None:
        answer["cheapest"] = _to_start(_find_least_start(costs.ranked, emissions), moves, costs, emissions)
        answer["highest_electricity"] = costs.get_amount(int(np.argmax(costs.ranked)))
    if emissions is not None:
        answer["cleanest"] = _to_start(
            _find_least_start(emissions, costs.ranked if costs else None), moves, costs, emissions
        )
        answer["highest_location_based_kg_co2e"] = float(emissions.max())
    return answer


def _build_unknown_error() -> PlanningError:
    detail = "to move a run, its time and its energy at the meter must be known"
    return PlanningError("ENERGY_UNKNOWN", "/site", detail)


def _build_moves(
    question: StartShiftEstimateRequest,
    energy: RunEnergy,
    site: Site,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> MovableRun:
    """The run's load at the first start, on the clock of the site; refuses one whose shape depends on it."""
    given, profiles = question.site, energy.profiles
    if given is MISSING or profiles is None:
        raise _build_unknown_error()
    if profiles.value.is_seasonal or question.load_profile.daily_shape is not MISSING:
        detail = "the load depends on the hour or the month: its shape is not the same at every start"
        raise PlanningError("SHAPE_OF_THE_CLOCK", "/load_profile", detail)
    known, contract = find_site(given, catalog), None
    electricity = given.electricity
    has_tariff = electricity is not MISSING and electricity.price_per_kwh is MISSING
    if has_tariff or (electricity is MISSING and known is not None and known.tariff_id is not None):
        contract = resolve_contract(question, given, catalog, notes)
    window, minutes = question.window, question.load_profile.interval_minutes
    starts = build_starts(window.earliest_start_at, window.latest_start_at, window.step_minutes, minutes)
    local = resolve_start(question, contract, notes)[0] if contract else site.starts_at
    load = build_metered_load(profiles.value, local or window.earliest_start_at, minutes)
    check_shift_length(load, starts)
    return MovableRun(starts, load, contract)


def _estimate_costs(
    question: StartShiftEstimateRequest, moves: MovableRun, notes: AnswerNotes
) -> StartCosts | None:
    if moves.contract is None:
        code, detail = "PRICE_REQUIRED", "no tariff is given"
        if question.site is not MISSING and question.site.electricity is not MISSING:
            code, detail = "PRICE_NOT_IN_TIME", "at a flat price every start costs the same"
        notes.add_gap("/cheapest", code, detail)
        return None
    point = moves.contract.point
    with relocate_errors(moves.contract.pointer):
        costs = compute_start_costs(
            point, moves.load, moves.starts, lambda effort: spend_effort(effort, "/window")
        )
    currency, factor = point.tariff.currency_code, moves.contract.price_factor
    return StartCosts([round_amount(cost * factor, currency) for cost in costs], currency)


def _estimate_emissions(moves: MovableRun, site: Site, notes: AnswerNotes) -> NDArray[np.float64] | None:
    """Emissions in kg CO2e by start, at the mean intensity of the grid in time."""
    if site.grid.in_time is None:
        code = "GRID_REQUIRED" if site.grid.mean is None else "GRID_NOT_IN_TIME"
        notes.add_gap("/cleanest", code, "the emissions of the grid are not known in time")
        return None
    spend_effort(estimate_pairs_effort(moves.load, moves.starts), "/window")
    found = _compute_emissions(site.grid.in_time, moves)
    if found is None:
        detail = "the series of the grid does not cover every start of the window"
        notes.add_gap("/cleanest", "GRID_SERIES_SHORT", detail)
    return found


def _compute_emissions(in_time: IntensitySeries, moves: MovableRun) -> NDArray[np.float64] | None:
    starts, load = moves.starts, moves.load
    step = starts.step_minutes // load.interval_minutes
    whole = load._replace(kw=np.ones(load.kw.size + step * (starts.number - 1)))
    rates = sample_intensities(in_time, whole)
    if np.isnan(rates).any():
        return None
    return compute_sliding_sums(rates * (load.interval_minutes / 60.0), load.kw, 0, step, starts.number)


def _find_least_start(first: NDArray[np.float64], second: NDArray[np.float64] | None) -> int:
    """The start with the least of the first figures; of equals that with the least of the second."""
    places = np.arange(first.size)
    return int(np.lexsort((places, places if second is None else second, first))[0])


def _list_best_starts(costs: StartCosts | None, emissions: NDArray[np.float64] | None) -> list[int]:
    """Starts that no other betters in both, from the cheapest to the cleanest."""
    if costs is None or emissions is None:
        figures = costs.ranked if costs else emissions
        return [] if figures is None else [int(np.argmin(figures))]
    ranked = costs.ranked
    best: list[int] = []
    lowest = np.inf
    for place in np.lexsort((np.arange(ranked.size), emissions, ranked)):
        if emissions[place] < lowest:
            best.append(int(place))
            lowest = emissions[place]
    return best


def _to_start(
    place: int, moves: MovableRun, costs: StartCosts | None, emissions: NDArray[np.float64] | None
) -> StartFigures:
    moment = moves.starts.get_start(place).astimezone(UTC)
    answer: StartFigures = {"starts_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    if costs is not None:
        answer["electricity"] = costs.get_amount(place)
    if emissions is not None:
        answer["location_based_kg_co2e"] = float(emissions[place])
    return answer
