"""Selection of the starts of a window that are best by cost and emissions."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import MISSING

from service.estimates.shift import shift_run
from service.planning.estimates.start_shift import MovableRun
from service.plans.requests import get_currency
from service.plans.runs import MeteredRun
from service.plans.space import DeviceSupply
from service.schemas.plans import PlanRequest
from service.schemas.what_if import StartShiftEstimateRequest, StartWindow

Floats = NDArray[np.float64]


class StartedRun(NamedTuple):
    """A run from the first start of a window, and its budget."""

    supply: DeviceSupply
    seconds: float
    cost: Decimal | None
    budget: Decimal | None


def select_starts(question: PlanRequest, first: StartedRun, metered: MeteredRun | None) -> list[datetime]:
    """Returns the best start by the goal, among those that keep the constraints if there are any.

    For a Pareto set, returns all starts that are not dominated. ``metered`` is the run from the first start,
    or None if its energy is not needed.
    """
    window = question.window
    if window is MISSING:
        raise ValueError("a plan without a window has one start")
    if metered is None or metered.energy.facility_kwh is None:
        return [window.earliest_start_at]
    moves, paid, emitted = _compute_figures(question, window, first, metered)
    if paid is None and emitted is None:
        return [window.earliest_start_at]
    allowed = _match_constraints(question, first, moves, paid, emitted)
    places = np.arange(moves.starts.number)
    chosen = places[allowed] if allowed.any() else places
    none = np.zeros(moves.starts.number)
    cost, carbon = none if paid is None else paid, none if emitted is None else emitted
    before, behind = (carbon, cost) if question.goal == "cleanest" and emitted is not None else (cost, carbon)
    order = chosen[np.lexsort((chosen, behind[chosen], before[chosen]))]
    if question.goal == "pareto":
        lowest = np.minimum.accumulate(np.concatenate(([np.inf], behind[order][:-1])))
        order = order[behind[order] < lowest]
    else:
        order = order[:1]
    return [moves.starts.get_start(place) for place in order.tolist()]


def _compute_figures(
    question: PlanRequest, window: StartWindow, first: StartedRun, metered: MeteredRun
) -> tuple[MovableRun, Floats | None, Floats | None]:
    """Returns electricity cost in the currency of the plan and emissions, for every start."""
    request = metered.request
    said = {name: getattr(request, name) for name in request.model_fields_set}
    asked = StartShiftEstimateRequest.model_construct(**said, window=window)
    moves, costs, emitted = shift_run(asked, metered.energy, metered.site, metered.catalog, metered.notes)
    if costs is None or first.supply.kind != "owned":
        return moves, None, emitted
    rates, on = metered.catalog.exchange_rates, window.earliest_start_at.date()
    found = rates.convert(Decimal(1), costs.currency_code, get_currency(question), on)
    return moves, None if found is None else costs.ranked * float(found.amount), emitted


def _match_constraints(
    question: PlanRequest, first: StartedRun, moves: MovableRun, paid: Floats | None, emitted: Floats | None
) -> NDArray[np.bool_]:
    """Returns a mask of the starts from which a run keeps deadline, emissions and budget."""
    limits, number = question.constraints, moves.starts.number
    allowed = np.ones(number, dtype=bool)
    if limits.finish_by is not MISSING:
        left = (limits.finish_by - moves.starts.first) / timedelta(seconds=1) - first.seconds
        allowed &= np.arange(number) * (60.0 * moves.starts.step_minutes) <= left
    if limits.location_based_kg_co2e is not MISSING and emitted is not None:
        allowed &= emitted <= limits.location_based_kg_co2e
    if first.budget is not None and paid is not None and first.cost is not None:
        allowed &= float(first.cost) + paid - paid[0] <= float(first.budget)
    return allowed
