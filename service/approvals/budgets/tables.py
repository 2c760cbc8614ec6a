"""Table of budgets. Their usage comes from approvals and bills."""

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
