"""Several workloads at once: who runs where and when. Nothing of it is stored."""

from functools import partial
from typing import Any

from fastapi import Request

from service.estimates.service import answer_question
from service.kit.http.long_work import DeferredAnswer
from service.kit.http.web import ReadOnlyRoute, api_router
from service.plans.fleet import estimate_fleet
from service.schemas.fleet_plans import FleetPlan, FleetPlanRequest

router = api_router("/v1/plans", tag="plans", route_class=ReadOnlyRoute)


@router.post(":fleet")
async def plan_fleet(question: FleetPlanRequest, request: Request) -> FleetPlan:
    """Who runs where, on how many devices and when? Several workloads over pools and a budget."""
    snapshot = await request.app.state.snapshots.get_requested(request.scope)
    found: Any = DeferredAnswer(partial(answer_question, estimate_fleet, question, snapshot))
    answered: FleetPlan = found
    return answered
