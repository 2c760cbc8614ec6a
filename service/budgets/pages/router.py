"""Pages of budgets: what is left of each, and what has taken from it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

from fastapi import Path, Response

from service.audit.service import Transactions
from service.auth.sessions import AuthenticatedPageRoute, VisitorDependency
from service.budgets import repository, service
from service.cost_centers import service as cost_centers
from service.evidence.snapshot import Snapshots
from service.kit.database.engine import Reader
from service.kit.http.html import page_response, page_router, render_template
from service.quotes.service import find_names
from service.schemas.base import ResourceId

router = page_router(tag="budgets", route_class=AuthenticatedPageRoute)
BudgetPath = Annotated[ResourceId, Path(alias="id")]
MOST_LISTED: Final = 200


@router.get("/budgets")
def budgets_page(transactions: Transactions, snapshots: Snapshots, visitor: VisitorDependency) -> Response:
    """Shows the budgets with what is left of each."""
    tenant_id = visitor.subject.tenant_id
    with transactions.open_reader() as session:
        rows = repository.list_after(session, tenant_id, "", (), MOST_LISTED)
        listed = service.list_summaries(session, rows, snapshots.get_current(tenant_id))
        budgets = [_describe_budget(session, tenant_id, one) for one in listed]
    page = render_template("budgets/pages/budgets.html", visitor=visitor, budgets=budgets)
    return page_response(page)


@router.get("/budgets/{id:name}")
def budget_page(
    transactions: Transactions, snapshots: Snapshots, visitor: VisitorDependency, id: BudgetPath
) -> Response:
    """Shows a budget with its newest commitments."""
    tenant_id = visitor.subject.tenant_id
    with transactions.open_reader() as session:
        found = service.get_budget(session, tenant_id, id, snapshots.get_current(tenant_id))
        budget = _describe_budget(session, tenant_id, found)
        names = find_names(session, tenant_id, {each["quote_id"] for each in found["commitments"]})
    page = render_template("budgets/pages/budget.html", visitor=visitor, budget=budget, names=names)
    return page_response(page)


def _describe_budget(session: Reader, tenant_id: str, budget: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a budget with the name of its cost centre and the share of it that is taken."""
    center_id = budget["cost_center_id"]
    amount, remaining = (Decimal(budget[name]["amount"]) for name in ("amount", "remaining"))
    return {
        **budget,
        "cost_center": cost_centers.find_name(session, tenant_id, center_id) or center_id,
        "taken_share": float((amount - remaining) / amount) if amount else 1.0,
    }
