"""Costs of the same work done in two ways, and refusals of work that is not the same."""

import math
from typing import NamedTuple

from service.planning.cost.charges import CurrencyCharges
from service.planning.errors import PlanningError
from service.planning.estimates.equal_work import CostRatios, RunTotal, compare_costs_of_runs
from service.planning.estimates.runs import Run, TrainingRun
from service.planning.notes import AnswerNotes
from service.planning.quantity import Quantity


class RunWork(NamedTuple):
    """Tokens that a run trains on or passes through the model, and its requests; None if unknown."""

    tokens: float | None
    requests: float | None


class CostedRun(NamedTuple):
    """A run and its cost and duration, interruptions by the provider included; None where not known."""

    run: Run
    total: CurrencyCharges | None
    duration: Quantity | None


def count_work(run: Run) -> RunWork:
    """Returns the work of a run."""
    if isinstance(run, TrainingRun):
        return RunWork(run.case.total_tokens, None)
    case, requests = run.case, run.requests
    tokens = requests and requests.value * (case.prompt_tokens + case.workload.output_tokens)
    return RunWork(tokens, requests and requests.value)


def check_equal_work(run: Run, baseline: Run, pointer: str) -> None:
    """Refuses a run that does other work than the baseline (UNEQUAL_WORK), at ``pointer``."""
    works = zip(RunWork._fields, count_work(run), count_work(baseline), strict=True)
    for unit, amount, against in works:
        if amount is None or against is None or math.isclose(amount, against, rel_tol=1e-9):
            continue
        detail = f"{amount:.6g} {unit} are not the {against:.6g} of the baseline: only equal work compares"
        raise PlanningError("UNEQUAL_WORK", pointer, detail)


def compare_costs(
    costed: CostedRun, baseline: CostedRun, pointer: str, notes: AnswerNotes
) -> CostRatios | None:
    """Returns time, device-hours and cost over those of the baseline; None, with a gap, if they lack.

    Both do the same work. The gap is at ``pointer``.
    """
    charged, against = costed.total, baseline.total
    duration, lasting = costed.duration, baseline.duration
    if not (charged and against and duration and lasting):
        notes.add_gap(pointer, "TOTAL_UNKNOWN", "needs both totals")
        return None
    if charged.currency_code != against.currency_code:
        notes.add_gap(pointer, "CURRENCY_MISMATCH", "the amounts are in different currencies")
        return None
    if not against.low:
        notes.add_gap(pointer, "TOTAL_ZERO", "the baseline costs nothing")
        return None
    return compare_costs_of_runs(
        RunTotal(costed.run, charged, duration), RunTotal(baseline.run, against, lasting)
    )
