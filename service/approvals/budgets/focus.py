"""What is taken of a budget as accountants read it: its commitments and its charges in the columns of FOCUS.

Each in its own currency: what a budget converts is told by the budget. Both kinds of rows together count a
run twice that is committed and then billed; ``x_LineName`` tells them apart.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session

from service.approvals.budgets import repository
from service.approvals.budgets.money import decimal
from service.approvals.budgets.periods import Period, days, part
from service.approvals.budgets.repository import Commitment, DayCharge
from service.approvals.budgets.tables import BudgetRow
from service.kit.http.csv_tables import csv_text
from service.planning.cost.focus import (
    COLUMNS,
    Account,
    Charge,
    ChargeCategory,
    Frequency,
    Service,
    focus_rows,
)

COMMITTED: Final = "committed"
CHARGED: Final = "charged"
_OTHER: Final = "Other"
_COMPUTE: Final = Service("Compute", "Other (Compute)", "Accelerators")


def charges_csv(session: Session, budget: BudgetRow) -> str:
    """Rows of what is committed of a budget and not released, and of what bills charge, as CSV."""
    tags = {"budget_id": budget.id, "cost_center_id": budget.cost_center_id}
    account = Account(budget.tenant_id, budget.tenant_id, tags)
    return csv_text(COLUMNS, focus_rows(_charges(session, budget), account))


def _charges(session: Session, budget: BudgetRow) -> Iterator[Charge]:
    within = days(budget.starts_on, budget.ends_on)
    for commitment in repository.commitments(session, budget):
        charge = _committed(commitment, within)
        if charge is not None:
            yield charge
    yield from (_charged(each) for each in repository.charges(session, budget))


def _committed(commitment: Commitment, within: Period) -> Charge | None:
    """What of a commitment falls into a period; None where nobody knows how much that is."""
    if commitment.micros is None or commitment.currency_code is None:
        return None
    due, at_once = commitment.due, commitment.due.start == commitment.due.end
    amount = decimal(part(commitment.micros, due, within) or 0)
    return Charge(
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
        frequency=Frequency.ONCE if at_once else Frequency.BY_USE,
        tags={
            "approval_id": commitment.approval_id,
            "estimate": "true",
            "quote_id": commitment.quote_id,
            "quote_version": str(commitment.quote_version),
        },
    )


def _charged(charge: DayCharge) -> Charge:
    start = datetime.combine(date.fromisoformat(charge.day), datetime.min.time(), UTC)
    category = charge.service_category or _OTHER
    return Charge(
        name=CHARGED,
        description=f"Charged by the bill {charge.import_id} of {charge.source}",
        category=ChargeCategory.USAGE,
        service=Service(category, f"Other ({category})", category),
        provider=charge.source,
        currency_code=charge.currency_code,
        billed=decimal(charge.billed_micros),
        effective=decimal(charge.effective_micros),
        start=start,
        end=start + timedelta(days=1),
        source=f"actuals/{charge.import_id}",
        tags={} if charge.quote_id is None else {"quote_id": charge.quote_id},
    )
