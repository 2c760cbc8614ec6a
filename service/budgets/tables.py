"""Table of budgets, whose usage comes from bills and from the part of an approval that is declared here."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class BudgetRow(Base):
    """Amount that a cost centre may spend in a period. Every commitment locks its cost centre first."""

    __tablename__ = "budgets"
    __table_args__ = (Index("ix_budgets_cost_center", "tenant_id", "cost_center_id", "starts_on"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    note: Mapped[str | None] = mapped_column(Text)
    cost_center_id: Mapped[str] = mapped_column(String(100))
    starts_on: Mapped[str] = mapped_column(String(10))
    ends_on: Mapped[str] = mapped_column(String(10))
    """Last day of the budget."""
    amount_micros: Mapped[int] = mapped_column(BigInteger)
    currency_code: Mapped[str] = mapped_column(String(3))
    thresholds: Mapped[list[float]] = mapped_column(Json)
    enforcement: Mapped[str] = mapped_column(String(10))
    told: Mapped[list[str]] = mapped_column(Json)
    """Thresholds that were reported, and the mark that the budget is exceeded."""
    raised_by: Mapped[list[str] | None] = mapped_column(Json)
    """Subjects who raised the amount or removed the blocking."""
    version: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)


class CommitmentRow(Base):
    """Commitment of a cost centre: the part of an approval that budgets know. Approvals extend the row."""

    __tablename__ = "approvals"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    quote_id: Mapped[str] = mapped_column(String(100))
    quote_version: Mapped[int] = mapped_column(BigInteger)
    cost_center_id: Mapped[str | None] = mapped_column(String(100))
    committed_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time of the approval, from which the cost centre has a commitment."""
    committed_micros: Mapped[int | None] = mapped_column(BigInteger)
    """Amount of the commitment as quoted. Absent if unknown."""
    committed_currency_code: Mapped[str | None] = mapped_column(String(3))
    due_from: Mapped[datetime | None] = mapped_column(UtcDateTime)
    due_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """The commitment falls due evenly over this period, or at once if the period is a moment."""
    released_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time at which the unbilled rest of the commitment was released."""


Index("ix_approvals_due", CommitmentRow.tenant_id, CommitmentRow.cost_center_id, CommitmentRow.due_until)
