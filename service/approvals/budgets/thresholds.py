"""Of what events of budgets tell: thresholds that are reached, each once."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from service.approvals.budgets import repository
from service.approvals.budgets.money import money
from service.approvals.budgets.tables import BudgetRow
from service.approvals.budgets.usage import Usage, usage_of
from service.approvals.cost_centers import repository as cost_centers
from service.audit.service import Change, columns_of
from service.kit.database.engine import Writer
from service.kit.jobs.events import emit
from service.planning.cost.exchange import ExchangeRates
from service.schemas.events import BudgetEvent, EventType

_EXCEEDED: Final = "exceeded"


def tell_of(
    session: Writer, tenant_id: str, centers: Iterable[str], rates: ExchangeRates
) -> tuple[Change, ...]:
    """Tell of the budgets of cost centres what has come to be reached; waits for who commits of them."""
    ids = [each for each in sorted(set(centers)) if cost_centers.locked(session, tenant_id, each)]
    told = (tell(session, each, rates) for each in repository.of_centers(session, tenant_id, ids))
    return tuple(change for change in told if change is not None)


def tell(session: Writer, budget: BudgetRow, rates: ExchangeRates, approval_id: str = "") -> Change | None:
    """Emit the events of thresholds that are reached now; what it changed, for the audit."""
    before, usage = recorded_columns(budget), usage_of(session, budget, rates)
    reached = _reached(budget, usage)
    new = [name for name in reached if name not in budget.told]
    if not new:
        return None
    for name in new:
        share = reached[name]
        kind = EventType.BUDGET_EXCEEDED if share is None else EventType.BUDGET_THRESHOLD_REACHED
        emit(session, budget.tenant_id, kind, _event(budget, usage, share, approval_id))
    budget.told = [*budget.told, *new]
    session.flush()
    return Change(resource=f"budgets/{budget.id}", before=before, after=recorded_columns(budget))


def forget(session: Writer, budget: BudgetRow, rates: ExchangeRates) -> None:
    """Let what is no longer reached be told of again."""
    reached = _reached(budget, usage_of(session, budget, rates))
    budget.told = [name for name in budget.told if name in reached]


def recorded_columns(budget: BudgetRow) -> dict[str, Any]:
    """A budget as the audit holds a digest of it: of a row older than a column, without the column."""
    columns = columns_of(budget)
    return columns if budget.raised_by is not None else {k: v for k, v in columns.items() if k != "raised_by"}


def _reached(budget: BudgetRow, usage: Usage) -> dict[str, float | None]:
    """Thresholds that what is taken has reached, by name; None is that it is exceeded."""
    taken = usage.taken()
    reached: dict[str, float | None] = {
        str(share): share
        for share in sorted(budget.thresholds)
        if taken > 0 and taken >= Decimal(str(share)) * budget.amount_micros
    }
    return reached | ({_EXCEEDED: None} if taken > budget.amount_micros else {})


def _event(budget: BudgetRow, usage: Usage, share: float | None, approval_id: str) -> BudgetEvent:
    currency = budget.currency_code
    event: BudgetEvent = {
        "budget_id": budget.id,
        "cost_center_id": budget.cost_center_id,
        "amount": money(budget.amount_micros, currency),
        "committed": money(usage.committed_micros, currency),
        "spent": money(usage.spent_micros, currency),
    }
    if share is not None:
        event["threshold_share"] = share
    if approval_id:
        event["approval_id"] = approval_id
    return event
