"""Operations on budgets."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.approvals.budgets.face import BudgetPath, Face
from service.approvals.budgets.schemas import Budget, BudgetInput, BudgetPage, BudgetPatch, BudgetQuery
from service.approvals.changes.endpoints import PROPOSED
from service.audit.service import Caller, WriteCall
from service.kit.http.versions import ETAG, IfMatch
from service.kit.http.web import LOCATED, api_router

router = api_router("/v1/budgets", tag="budgets")
_TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}}
_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_CREATED: dict[int | str, dict[str, Any]] = {201: {"headers": ETAG | LOCATED[201]["headers"]}}


@router.get("", response_model=BudgetPage)
def list_budgets(face: Face, caller: Caller, query: Annotated[BudgetQuery, Query()]) -> Response:
    """A page of the tenant's budgets, with what is left of each."""
    return face.list(caller.tenant_id, query)


@router.post("", status_code=201, response_model=Budget, responses=_CREATED)
def create_budget(face: Face, call: WriteCall, body: BudgetInput) -> Response:
    """Create a budget of a cost centre under an id that is free."""
    return face.create(call, body)


@router.get("/{id:name}", response_model=Budget, responses=_TAGGED)
def get_budget(face: Face, caller: Caller, id: BudgetPath) -> Response:
    """A budget: what is committed, spent and left, and what approvals have committed."""
    return face.get(caller.tenant_id, id)


@router.get("/{id:name}/focus", response_class=Response, responses=_CSV)
def get_budget_focus(face: Face, caller: Caller, id: BudgetPath) -> Response:
    """What approvals have committed of a budget and what bills charge, as CSV in the columns of FOCUS 1.2.

    Commitments bear the tag `estimate`; `x_LineName` is `committed` or `charged`. What is committed and then
    billed is in both.
    """
    return face.focus(caller.tenant_id, id)


@router.patch("/{id:name}", response_model=Budget, responses=_TAGGED | PROPOSED)
def update_budget(
    face: Face, call: WriteCall, id: BudgetPath, body: BudgetPatch, if_match: IfMatch = ""
) -> Response:
    """Change terms of a budget, if it is still at the version of the ETag; its period stays.

    A larger amount, or to let it block no more, waits (202) for its approval or the end of the tenant's
    delay.
    """
    return face.change(call, id, body, if_match)


@router.delete("/{id:name}", status_code=204, responses=PROPOSED)
def delete_budget(face: Face, call: WriteCall, id: BudgetPath, if_match: IfMatch = "") -> Response:
    """Delete a budget of which no approval has committed, if it is still at the version of the ETag.

    The deletion waits (202) for its approval or the end of the tenant's delay, if there is one (else 204).
    """
    return face.delete(call, id, if_match)
