"""Several workloads at once: who runs where and when. Nothing of it is stored."""

from functools import partial
from typing import Any

from fastapi import Request

from service.estimates.service import answer
from service.kit.http.long_work import Later
from service.kit.http.web import AskingRoute, api_router
from service.plans.fleet import estimate_fleet
from service.schemas.fleet_plans import FleetAnswer, FleetQuestion

router = api_router("/v1/plans", tag="plans", route_class=AskingRoute)


@router.post(":fleet")
async def plan_fleet(question: FleetQuestion, request: Request) -> FleetAnswer:
    """Who runs where, on how many devices and when? Several workloads over pools and a budget."""
    snapshot = await request.app.state.snapshots.asked(request.scope)
    found: Any = Later(partial(answer, estimate_fleet, question, snapshot))
    answered: FleetAnswer = found
    return answered
