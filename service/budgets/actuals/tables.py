"""Tables of imported bills and their charges for quotes and cost centres."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class ActualsImportRow(Base):
    """An imported bill. The file itself is not stored."""

    __tablename__ = "actuals_imports"
    __table_args__ = (Index("ix_actuals_imports_listed", "tenant_id", "created_at", "id"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    source: Mapped[str] = mapped_column(String(100))
    note: Mapped[str | None] = mapped_column(Text)
    content_sha256: Mapped[str] = mapped_column(String(64))
    row_count: Mapped[int] = mapped_column(BigInteger)
    matched_row_count: Mapped[int] = mapped_column(BigInteger)
    periods: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    """Billing periods of the bill with their sums."""
    notes: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    withdrawn_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    reason: Mapped[str | None] = mapped_column(Text)


class ActualsPeriodRow(Base):
    """Import that counts for a billing period of a source.

    Concurrent imports of a period wait for this row.
    """

    __tablename__ = "actuals_periods"
    __table_args__ = (Index("ix_actuals_periods_import", "tenant_id", "import_id"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    source: Mapped[str] = mapped_column(String(100), primary_key=True)
    starts_at: Mapped[datetime] = mapped_column(UtcDateTime, primary_key=True)
    covered_until: Mapped[datetime] = mapped_column(UtcDateTime)
    import_id: Mapped[str] = mapped_column(String(100))
    charges_sha256: Mapped[str] = mapped_column(String(64))
    """Digest of the stored charges of the period."""


class ActualChargeRow(Base):
    """A charge that counts, of a day, for a quote or a cost centre."""

    __tablename__ = "actual_charges"
    __table_args__ = (
        Index("ix_actual_charges_quote", "tenant_id", "quote_id"),
        Index("ix_actual_charges_cost_center", "tenant_id", "cost_center_id", "day"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    import_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    billing_starts_at: Mapped[datetime] = mapped_column(UtcDateTime)
    """Start of the billing period of the charge's bill."""
    day: Mapped[str] = mapped_column(String(10))
    quote_id: Mapped[str | None] = mapped_column(String(100))
    cost_center_id: Mapped[str | None] = mapped_column(String(100))
    service_category: Mapped[str | None] = mapped_column(String(100))
    currency_code: Mapped[str] = mapped_column(String(3))
    billed_micros: Mapped[int] = mapped_column(BigInteger)
    effective_micros: Mapped[int] = mapped_column(BigInteger)
