"""Tables of the audit chains and their heads."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import SECRET, Base, UtcDateTime


class AuditEventRow(Base):
    """A stored write. Its subject can be redacted, because the hash covers its salted digest."""

    __tablename__ = "audit_events"
    __table_args__ = (Index("ix_audit_events_resource", "tenant_id", "resource", "sequence"),)

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    sequence: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    occurred_at: Mapped[datetime] = mapped_column(UtcDateTime)
    operation: Mapped[str] = mapped_column(String(100))
    resource: Mapped[str] = mapped_column(String(300))
    subject_kind: Mapped[str] = mapped_column(String(20))
    subject_id: Mapped[str | None] = mapped_column(String(255))
    subject_salt: Mapped[bytes | None] = mapped_column(LargeBinary, info=SECRET)
    subject_digest: Mapped[str] = mapped_column(String(64))
    request_id: Mapped[str] = mapped_column(String(16))
    before_digest: Mapped[str | None] = mapped_column(String(64))
    after_digest: Mapped[str | None] = mapped_column(String(64))
    state_digest: Mapped[str | None] = mapped_column(String(64))
    """Digest of the complete stored state. Absent after a deletion and in older events."""
    previous_hash: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64))


class AuditHeadRow(Base):
    """The last event of a tenant, sealed with a key that is not in the database.

    Cutting off the end of the chain would need a forged seal. Every write locks this row last.
    """

    __tablename__ = "audit_heads"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    sequence: Mapped[int] = mapped_column(BigInteger)
    hash: Mapped[str] = mapped_column(String(64))
    seal: Mapped[str] = mapped_column(String(64))
