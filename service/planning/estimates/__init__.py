"""Answers to the questions that a case asks: its rates, its memory, its power, and changes worth trying."""

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
    """The rates of a case and how long it lasts; what is not known is named in the notes of the run.

    ``between`` is called now and then in long work, which it ends by raising.
    Raises :class:`PlanningError` for a case that has no sound answer.
    """
    notes = AnswerNotes() if notes is None else notes
    if isinstance(case, TrainingCase):
        return run_training(case, notes)
    if isinstance(case, ForwardPassCase):
        return run_passes(case, notes)
    return run_serving(case, notes, between)
