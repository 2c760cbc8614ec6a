"""Operations on plans."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.kit.http.web import LOCATED, WorkAside, api_router
from service.plans.face import Face, PlanPath
from service.plans.schemas import PlanPage, PlanQuery
from service.schemas.plan_answers import Plan
from service.schemas.plans import PlanQuestion

router = api_router("/v1/plans", tag="plans")
_LOCATED: dict[str, Any] = {"headers": LOCATED[201]["headers"]}
_CREATED: dict[int | str, dict[str, Any]] = {200: _LOCATED, 202: {**_LOCATED, "model": Plan}}


@router.get("", response_model=PlanPage)
def list_plans(face: Face, caller: Caller, query: Annotated[PlanQuery, Query()]) -> Response:
    """A page of the tenant's plans, the newest first, without their answers."""
    return face.list(caller.tenant_id, query)


@router.post("", response_model=Plan, responses=_CREATED)
async def create_plan(face: Face, call: WriteCall, aside: WorkAside, body: PlanQuestion) -> Response:
    """Find the best configuration for some work under constraints, by a goal.

    A small search is answered at once (200). A large one runs in the background (202): ask for the plan at
    `Location` until its `state` is no longer `running`.
    """
    return await face.create(call, body, aside)


@router.get("/{id:name}", response_model=Plan)
def get_plan(face: Face, caller: Caller, id: PlanPath) -> Response:
    """A plan: how far its search is and, once it is done, its answer."""
    return face.get(caller.tenant_id, id)


@router.post("/{id:name}:cancel", response_model=Plan)
def cancel_plan(face: Face, call: WriteCall, id: PlanPath) -> Response:
    """Let a search end without an answer; what runs of it ends with its piece."""
    return face.cancel(call, id)


@router.delete("/{id:name}", status_code=204)
def delete_plan(face: Face, call: WriteCall, id: PlanPath) -> Response:
    """Delete a plan; a search that runs ends. Quotes of its rows keep what they froze."""
    return face.delete(call, id)
