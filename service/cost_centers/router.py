"""Operations on cost centres."""

from typing import Annotated

from fastapi import Path, Query, Response

from service.audit.service import Read, Write
from service.cost_centers import repository, service
from service.cost_centers.schemas import (
    CostCenter,
    CostCenterPage,
    CostCenterPatch,
    CostCenterRequest,
)
from service.kit.http.pages import BY_ID, PageQuery
from service.kit.http.versions import CREATED, VERSIONED, IfMatch, versioned_response
from service.kit.http.web import api_router, from_state, json_response
from service.schemas.base import ResourceId

router = api_router("/v1/cost-centers", tag="cost-centers")
CenterUsage = Annotated[service.UsageCheck, from_state("is_center_used")]
CostCenterPath = Annotated[ResourceId, Path(description="Id of the cost centre.")]


@router.get("", summary="List cost centres", response_model=CostCenterPage)
def list_cost_centers(read: Read, query: Annotated[PageQuery, Query()]) -> Response:
    """Lists the tenant's cost centres."""
    page = read.page(query, BY_ID, "cost-centers")
    with read.session() as session:
        rows = repository.list_after(session, read.tenant_id, page.after, page.limit)
        return json_response(page.to_response([service.to_response(row) for row in rows]))


@router.post(
    "", summary="Create a cost centre", status_code=201, response_model=CostCenter, responses=CREATED
)
def create_cost_center(write: Write, body: CostCenterRequest) -> Response:
    """Creates a cost centre under an unused id."""
    return write.run(body, lambda session: service.create_cost_center(session, write.tenant_id, body))


@router.get("/{id:name}", summary="Get a cost centre", response_model=CostCenter, responses=VERSIONED)
def get_cost_center(read: Read, id: CostCenterPath) -> Response:
    """Returns a cost centre."""
    with read.session() as session:
        return versioned_response(service.get_cost_center(session, read.tenant_id, id))


@router.patch("/{id:name}", summary="Change a cost centre", response_model=CostCenter, responses=VERSIONED)
def update_cost_center(
    write: Write, id: CostCenterPath, body: CostCenterPatch, if_match: IfMatch = ""
) -> Response:
    """Changes members of a cost centre, if its version matches the ETag."""
    patch = body.model_dump(mode="json")
    return write.run(
        [patch, if_match],
        lambda session: service.change_cost_center(session, write.tenant_id, id, patch, if_match),
    )


@router.delete("/{id:name}", summary="Delete a cost centre", status_code=204)
def delete_cost_center(
    write: Write, is_used: CenterUsage, id: CostCenterPath, if_match: IfMatch = ""
) -> Response:
    """Deletes a cost centre that has no budgets, if its version matches the ETag."""
    return write.run(
        if_match,
        lambda session: service.delete_cost_center(session, write.tenant_id, id, if_match, is_used),
    )
