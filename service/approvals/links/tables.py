"""Table of approval links."""

from datetime import datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import SECRET, Base, UtcDateTime


class ApprovalLinkRow(Base):
    """A link for one decision of an approver in one step."""

    __tablename__ = "approval_links"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    approval_id: Mapped[str] = mapped_column(String(100))
    step_number: Mapped[int] = mapped_column(BigInteger)
    approver: Mapped[str] = mapped_column(String(300))
    digest: Mapped[str] = mapped_column(String(64), info=SECRET)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str] = mapped_column(String(300))
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
