"""Operations on cost centres."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.approvals.budgets.face import CostCenterPath, Face
from service.approvals.cost_centers.schemas import (
    CostCenter,
    CostCenterInput,
    CostCenterPage,
    CostCenterPatch,
)
from service.audit.service import Caller, WriteCall
from service.kit.http.pages import PageQuery
from service.kit.http.versions import ETAG, IfMatch
from service.kit.http.web import LOCATED, api_router

router = api_router("/v1/cost-centers", tag="cost-centers")
_TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | LOCATED[201]["headers"]}}


@router.get("", response_model=CostCenterPage)
def list_cost_centers(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's cost centres."""
    return face.list_centers(caller.tenant_id, query)


@router.post("", status_code=201, response_model=CostCenter, responses=_CREATED)
def create_cost_center(face: Face, call: WriteCall, body: CostCenterInput) -> Response:
    """Create a cost centre under an id that is free."""
    return face.create_center(call, body)


@router.get("/{id:name}", response_model=CostCenter, responses=_TAGGED)
def get_cost_center(face: Face, caller: Caller, id: CostCenterPath) -> Response:
    """A cost centre."""
    return face.get_center(caller.tenant_id, id)


@router.patch("/{id:name}", response_model=CostCenter, responses=_TAGGED)
def update_cost_center(
    face: Face, call: WriteCall, id: CostCenterPath, body: CostCenterPatch, if_match: IfMatch = ""
) -> Response:
    """Change members of a cost centre, if it is still at the version of the ETag."""
    return face.change_center(call, id, body, if_match)


@router.delete("/{id:name}", status_code=204)
def delete_cost_center(face: Face, call: WriteCall, id: CostCenterPath, if_match: IfMatch = "") -> Response:
    """Delete a cost centre that has no budgets, if it is still at the version of the ETag."""
    return face.delete_center(call, id, if_match)
