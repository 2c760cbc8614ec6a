"""What if a run began at another time: cost and emissions of every start of a window."""

from datetime import UTC
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.estimates.allowance import take
from service.estimates.electricity import load_of, start_of
from service.estimates.rates import plan_run
from service.planning.cost import rounded
from service.planning.energy.carbon import IntensitySeries, intensities
from service.planning.energy.site import Site
from service.planning.errors import PlanningError
from service.planning.estimates.energy import Energy, estimate_energy
from service.planning.estimates.power import estimate_draw
from service.planning.notes import Notes
from service.planning.scheduling.shift import (
    Starts,
    check_reach,
    costs_of_starts,
    pairs_effort,
    sliding_sums,
    starts_within,
)
from service.planning.tariff.bill import Load
from service.resolve.calibrated import calibrated
from service.resolve.catalog import CatalogView
from service.resolve.contract import Contract, located, resolve_contract
from service.resolve.site import find_site, resolve_site
from service.schemas.answer import evidence, quantity
from service.schemas.base import MoneyAmount
from service.schemas.what_if import ShiftAnswer, ShiftQuestion, StartAnswer


class Moves(NamedTuple):
    """A run that may begin at several moments: its load at the first, and where it is billed."""

    starts: Starts
    load: Load
    contract: Contract | None


class Costs(NamedTuple):
    """What each start costs, rounded to the currency."""

    amounts: list[Decimal]
    currency_code: str

    @property
    def ranked(self) -> NDArray[np.float64]:
        """As numbers."""
        return np.array([float(amount) for amount in self.amounts])

    def at(self, place: int) -> MoneyAmount:
        """Of one start."""
        return {"amount": f"{self.amounts[place]:f}", "currency_code": self.currency_code}


class Shifted(NamedTuple):
    """Every start of a window with its figures, at the middle of power and duration."""

    moves: Moves
    costs: Costs | None
    emissions: NDArray[np.float64] | None


def shifted(
    question: ShiftQuestion, energy: Energy, site: Site, catalog: CatalogView, notes: Notes
) -> Shifted:
    """Cost and emissions of a run whose energy is known from every start; what is not known is a gap."""
    moves = _moves(question, energy, site, catalog, notes)
    return Shifted(moves, _costs(question, moves, notes), _emissions(moves, site, notes))


