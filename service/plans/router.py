"""Operations on plans."""

from typing import Annotated, Any

from fastapi import Path, Query, Request, Response

from service.audit.service import Read, Write
from service.evidence.snapshot import Snapshots, get_requested_snapshot
from service.kit.http.pages import NEWEST_FIRST
from service.kit.http.web import (
    LOCATED,
    InlineSeconds,
    OffloadedInlineSearch,
    OffloadedSearch,
    OffloadedWork,
    ReadOnlyRoute,
    api_router,
    json_response,
)
from service.plans import creation, repository, stored
from service.plans.schemas import PlanId, PlanPage, PlanQuery
from service.schemas.fleet_plans import FleetPlan, FleetPlanRequest
from service.schemas.plans import PlanRequest
from service.schemas.stored_plans import Plan

router = api_router("/v1/plans", tag="plans")
# A fleet needs `plans:read`: what is answered soon is not stored, and `plan_fleet` checks the scope to store.
fleets = api_router("/v1/plans", tag="plans", route_class=ReadOnlyRoute)
_LOCATED: dict[str, Any] = {"headers": LOCATED[201]["headers"]}
_CREATED: dict[int | str, dict[str, Any]] = {200: _LOCATED, 202: {**_LOCATED, "model": Plan}}


PlanPath = Annotated[PlanId, Path(description="Id of the plan.")]


@router.get("", summary="List plans", response_model=PlanPage)
def list_plans(read: Read, query: Annotated[PlanQuery, Query()]) -> Response:
    """Lists the tenant's plans, the newest first, without their answers."""
    page = read.page(query, NEWEST_FIRST, "plans", query.state, query.goal)
    with read.session() as session:
        rows = repository.list_page(
            session,
            read.tenant_id,
            states=query.state,
            goals=query.goal,
            after=page.after,
            limit=page.limit,
        )
        return json_response(page.to_response([stored.to_summary(row) for row in rows]))


@router.post(
    "", summary="Search the best configuration for some work", response_model=Plan, responses=_CREATED
)
async def create_plan(
    write: Write,
    snapshots: Snapshots,
    aside: OffloadedWork,
    searching: OffloadedInlineSearch,
    body: PlanRequest,
) -> Response:
    """Searches for the best configuration for some work, by a goal and under constraints.

    A small search is answered at once (200). A large search, and a small one that is not answered within a
    second, runs in the background (202): get the plan at `Location` until its `state` is no longer `running`.
    """
    return await creation.create_plan(write, snapshots, aside, searching, body)


@router.get("/{id:name}", summary="Get a plan and its answer", response_model=Plan)
def get_plan(read: Read, id: PlanPath) -> Response:
    """Returns a plan: the progress of its search and, once it is done, its answer."""
    with read.session() as session:
        return Response(stored.render_plan(session, read.tenant_id, id), media_type="application/json")


@router.post("/{id:name}:cancel", summary="Cancel the search of a plan", response_model=Plan)
def cancel_plan(write: Write, id: PlanPath) -> Response:
    """Cancels a search, which ends without an answer after its present piece."""
    return write.run(None, lambda session: stored.cancel_plan(session, write.tenant_id, id))


@router.delete("/{id:name}", summary="Delete a plan", status_code=204)
def delete_plan(write: Write, id: PlanPath) -> Response:
    """Deletes a plan and ends its search. Quotes of its rows keep their frozen content."""
    return write.run(None, lambda session: stored.delete_plan(session, write.tenant_id, id))


@fleets.post(
    ":fleet",
    summary="Plan several workloads over shared devices",
    response_model=FleetPlan,
    responses={202: {**_LOCATED, "model": Plan}},
)
async def plan_fleet(
    *,
    request: Request,
    write: Write,
    aside: OffloadedWork,
    searching: OffloadedSearch,
    soon_seconds: InlineSeconds,
    question: FleetPlanRequest,
) -> Response:
    """Plans several workloads over pools of devices and a budget: place, devices and time of each.

    A fleet that is not answered within a second runs in the background (202), if the caller has the scope
    `plans:write`: get the plan at `Location` until its `state` is no longer `running`. Only such a fleet is
    stored. A caller without that scope gets the answer within five seconds, or 503, and an Idempotency-Key
    has no effect. A tenant that has as many searches as may run gets it within five seconds, or 409
    `TOO_MANY_PLANS`.
    """
    catalog = await get_requested_snapshot(request)
    return await creation.plan_fleet(write, catalog, aside, searching, question, soon_seconds=soon_seconds)
