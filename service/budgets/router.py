"""Operations on budgets."""

from typing import Annotated

from fastapi import Path, Query, Response

from service.audit.service import Write
from service.budgets import repository, service
from service.budgets.schemas import Budget, BudgetPage, BudgetPatch, BudgetQuery, BudgetRequest
from service.evidence.snapshot import Snapshots
from service.kit.http.pages import BY_ID
from service.kit.http.versions import CREATED, VERSIONED, IfMatch, versioned_response
from service.kit.http.web import CSV, api_router, csv_response, json_response
from service.policies.changes.schemas import PROPOSED
from service.policies.changes.service import SettledRead, SettledWrite
from service.schemas.base import ResourceId

router = api_router("/v1/budgets", tag="budgets")
BudgetPath = Annotated[ResourceId, Path(description="Id of the budget.")]


@router.get("", summary="List budgets", response_model=BudgetPage)
def list_budgets(read: SettledRead, snapshots: Snapshots, query: Annotated[BudgetQuery, Query()]) -> Response:
    """Lists the tenant's budgets, with the remaining amount of each."""
    page = read.page(query, BY_ID, "budgets", query.cost_center_id)
    with read.session() as session:
        rows = repository.list_after(session, read.tenant_id, page.after, query.cost_center_id, page.limit)
        budgets = service.list_summaries(session, rows, snapshots.get_current(read.tenant_id))
        return json_response(page.to_response(budgets))


@router.post("", summary="Create a budget", status_code=201, response_model=Budget, responses=CREATED)
def create_budget(write: Write, snapshots: Snapshots, body: BudgetRequest) -> Response:
    """Creates a budget of a cost centre under an unused id."""
    catalog = snapshots.get_current(write.tenant_id)
    return write.run(body, lambda session: service.create_budget(session, write.tenant_id, body, catalog))


@router.get(
    "/{id:name}", summary="Get a budget with its commitments", response_model=Budget, responses=VERSIONED
)
def get_budget(read: SettledRead, snapshots: Snapshots, id: BudgetPath) -> Response:
    """Returns a budget: its committed, spent and remaining amounts, and its commitments."""
    with read.session() as session:
        return versioned_response(
            service.get_budget(session, read.tenant_id, id, snapshots.get_current(read.tenant_id))
        )


@router.get(
    "/{id:name}/focus", summary="Get the charges of a budget as CSV", response_class=Response, responses=CSV
)
def get_budget_focus(read: SettledRead, id: BudgetPath) -> Response:
    """Returns commitments and billed charges of a budget as CSV in the columns of FOCUS 1.2.

    Commitments have the tag `estimate`; `x_LineName` is `committed` or `charged`. An amount that is committed
    and then billed is in both.
    """
    with read.session() as session:
        return csv_response(service.render_focus_csv(session, read.tenant_id, id), f"budget-{id}")


@router.patch("/{id:name}", summary="Change a budget", response_model=Budget, responses=VERSIONED | PROPOSED)
def update_budget(
    write: SettledWrite, snapshots: Snapshots, id: BudgetPath, body: BudgetPatch, if_match: IfMatch = ""
) -> Response:
    """Changes terms of a budget, if its version matches the ETag. Its period cannot change.

    A larger amount, or enforcement that no longer blocks, waits (202) for approval or the end of the tenant's
    delay.
    """
    patch, catalog = body.model_dump(mode="json"), snapshots.get_current(write.tenant_id)
    return write.run(
        [patch, if_match],
        lambda session: service.change_budget(
            session, write.subject, id, patch=patch, if_match=if_match, catalog=catalog
        ),
    )


@router.delete("/{id:name}", summary="Delete a budget", status_code=204, responses=PROPOSED)
def delete_budget(write: SettledWrite, id: BudgetPath, if_match: IfMatch = "") -> Response:
    """Deletes a budget from which no approval has committed, if its version matches the ETag.

    The deletion waits (202) for approval or the end of the tenant's delay. Without a delay it is immediate
    (204).
    """
    return write.run(if_match, lambda session: service.delete_budget(session, write.subject, id, if_match))
