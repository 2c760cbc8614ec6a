"""Sensitivities of a plan, those with the smallest change first."""

import math
from typing import Final

from service.kit.http.cancellation import check_cancelled
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.plans.ranking import CandidateRanking
from service.plans.sensitivity.study import RowPresenter, SensitivityStudy
from service.plans.sensitivity.subjects import list_assumptions
from service.plans.space import SearchOutcome, SearchSpace
from service.schemas.plan_answers import PlanSensitivity

_BILLED_ANEW: Final = frozenset({"time", "work", "electricity_price"})
_MOST_BILLS: Final = 1500
"""Number of tariff bills in one ranking above which assumptions that change bills are skipped: each takes
about a millisecond, and a ranking is computed about fifty times.
"""


def list_sensitivities(
    space: SearchSpace,
    outcome: SearchOutcome,
    ranking: CandidateRanking,
    shown: RowPresenter,
    notes: AnswerNotes,
) -> list[PlanSensitivity]:
    """Returns each assumption of the first rows, up and down, those with the smallest change first.

    A changed start is not another choice. Assumptions that need too many tariff bills, and changed questions
    without an answer, are left out and recorded as gaps.
    """
    if not outcome.kept and not ranking.rows:
        return []
    study = SensitivityStudy(space, outcome, ranking, shown)
    moves = list(list_assumptions(space, ranking))
    if study.bills > _MOST_BILLS:
        moves = [moved for moved in moves if moved.assumption not in _BILLED_ANEW]
        detail = "changes of time, work and electricity prices need a bill of the tariff for every start"
        notes.add_gap("/sensitivities", "TOO_MANY_BILLS", detail)
    found: list[PlanSensitivity] = []
    for moved in moves:
        check_cancelled()
        try:
            found += study.study_assumption(moved)
        except (PlanningError, ArithmeticError) as error:
            # The question has an answer, but the changed question may not have one.
            code, why = ("OUT_OF_RANGE", "figures are out of the numeric range")
            if isinstance(error, PlanningError):
                code, why = error.code, error.detail
            notes.add_gap("/sensitivities", code, f"{moved.assumption} is not varied: {why}")
    return sorted(found, key=lambda each: abs(math.log(each["factor"])) if "factor" in each else math.inf)
