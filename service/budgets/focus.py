"""Export of a budget's commitments and charges in the columns of FOCUS.

Each row is in its own currency, while the budget converts them. A run that is committed and then billed has
rows of both kinds; ``x_LineName`` distinguishes them.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session

from service.budgets import repository
from service.budgets.money import to_decimal
from service.budgets.periods import Period, build_period, prorate_amount
from service.budgets.repository import DayCharge, QuoteCommitment
from service.budgets.tables import BudgetRow
from service.kit.http.csv_tables import render_csv
from service.planning.cost.focus import (
    COLUMNS,
    BillingAccount,
    ChargeCategory,
    ChargeFrequency,
    FocusCharge,
    ServiceCategory,
    build_focus_rows,
)

COMMITTED: Final = "committed"
CHARGED: Final = "charged"
_OTHER: Final = "Other"
_COMPUTE: Final = ServiceCategory("Compute", "Other (Compute)", "Accelerators")


def render_charges_csv(session: Session, budget: BudgetRow) -> str:
    """Returns the unreleased commitments of a budget and the charges of bills as CSV."""
    tags = {"budget_id": budget.id, "cost_center_id": budget.cost_center_id}
    account = BillingAccount(budget.tenant_id, budget.tenant_id, tags)
    return render_csv(COLUMNS, build_focus_rows(_list_charges(session, budget), account))


def _list_charges(session: Session, budget: BudgetRow) -> Iterator[FocusCharge]:
    within = build_period(budget.starts_on, budget.ends_on)
    for commitment in repository.list_commitments(session, budget):
        charge = _build_committed_charge(commitment, within)
        if charge is not None:
            yield charge
    yield from (_build_billed_charge(each) for each in repository.list_day_charges(session, budget))


def _build_committed_charge(commitment: QuoteCommitment, within: Period) -> FocusCharge | None:
    """Returns the part of a commitment in a period, or None if its amount is unknown."""
    if commitment.micros is None or commitment.currency_code is None:
        return None
    due, at_once = commitment.due, commitment.due.start == commitment.due.end
    amount = to_decimal(prorate_amount(commitment.micros, due, within) or 0)
    return FocusCharge(
        name=COMMITTED,
        description=f"Committed by approval {commitment.approval_id}",
        category=ChargeCategory.PURCHASE if at_once else ChargeCategory.USAGE,
        service=_COMPUTE,
        provider=_OTHER,
        currency_code=commitment.currency_code,
        billed=amount,
        effective=amount,
        start=max(due.start, within.start),
        end=due.end if at_once else min(due.end, within.end),
        source=f"approvals/{commitment.approval_id}",
        frequency=ChargeFrequency.ONCE if at_once else ChargeFrequency.BY_USE,
        tags={
            "approval_id": commitment.approval_id,
            "estimate": "true",
            "quote_id": commitment.quote_id,
            "quote_version": str(commitment.quote_version),
        },
    )


def _build_billed_charge(charge: DayCharge) -> FocusCharge:
    start = datetime.combine(date.fromisoformat(charge.day), datetime.min.time(), UTC)
    category = charge.service_category or _OTHER
    return FocusCharge(
        name=CHARGED,
        description=f"Charged by the bill {charge.import_id} of {charge.source}",
        category=ChargeCategory.USAGE,
        service=ServiceCategory(category, f"Other ({category})", category),
        provider=charge.source,
        currency_code=charge.currency_code,
        billed=to_decimal(charge.billed_micros),
        effective=to_decimal(charge.effective_micros),
        start=start,
        end=start + timedelta(days=1),
        source=f"actuals/{charge.import_id}",
        tags={} if charge.quote_id is None else {"quote_id": charge.quote_id},
    )
