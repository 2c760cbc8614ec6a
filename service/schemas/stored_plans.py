"""Plans as they are stored: searches of configurations and of fleets, with their progress."""

from typing import Literal, NotRequired

from pydantic import AwareDatetime
from typing_extensions import TypeAliasType, TypedDict

from service.schemas.base import Integer, MoneyAmount
from service.schemas.fleet_plans import FleetPlan, FleetPlanRequest
from service.schemas.plan_answers import PlanResult
from service.schemas.plans import PlanRequest

PlanKind = Literal["configuration", "fleet"]
StoredPlanGoal = TypeAliasType(
    "StoredPlanGoal", Literal["cheapest", "fastest", "cleanest", "fewest_devices", "pareto", "earliest"]
)


class PlanProgress(TypedDict):
    """Progress of a search."""

    pieces: Integer
    """Parts of the search."""
    pieces_done: Integer
    """Parts that are done."""
    candidates: Integer
    """Configurations of all parts."""
    candidates_decided: Integer
    """Configurations that are scored, ruled out or pruned."""


class Plan(TypedDict):
    """A search, with its answer once it is done."""

    id: str
    state: Literal["running", "done", "cancelled", "failed"]
    """State of the search. A failed search has `error_code` and `error_summary`."""
    kind: PlanKind
    """Kind of the search: the best configuration for some work, or the schedule of a fleet."""
    goal: StoredPlanGoal
    """Goal of the search. `earliest` is a goal of fleets."""
    question: NotRequired[PlanRequest]
    """Request of the search. Absent for a fleet, and left out of lists."""
    fleet_question: NotRequired[FleetPlanRequest]
    """Request of the search of a fleet. Left out of lists."""
    created_at: AwareDatetime
    """Time of the request."""
    finished_at: NotRequired[AwareDatetime]
    """Time at which the search ended."""
    progress: PlanProgress
    """Progress of the search."""
    error_code: NotRequired[str]
    """Code of the failure."""
    error_summary: NotRequired[str]
    """Description of the failure."""
    best_cost: NotRequired[MoneyAmount]
    """Cost of the first row, or of all placed workloads of a fleet."""
    answer: NotRequired[PlanResult]
    """Answer of the search. Present once it is done; absent for a fleet, and left out of lists."""
    fleet_answer: NotRequired[FleetPlan]
    """Schedule of a fleet. Present once its search is done; left out of lists."""
