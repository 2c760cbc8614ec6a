"""Files of measurements that were imported."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class EvidenceImportRow(Base):
    """Evidence of one imported file, never changed. The state of its calibration determines if it counts."""

    __tablename__ = "evidence_imports"
    __table_args__ = (
        Index("ix_evidence_imports_listed", "tenant_id", "created_at", "id"),
        Index("ix_evidence_imports_sent", "tenant_id", "sent_sha256"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    format: Mapped[str] = mapped_column(String(40))
    note: Mapped[str | None] = mapped_column(Text)
    content_sha256: Mapped[str] = mapped_column(String(64))
    """Digest of the file, which is not stored."""
    sent_sha256: Mapped[str] = mapped_column(String(64))
    """Digest of the whole request, so that the same evidence counts once."""
    calibration_id: Mapped[str] = mapped_column(String(100))
    run_count: Mapped[int] = mapped_column(BigInteger)
    reading_count: Mapped[int] = mapped_column(BigInteger)
    answers: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    """Measured figures beside their estimates at the time."""
    figures: Mapped[list[str]] = mapped_column(Json)
    """Names of the figures of the device that were derived."""
    readings: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True)
    refused: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    notes: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
