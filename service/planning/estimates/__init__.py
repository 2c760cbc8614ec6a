"""Estimates of a case: rates, memory, power, costs, and changes worth trying."""

from collections.abc import Callable

from service.planning.cases import ForwardPassCase, RunCase, TrainingCase
from service.planning.estimates.runs import ForwardPassRun, Run, ServingRun, TrainingRun
from service.planning.estimates.serving import do_nothing
from service.planning.estimates.serving_run import run_passes, run_serving
from service.planning.estimates.training import run_training
from service.planning.notes import AnswerNotes

__all__ = ["ForwardPassRun", "Run", "ServingRun", "TrainingRun", "estimate_run"]


def estimate_run(
    case: RunCase, notes: AnswerNotes | None = None, between: Callable[[], None] = do_nothing
) -> Run:
    """Estimates the rates and duration of a case; the notes of the run name each figure that is not known.

    ``between`` is called repeatedly during long work and ends it by raising an exception. Raises
    :class:`PlanningError` for a case that has no sound answer.
    """
    notes = AnswerNotes() if notes is None else notes
    if isinstance(case, TrainingCase):
        return run_training(case, notes)
    if isinstance(case, ForwardPassCase):
        return run_passes(case, notes)
    return run_serving(case, notes, between)
