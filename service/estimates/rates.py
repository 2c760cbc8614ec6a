"""A question with its rates."""

from service.kit.http.wanted import check_wanted
from service.planning.estimates import Run, estimate_run
from service.planning.notes import Notes
from service.resolve import resolve_run
from service.resolve.catalog import CatalogView
from service.schemas.estimates import RunQuestion


def plan_run(question: RunQuestion, catalog: CatalogView) -> Run:
    """Resolve a question and estimate its rates."""
    check_wanted()
    notes = Notes()
    return estimate_run(resolve_run(question, catalog, notes), notes, between=check_wanted)
