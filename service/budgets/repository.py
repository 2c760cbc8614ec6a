"""Queries of budgets, their commitments and their spending."""

from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from service.budgets.actuals.tables import ActualChargeRow, ActualsImportRow
from service.budgets.periods import Period, build_period
from service.budgets.tables import BudgetRow, CommitmentRow
from service.kit.database.engine import Reader

_UNIT = 1_000_000


def get_budget(session: Session, tenant_id: str, budget_id: str) -> BudgetRow | None:
    """Returns a budget of a tenant from the database, or None."""
    return session.get(BudgetRow, (tenant_id, budget_id), populate_existing=True)


def list_after(
    session: Reader, tenant_id: str, after_id: str, centers: Collection[str], limit: int | None
) -> Sequence[BudgetRow]:
    """Returns budgets of a tenant after an id, in order of id, optionally of some cost centres."""
    own = select(BudgetRow).where(BudgetRow.tenant_id == tenant_id, BudgetRow.id > after_id)
    if centers:
        own = own.where(BudgetRow.cost_center_id.in_(centers))
    return session.scalars(own.order_by(BudgetRow.id).limit(limit)).all()


def list_by_centers(session: Session, tenant_id: str, centers: Collection[str]) -> Sequence[BudgetRow]:
    """Returns every budget of some cost centres, in order of id."""
    own = select(BudgetRow).where(BudgetRow.tenant_id == tenant_id, BudgetRow.cost_center_id.in_(centers))
    fresh = own.order_by(BudgetRow.id).execution_options(populate_existing=True)
    return session.scalars(fresh).all()


class QuoteCommitment(NamedTuple):
    """Commitment of an approval in the currency of its quote; None if the amount is unknown."""

    approval_id: str
    quote_id: str
    quote_version: int
    micros: int | None
    currency_code: str | None
    committed_at: datetime
    due: Period
    released_at: datetime | None = None


def list_commitments(
    session: Session, budget: BudgetRow, *, with_released: bool = False, limit: int | None = None
) -> list[QuoteCommitment]:
    """Returns the commitments of approvals in the period of a budget, the newest first."""
    one, within = CommitmentRow, build_period(budget.starts_on, budget.ends_on)
    told = (one.id, one.quote_id, one.quote_version, one.committed_micros, one.committed_currency_code)
    own = select(*told, one.committed_at, one.due_from, one.due_until, one.released_at).where(
        one.tenant_id == budget.tenant_id,
        one.cost_center_id == budget.cost_center_id,
        one.committed_at.is_not(None),
        one.due_from < within.end,
        one.due_until >= within.start,
        or_(one.due_until > within.start, one.due_from == one.due_until),
    )
    if not with_released:
        own = own.where(one.released_at.is_(None))
    found = session.execute(own.order_by(one.committed_at.desc(), one.id).limit(limit))
    return [QuoteCommitment._make((*row[:-3], Period._make(row[-3:-1]), row[-1])) for row in found]


def has_commitments(session: Session, tenant_id: str, center_id: str) -> bool:
    """Returns true if approvals have unreleased commitments for a cost centre."""
    own = select(CommitmentRow.id).where(
        CommitmentRow.tenant_id == tenant_id,
        CommitmentRow.cost_center_id == center_id,
        CommitmentRow.committed_at.is_not(None),
        CommitmentRow.released_at.is_(None),
    )
    return session.scalars(own.limit(1)).first() is not None


class SpentAmount(NamedTuple):
    """Spending for a quote, or without one, by the bills that were imported on a day."""

    quote_id: str | None
    currency_code: str
    imported_on: date
    micros: int


def list_spent(session: Session, budget: BudgetRow) -> list[SpentAmount]:
    """Returns the spending of a cost centre in the period of a budget."""
    charge = ActualChargeRow
    return _sum_spent(
        session,
        charge.tenant_id == budget.tenant_id,
        charge.cost_center_id == budget.cost_center_id,
        charge.day.between(budget.starts_on, budget.ends_on),
    )


class DayCharge(NamedTuple):
    """Charge of a bill to a cost centre for a day."""

    import_id: str
    source: str
    day: str
    quote_id: str | None
    service_category: str | None
    currency_code: str
    billed_micros: int
    effective_micros: int


def list_day_charges(session: Session, budget: BudgetRow) -> Iterator[DayCharge]:
    """Yields the charges of bills to a cost centre in the period of a budget, by day."""
    one, bill = ActualChargeRow, ActualsImportRow
    told = (one.import_id, bill.source, one.day, one.quote_id, one.service_category, one.currency_code)
    same = (bill.tenant_id == one.tenant_id) & (bill.id == one.import_id)
    own = select(*told, one.billed_micros, one.effective_micros).join(bill, same)
    own = own.where(
        one.tenant_id == budget.tenant_id,
        one.cost_center_id == budget.cost_center_id,
        one.day.between(budget.starts_on, budget.ends_on),
    )
    rows = session.execute(own.order_by(one.day, one.import_id, one.number))
    return (DayCharge._make(row) for row in rows)


def list_quote_spent(session: Session, tenant_id: str, quote_id: str) -> list[SpentAmount]:
    """Returns the spending for a quote at any time."""
    return _sum_spent(session, ActualChargeRow.tenant_id == tenant_id, ActualChargeRow.quote_id == quote_id)


def _sum_spent(session: Session, *of_these: ColumnElement[bool]) -> list[SpentAmount]:
    charge, amount = ActualChargeRow, ActualChargeRow.effective_micros
    keys = (charge.quote_id, charge.currency_code, ActualsImportRow.created_at)
    # Units and the remainder are summed separately, so that sums stay within 64 bits.
    sums = (func.sum(amount // _UNIT), func.sum(amount - (amount // _UNIT) * _UNIT))
    same = (ActualsImportRow.tenant_id == charge.tenant_id) & (ActualsImportRow.id == charge.import_id)
    statement = select(*keys, *sums).join(ActualsImportRow, same).where(*of_these).group_by(*keys)
    return [
        SpentAmount(quote_id, currency, created_at.date(), int(units) * _UNIT + int(rest))
        for quote_id, currency, created_at, units, rest in session.execute(statement)
    ]


def list_running_budgets(session: Session, today: str) -> Sequence[BudgetRow]:
    """Returns every budget that runs on a day, over all tenants."""
    own = select(BudgetRow).where(BudgetRow.starts_on <= today, BudgetRow.ends_on >= today)
    return session.scalars(own.order_by(BudgetRow.tenant_id, BudgetRow.id)).all()
