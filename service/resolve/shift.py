"""A run that may begin at several moments, from a question."""

from pydantic import MISSING

from service.planning.energy.site import Site
from service.planning.estimates.energy import RunEnergy
from service.planning.estimates.start_shift import (
    MovableRun,
    build_movable_run,
    build_unmovable_error,
    get_movable_profile,
)
from service.planning.notes import AnswerNotes
from service.planning.scheduling.shift import build_starts
from service.planning.tariff.contract import TariffContract
from service.resolve.catalog import CatalogView
from service.resolve.contract import resolve_contract
from service.resolve.site import find_site
from service.schemas.site import RunSiteInput
from service.schemas.what_if import StartShiftEstimateRequest


def resolve_movable_run(
    question: StartShiftEstimateRequest,
    energy: RunEnergy,
    site: Site,
    catalog: CatalogView,
    notes: AnswerNotes,
) -> MovableRun:
    """Returns the run at the first start of the window, with the tariff that bills it.

    Raises :class:`PlanningError` for a run that cannot be moved, and for a window that is too long.
    """
    if question.site is MISSING:
        raise build_unmovable_error()
    profile, window = get_movable_profile(energy, site), question.window
    contract = _resolve_contract(question, question.site, catalog, notes)
    starts = build_starts(
        window.earliest_start_at,
        window.latest_start_at,
        window.step_minutes,
        question.load_profile.interval_minutes,
    )
    starts_at = None if question.starts_at is MISSING else question.starts_at
    return build_movable_run(profile, site, starts, contract, starts_at=starts_at, notes=notes)


def _resolve_contract(
    question: StartShiftEstimateRequest, given: RunSiteInput, catalog: CatalogView, notes: AnswerNotes
) -> TariffContract | None:
    """Returns the tariff of the question or of its site; None at a flat price."""
    known, electricity = find_site(given, catalog), given.electricity
    if electricity is MISSING:
        has_tariff = known is not None and known.tariff_id is not None
    else:
        has_tariff = electricity.price_per_kwh is MISSING
    return resolve_contract(question, given, catalog, notes) if has_tariff else None
