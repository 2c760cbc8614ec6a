"""Cost and emissions of a run from every start of a window."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.planning.cost.tariff_lines import sum_rounded_bill
from service.planning.energy.carbon import IntensitySeries, sample_intensities
from service.planning.energy.load_profile import LoadProfile
from service.planning.energy.site import Site
from service.planning.errors import PlanningError
from service.planning.estimates.electricity import build_run_load
from service.planning.estimates.energy import RunEnergy
from service.planning.notes import AnswerNotes
from service.planning.scheduling.shift import (
    StartTimes,
    check_shift_length,
    compute_sliding_sums,
    compute_start_bills,
    estimate_pairs_effort,
)
from service.planning.tariff.allowance import SpendEffort
from service.planning.tariff.bill import MeteredLoad
from service.planning.tariff.contract import TariffContract, find_local_start, relocate_errors

Floats = NDArray[np.float64]


class MovableRun(NamedTuple):
    """A run that may begin at several moments: its load at the first, and the tariff that bills it."""

    starts: StartTimes
    load: MeteredLoad
    contract: TariffContract | None


class StartCosts(NamedTuple):
    """Cost of each start: the sum of the lines of its bill, each rounded to the currency."""

    amounts: tuple[Decimal, ...]
    currency_code: str

    @property
    def ranked(self) -> Floats:
        """Costs as numbers."""
        return np.array([float(amount) for amount in self.amounts])


class ShiftedStarts(NamedTuple):
    """Every start of a window with its figures, at the middle of power and duration."""

    moves: MovableRun
    costs: StartCosts | None
    emissions: Floats | None
    """Kilograms of CO2e."""

    @property
    def cheapest(self) -> int | None:
        """Place of the start that costs least; of equal ones the cleanest."""
        return None if self.costs is None else _find_least(self.costs.ranked, self.emissions)

    @property
    def dearest(self) -> int | None:
        """Place of the start that costs most."""
        return None if self.costs is None else int(np.argmax(self.costs.ranked))

    @property
    def cleanest(self) -> int | None:
        """Place of the start that emits least; of equal ones the cheapest."""
        ranked = self.costs.ranked if self.costs else None
        return None if self.emissions is None else _find_least(self.emissions, ranked)

    def list_best(self) -> list[int]:
        """Lists the starts that no other betters in both figures, from the cheapest to the cleanest."""
        if self.costs is None or self.emissions is None:
            figures = self.costs.ranked if self.costs else self.emissions
            return [] if figures is None else [int(np.argmin(figures))]
        ranked, best, lowest = self.costs.ranked, list[int](), np.inf
        for place in np.lexsort((np.arange(ranked.size), self.emissions, ranked)):
            if self.emissions[place] < lowest:
                best.append(int(place))
                lowest = self.emissions[place]
        return best


def build_unmovable_error() -> PlanningError:
    """Builds the refusal of a run whose time or energy is not known."""
    detail = "to move a run, its time and its energy at the meter must be known"
    return PlanningError("ENERGY_UNKNOWN", "/site", detail)


def get_movable_profile(energy: RunEnergy, site: Site) -> LoadProfile:
    """Returns the course of a run's power; refuses one that is not the same at every start."""
    if energy.profiles is None or not site.is_given:
        raise build_unmovable_error()
    if energy.profiles.value.is_seasonal or site.load.daily_shape:
        detail = "the load depends on the hour or the month: its shape is not the same at every start"
        raise PlanningError("SHAPE_OF_THE_CLOCK", "/load_profile", detail)
    return energy.profiles.value


def build_movable_run(
    profile: LoadProfile,
    site: Site,
    starts: StartTimes,
    contract: TariffContract | None,
    *,
    starts_at: datetime | None,
    notes: AnswerNotes,
) -> MovableRun:
    """Returns the run at the first start, on the clock of the site; refuses one that is too long to move."""
    local = find_local_start(contract, starts_at, notes).at if contract else site.starts_at
    load = build_run_load(profile, local or starts.first, site.load.interval_minutes)
    check_shift_length(load, starts)
    return MovableRun(starts, load, contract)


def shift_run(
    moves: MovableRun, site: Site, notes: AnswerNotes, spend: SpendEffort, *, has_flat_price: bool
) -> ShiftedStarts:
    """Returns cost and emissions of every start; a gap in ``notes`` for a figure that is not known.

    ``spend`` counts the effort before it is made, and may refuse it. At a flat price no start is cheaper.
    """
    costs = None
    if moves.contract is not None:
        costs = _estimate_costs(moves, moves.contract, spend)
    elif has_flat_price:
        notes.add_gap("/cheapest", "PRICE_NOT_IN_TIME", "at a flat price every start costs the same")
    else:
        notes.add_gap("/cheapest", "PRICE_REQUIRED", "no tariff is given")
    return ShiftedStarts(moves, costs, _estimate_emissions(moves, site, notes, spend))


def _estimate_costs(moves: MovableRun, contract: TariffContract, spend: SpendEffort) -> StartCosts:
    with relocate_errors(contract.pointer):
        bills = compute_start_bills(
            contract.point, moves.load, moves.starts, lambda effort: spend(effort, "/window")
        )
    amounts = (sum_rounded_bill(contract.apply_price_factor(bill)) for bill in bills)
    return StartCosts(tuple(amounts), contract.point.tariff.currency_code)


def _estimate_emissions(
    moves: MovableRun, site: Site, notes: AnswerNotes, spend: SpendEffort
) -> Floats | None:
    """Computes kilograms of CO2e by start, at the mean intensity of the grid in time."""
    if site.grid.in_time is None:
        code = "GRID_REQUIRED" if site.grid.mean is None else "GRID_NOT_IN_TIME"
        notes.add_gap("/cleanest", code, "the emissions of the grid are not known in time")
        return None
    spend(estimate_pairs_effort(moves.load, moves.starts), "/window")
    found = _compute_emissions(site.grid.in_time, moves)
    if found is None:
        detail = "the series of the grid does not cover every start of the window"
        notes.add_gap("/cleanest", "GRID_SERIES_SHORT", detail)
    return found


def _compute_emissions(in_time: IntensitySeries, moves: MovableRun) -> Floats | None:
    starts, load = moves.starts, moves.load
    step = starts.step_minutes // load.interval_minutes
    whole = load._replace(kw=np.ones(load.kw.size + step * (starts.number - 1)))
    rates = sample_intensities(in_time, whole)
    if np.isnan(rates).any():
        return None
    return compute_sliding_sums(rates * (load.interval_minutes / 60.0), load.kw, 0, step, starts.number)


def _find_least(first: Floats, second: Floats | None) -> int:
    """Returns the place of the least of the first figures; of equal ones that of the least second figure."""
    places = np.arange(first.size)
    return int(np.lexsort((places, places if second is None else second, first))[0])
