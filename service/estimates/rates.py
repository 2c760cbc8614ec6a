"""Run of a question, with its rates."""

from service.kit.http.cancellation import check_cancelled
from service.planning.estimates import Run, estimate_run
from service.planning.notes import AnswerNotes
from service.resolve import resolve_run
from service.resolve.catalog import CatalogView
from service.schemas.estimates import RunEstimateRequest


def plan_run(question: RunEstimateRequest, catalog: CatalogView) -> Run:
    """Resolves a question and estimates the rates of its run."""
    check_cancelled()
    notes = AnswerNotes()
    return estimate_run(resolve_run(question, catalog, notes), notes, between=check_cancelled)
