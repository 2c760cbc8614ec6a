"""Members that a plan fills where its question leaves them open: headroom of memory and service levels.

They rule out configurations of the search, and none that the question itself gives.
"""

from typing import Any, Final

from pydantic import MISSING

from service.planning.estimates.configuration import HEADROOM_SHARE
from service.planning.notes import AnswerNotes
from service.plans.space import SearchOutcome, SearchSpace, get_service_levels
from service.schemas.load import ServiceLevelsInput
from service.schemas.plans import PlanRequest
from service.schemas.workloads import InferenceWorkloadInput

LEVELS: Final = {"time_to_first_token_seconds": 2.0, "time_per_output_token_seconds": 0.2}
"""Longest times that people wait for: the constraints of the server scenario of MLPerf Inference 4.0 for
Llama 2 70B, of which the second is the speed of reading.
"""
LEVELS_MISSED: Final = "DEFAULT_LEVELS_MISSED"
"""Code of the warning that no configuration keeps the default service levels."""
_POINTER: Final = "/workload/service_levels"


def fill_question(question: PlanRequest, notes: AnswerNotes) -> PlanRequest:
    """Returns the question with headroom and service levels, which are noted where it leaves them open."""
    if question.constraints.headroom_share is MISSING:
        detail = "fragmentation and spikes of memory take a part that no estimate knows"
        notes.fill("/constraints/headroom_share", f"{HEADROOM_SHARE:g}", "service", detail)
        limits = question.constraints.model_copy(update={"headroom_share": HEADROOM_SHARE})
        question = question.model_copy(update={"constraints": limits})
    workload = question.workload
    if not isinstance(workload, InferenceWorkloadInput):
        return question
    missing = _list_open_levels(workload)
    if not missing:
        return question
    for name, seconds in missing.items():
        detail = "people wait for the answer: the server scenario of MLPerf Inference for Llama 2 70B"
        notes.fill(f"{_POINTER}/{name}", f"{seconds:g}", "service", detail)
    given = workload.service_levels
    levels = ServiceLevelsInput(**missing) if given is MISSING else given.model_copy(update=missing)
    return question.model_copy(update={"workload": workload.model_copy(update={"service_levels": levels})})


def _list_open_levels(workload: InferenceWorkloadInput) -> dict[str, Any]:
    """Returns the default levels of a workload. A limit of the whole request needs no others."""
    given = workload.service_levels
    if given is MISSING:
        return dict(LEVELS)
    if given.request_seconds is not MISSING:
        return {}
    stated = {name: getattr(given, name) is not MISSING for name in LEVELS}
    if not any(stated.values()):
        return {}
    return {name: seconds for name, seconds in LEVELS.items() if not stated[name]}


def select_within_levels(outcome: SearchOutcome) -> SearchOutcome:
    """Returns the outcome with the configurations that keep the default service levels."""
    return outcome._replace(kept=tuple(each for each in outcome.kept if each.keeps_levels))


def drop_default_levels(space: SearchSpace) -> SearchSpace:
    """Returns the space under the service levels that the question states, with a warning."""
    names = [each["pointer"] for each in space.defaults if each["pointer"].startswith(_POINTER)]
    levels = ", ".join(f"{name.rpartition('/')[2]} {LEVELS[name.rpartition('/')[2]]:g}" for name in names)
    notes = AnswerNotes(list(space.warnings))
    detail = (
        f"no configuration keeps the default service levels ({levels}) within the constraints: the rows are "
        "ranked without them"
    )
    notes.warn(LEVELS_MISSED, _POINTER, detail)
    workload = space.question.workload.model_copy(update={"service_levels": get_service_levels(space.asked)})
    return space._replace(
        question=space.question.model_copy(update={"workload": workload}),
        warnings=tuple(notes.warnings),
        defaults=tuple(each for each in space.defaults if each["pointer"] not in names),
    )
