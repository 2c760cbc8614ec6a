"""Table of the versions of quotes."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, UtcDateTime

DRAFT = "draft"
PENDING = "pending"
APPROVED = "approved"
REJECTED = "rejected"
EXPIRED = "expired"
CANCELLED = "cancelled"
SUPERSEDED = "superseded"


class QuoteRow(Base):
    """A version of a quote. Only ``state`` changes; the digest covers all other columns."""

    __tablename__ = "quotes"
    __table_args__ = (
        Index("ix_quotes_listed", "tenant_id", "created_at", "id"),
        Index("ix_quotes_cost_center", "tenant_id", "cost_center_id"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    state: Mapped[str] = mapped_column(String(20))
    operation: Mapped[str] = mapped_column(String(20))
    name: Mapped[str] = mapped_column(String(500))
    cost_center_id: Mapped[str | None] = mapped_column(String(100))
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str] = mapped_column(String(300))
    valid_until: Mapped[datetime] = mapped_column(UtcDateTime)
    catalog_revision: Mapped[int] = mapped_column(BigInteger)
    method_version: Mapped[str] = mapped_column(String(20))
    summary: Mapped[str] = mapped_column(Text)
    """Members of the list representation that are not columns, as JSON."""
    document: Mapped[str] = mapped_column(Text, deferred=True)
    """All other members, as JSON in the order in which they were written."""
    focus: Mapped[str | None] = mapped_column(Text, deferred=True)
    """Charges as CSV in the columns of FOCUS. If there are none, a gap of the document has the reason."""
    content_digest: Mapped[str] = mapped_column(String(64))
