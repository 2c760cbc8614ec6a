"""Answer to a question of a run's start: cost and emissions of every start of a window."""

from datetime import UTC

from pydantic import MISSING

from service.estimates.allowance import spend_effort
from service.estimates.rates import plan_run
from service.planning.energy.site import Site
from service.planning.estimates import start_shift
from service.planning.estimates.energy import RunEnergy, estimate_energy
from service.planning.estimates.power import estimate_draw
from service.planning.estimates.start_shift import ShiftedStarts, StartCosts, build_unmovable_error
from service.planning.notes import AnswerNotes
from service.resolve.calibrated import apply_calibrations
from service.resolve.catalog import CatalogView
from service.resolve.shift import resolve_movable_run
from service.resolve.site import resolve_site
from service.schemas.answer import to_evidence, to_quantity
from service.schemas.base import MoneyAmount
from service.schemas.what_if import StartFigures, StartShiftEstimate, StartShiftEstimateRequest


def estimate_shift(question: StartShiftEstimateRequest, catalog: CatalogView) -> StartShiftEstimate:
    """Answers with the bill and the emissions of every start of a window."""
    catalog = apply_calibrations(catalog, question.cluster, question.efficiency)
    run = plan_run(question, catalog)
    question = question.model_copy(update={"starts_at": question.window.earliest_start_at})
    notes, site = run.notes, resolve_site(question, catalog, run.notes)
    energy = estimate_energy(run, site, estimate_draw(run))
    if energy.facility_kwh is None or energy.profiles is None or run.duration_seconds is None:
        raise build_unmovable_error()
    shifted = shift_run(question, energy, site, catalog, notes)
    answer: StartShiftEstimate = {
        "starts_compared": shifted.moves.starts.number,
        "duration_seconds": to_quantity(run.duration_seconds),
        "facility_kwh": to_quantity(energy.facility_kwh),
        "first": _to_start(0, shifted),
        "best": [_to_start(place, shifted) for place in shifted.list_best()],
        "evidence": to_evidence(question, notes, catalog.revision),
        "warnings": notes.warnings,
        "gaps": notes.gaps,
    }
    if shifted.costs is not None and shifted.cheapest is not None and shifted.dearest is not None:
        answer["cheapest"] = _to_start(shifted.cheapest, shifted)
        answer["highest_electricity"] = _to_amount(shifted.costs, shifted.dearest)
    if shifted.emissions is not None and shifted.cleanest is not None:
        answer["cleanest"] = _to_start(shifted.cleanest, shifted)
        answer["highest_location_based_kg_co2e"] = float(shifted.emissions.max())
    return answer


def shift_run(
    question: StartShiftEstimateRequest,
    energy: RunEnergy,
    site: Site,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> ShiftedStarts:
    """Returns cost and emissions of every start of a run whose energy is known; gaps for the unknown."""
    moves = resolve_movable_run(question, energy, site, catalog, notes)
    has_price = question.site is not MISSING and question.site.electricity is not MISSING
    return start_shift.shift_run(moves, site, notes, spend_effort, has_flat_price=has_price)


def _to_start(place: int, shifted: ShiftedStarts) -> StartFigures:
    moment = shifted.moves.starts.get_start(place).astimezone(UTC)
    answer: StartFigures = {"starts_at": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    if shifted.costs is not None:
        answer["electricity"] = _to_amount(shifted.costs, place)
    if shifted.emissions is not None:
        answer["location_based_kg_co2e"] = float(shifted.emissions[place])
    return answer


def _to_amount(costs: StartCosts, place: int) -> MoneyAmount:
    return {"amount": f"{costs.amounts[place]:f}", "currency_code": costs.currency_code}