def estimate_shift(question: ShiftQuestion, catalog: CatalogView) -> ShiftAnswer:
    """The bill and the emissions of every start of a window."""
    catalog = calibrated(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    question = question.model_copy(update={"starts_at": question.window.earliest_start_at})
    notes, site = run.notes, resolve_site(question, catalog, run.notes)
    energy = estimate_energy(run, site, estimate_draw(run))
    if energy.facility_kwh is None or energy.profiles is None or run.duration_seconds is None:
        raise _refuse_unknown()
    moves, costs, emissions = shifted(question, energy, site, catalog, notes)
    order = _best(costs, emissions)
    answer: ShiftAnswer = {
        "starts_compared": moves.starts.number,
        "duration_seconds": quantity(run.duration_seconds),
        "facility_kwh": quantity(energy.facility_kwh),
        "first": _start(0, moves, costs, emissions),
        "best": [_start(place, moves, costs, emissions) for place in order],
        "evidence": evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if costs is not None:
        answer["cheapest"] = _start(_least(costs.ranked, emissions), moves, costs, emissions)
        answer["highest_electricity"] = costs.at(int(np.argmax(costs.ranked)))
    if emissions is not None:
        answer["cleanest"] = _start(
            _least(emissions, costs.ranked if costs else None), moves, costs, emissions
        )
        answer["highest_location_based_kg_co2e"] = float(emissions.max())
    return answer


def _refuse_unknown() -> PlanningError:
    detail = "to move a run, its time and its energy at the meter must be known"
    return PlanningError("ENERGY_UNKNOWN", "/site", detail)


def _moves(question: ShiftQuestion, energy: Energy, site: Site, catalog: CatalogView, notes: Notes) -> Moves:
    """The run's load at the first start, on the clock of the site; refuses one whose shape depends on it."""
    given, profiles = question.site, energy.profiles
    if given is MISSING or profiles is None:
        raise _refuse_unknown()
    if profiles.value.is_seasonal or question.load_profile.daily_shape is not MISSING:
        detail = "the load depends on the hour or the month: its shape is not the same at every start"
        raise PlanningError("SHAPE_OF_THE_CLOCK", "/load_profile", detail)
    known, contract = find_site(given, catalog), None
    electricity = given.electricity
    has_tariff = electricity is not MISSING and electricity.price_per_kwh is MISSING
    if has_tariff or (electricity is MISSING and known is not None and known.tariff_id is not None):
        contract = resolve_contract(question, given, catalog, notes)
    window, minutes = question.window, question.load_profile.interval_minutes
    starts = starts_within(window.earliest_start_at, window.latest_start_at, window.step_minutes, minutes)
    local = start_of(question, contract, notes)[0] if contract else site.starts_at
    load = load_of(profiles.value, local or window.earliest_start_at, minutes)
    check_reach(load, starts)
    return Moves(starts, load, contract)


def _costs(question: ShiftQuestion, moves: Moves, notes: Notes) -> Costs | None:
    if moves.contract is None:
        code, detail = "PRICE_REQUIRED", "no tariff is given"
        if question.site is not MISSING and question.site.electricity is not MISSING:
            code, detail = "PRICE_NOT_IN_TIME", "at a flat price every start costs the same"
        notes.gap("/cheapest", code, detail)
        return None
    point = moves.contract.point
    with located(moves.contract.pointer):
        costs = costs_of_starts(point, moves.load, moves.starts, lambda effort: take(effort, "/window"))
    currency, factor = point.tariff.currency_code, moves.contract.price_factor
    return Costs([rounded(cost * factor, currency) for cost in costs], currency)


def _emissions(moves: Moves, site: Site, notes: Notes) -> NDArray[np.float64] | None:
    """Emissions in kg CO2e by start, at the mean intensity of the grid in time."""
    if site.grid.in_time is None:
        code = "GRID_REQUIRED" if site.grid.mean is None else "GRID_NOT_IN_TIME"
        notes.gap("/cleanest", code, "the emissions of the grid are not known in time")
        return None
    take(pairs_effort(moves.load, moves.starts), "/window")
    found = _emitted(site.grid.in_time, moves)
    if found is None:
        detail = "the series of the grid does not cover every start of the window"
        notes.gap("/cleanest", "GRID_SERIES_SHORT", detail)
    return found


def _emitted(in_time: IntensitySeries, moves: Moves) -> NDArray[np.float64] | None:
    starts, load = moves.starts, moves.load
    step = starts.step_minutes // load.interval_minutes
    whole = load._replace(kw=np.ones(load.kw.size + step * (starts.number - 1)))
    rates = intensities(in_time, whole)
    if np.isnan(rates).any():
        return None
    return sliding_sums(rates * (load.interval_minutes / 60.0), load.kw, 0, step, starts.number)


def _least(first: NDArray[np.float64], second: NDArray[np.float64] | None) -> int:
    """The start with the least of the first figures; of equals that with the least of the second."""
    places = np.arange(first.size)
    return int(np.lexsort((places, places if second is None else second, first))[0])


def _best(costs: Costs | None, emissions: NDArray[np.float64] | None) -> list[int]:
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


def _start(
    place: int, moves: Moves, costs: Costs | None, emissions: NDArray[np.float64] | None
) -> StartAnswer:
    moment = moves.starts.at(place).astimezone(UTC)
    answer: StartAnswer = {"starts_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    if costs is not None:
        answer["electricity"] = costs.at(place)
    if emissions is not None:
        answer["location_based_kg_co2e"] = float(emissions[place])
    return answer
