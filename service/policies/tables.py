"""Table of approval policies."""

from datetime import datetime

from sqlalchemy import BigInteger, Boolean, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class ApprovalPolicyRow(Base):
    """Rule for the approvers of quotes. A deleted policy is kept, so that no version number is reused."""

    __tablename__ = "approval_policies"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    version: Mapped[int] = mapped_column(BigInteger)
    is_live: Mapped[bool] = mapped_column(Boolean)
    document: Mapped[str] = mapped_column(Text)
    """JSON text, with every number as it was written."""
    written_by: Mapped[list[str] | None] = mapped_column(Json)
    """Writers of any version since the policy was created. For older rows they are in the audit chain."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
