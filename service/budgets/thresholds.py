"""Events of budgets about thresholds, each reported once."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from service.audit.service import WriteOutcome, to_audit_columns
from service.budgets import repository
from service.budgets.money import to_money
from service.budgets.tables import BudgetRow
from service.budgets.usage import BudgetUsage, compute_usage
from service.cost_centers import service as cost_centers
from service.kit.database.engine import Writer
from service.kit.jobs.events import emit_event
from service.planning.cost.exchange import ExchangeRates
from service.schemas.events import BudgetEvent, WebhookEventType

_EXCEEDED: Final = "exceeded"


def emit_center_events(
    session: Writer, tenant_id: str, centers: Iterable[str], rates: ExchangeRates
) -> tuple[WriteOutcome, ...]:
    """Emits events of the budgets of cost centres. Waits for concurrent commitments."""
    ids = [each for each in sorted(set(centers)) if cost_centers.lock_cost_center(session, tenant_id, each)]
    told = (
        emit_threshold_events(session, each, rates)
        for each in repository.list_by_centers(session, tenant_id, ids)
    )
    return tuple(change for change in told if change is not None)


def emit_threshold_events(
    session: Writer, budget: BudgetRow, rates: ExchangeRates, approval_id: str = ""
) -> WriteOutcome | None:
    """Emits the events of thresholds that are newly reached. Returns the change for the audit, or None."""
    before, usage = to_recorded_columns(budget), compute_usage(session, budget, rates)
    reached = _list_reached_thresholds(budget, usage)
    new = [name for name in reached if name not in budget.told]
    if not new:
        return None
    for name in new:
        share = reached[name]
        kind = (
            WebhookEventType.BUDGET_EXCEEDED if share is None else WebhookEventType.BUDGET_THRESHOLD_REACHED
        )
        emit_event(session, budget.tenant_id, kind, _build_event(budget, usage, share, approval_id))
    budget.told = [*budget.told, *new]
    session.flush()
    return WriteOutcome(resource=f"budgets/{budget.id}", before=before, after=to_recorded_columns(budget))


def reset_thresholds(session: Writer, budget: BudgetRow, rates: ExchangeRates) -> None:
    """Allows thresholds that are no longer reached to be reported again."""
    reached = _list_reached_thresholds(budget, compute_usage(session, budget, rates))
    budget.told = [name for name in budget.told if name in reached]


def to_recorded_columns(budget: BudgetRow) -> dict[str, Any]:
    """Returns a budget as the audit digests it, without columns that are newer than the row."""
    columns = to_audit_columns(budget)
    return columns if budget.raised_by is not None else {k: v for k, v in columns.items() if k != "raised_by"}


def _list_reached_thresholds(budget: BudgetRow, usage: BudgetUsage) -> dict[str, float | None]:
    """Returns the thresholds that the usage has reached, by name; None marks an exceeded budget."""
    taken = usage.compute_taken()
    reached: dict[str, float | None] = {
        str(share): share
        for share in sorted(budget.thresholds)
        if taken > 0 and taken >= Decimal(str(share)) * budget.amount_micros
    }
    return reached | ({_EXCEEDED: None} if taken > budget.amount_micros else {})


def _build_event(budget: BudgetRow, usage: BudgetUsage, share: float | None, approval_id: str) -> BudgetEvent:
    currency = budget.currency_code
    event: BudgetEvent = {
        "budget_id": budget.id,
        "cost_center_id": budget.cost_center_id,
        "amount": to_money(budget.amount_micros, currency),
        "committed": to_money(usage.committed_micros, currency),
        "spent": to_money(usage.spent_micros, currency),
    }
    if share is not None:
        event["threshold_share"] = share
    if approval_id:
        event["approval_id"] = approval_id
    return event
