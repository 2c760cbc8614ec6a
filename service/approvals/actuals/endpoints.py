"""Operations on actuals."""

from functools import partial
from typing import Annotated

from fastapi import Query, Response

from service.approvals.actuals import service
from service.approvals.actuals.face import Face, ImportPath, QuotePath
from service.approvals.actuals.schemas import (
    Actuals,
    ActualsAccuracy,
    ActualsImport,
    ActualsPage,
    ActualsWithdrawal,
    QuoteActuals,
)
from service.audit.service import Caller, WriteCall
from service.kit.http.pages import PageQuery
from service.kit.http.web import LOCATED, LargeAside, WorkAside, api_router

router = api_router("/v1/actuals", tag="actuals")
of_quotes = api_router("/v1/quotes", tag="actuals")


@router.get("", response_model=ActualsPage)
def list_actuals(face: Face, caller: Caller, query: Annotated[PageQuery, Query()]) -> Response:
    """A page of the tenant's imported bills, the newest first."""
    return face.list(caller.tenant_id, query)


@router.post(":import", status_code=201, response_model=Actuals, responses=LOCATED)
async def import_actuals(
    face: Face, call: WriteCall, aside: WorkAside, beside: LargeAside, body: ActualsImport
) -> Response:
    """Set what was billed against quotes and budgets: a table in the columns of FOCUS 1.0 to 1.3.

    A charge belongs to the quote that its tag `quote_id` names, and to a cost centre by its quote, tags or
    account. A bill with a wrong row is refused whole, each fault with its line and column; so is one that was
    imported before, unless it says which import it `replaces`.
    """
    bill = await aside(partial(service.read, body))
    return await beside(partial(face.create, call, body, bill))


@router.get(":accuracy", response_model=ActualsAccuracy)
def get_actuals_accuracy(face: Face, caller: Caller) -> Response:
    """How far quotes were off what was billed for them: error, bias, how often the interval held."""
    return face.accuracy(caller.tenant_id)


@router.get("/{id:name}", response_model=Actuals)
def get_actuals(face: Face, caller: Caller, id: ImportPath) -> Response:
    """An imported bill: its billing periods, its sums, and how much of it belongs to something."""
    return face.get(caller.tenant_id, id)


@router.post("/{id:name}:withdraw", response_model=Actuals)
def withdraw_actuals(face: Face, call: WriteCall, id: ImportPath, body: ActualsWithdrawal) -> Response:
    """Let a bill count no longer; an earlier one whose place it took does not come back."""
    return face.withdraw(call, id, body.reason)


@of_quotes.get("/{id:name}/actuals", response_model=QuoteActuals)
def get_quote_actuals(face: Face, caller: Caller, id: QuotePath) -> Response:
    """What was billed for a quote so far, beside what it says of the time that is billed."""
    return face.of_quote(caller.tenant_id, id)
