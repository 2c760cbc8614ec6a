"""Files of measurements that were imported."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class EvidenceImportRow(Base):
    """What was read of one file, never changed. Whether it counts says the calibration that it became."""

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
    """Of the file, which is not kept."""
    sent_sha256: Mapped[str] = mapped_column(String(64))
    """Of all that was sent: the same evidence counts once."""
    calibration_id: Mapped[str] = mapped_column(String(100))
    run_count: Mapped[int] = mapped_column(BigInteger)
    reading_count: Mapped[int] = mapped_column(BigInteger)
    answers: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    """Measured figures beside what was estimated then."""
    figures: Mapped[list[str]] = mapped_column(Json)
    """Names of the figures of the device that were drawn."""
    readings: Mapped[list[dict[str, Any]]] = mapped_column(Json, deferred=True)
    refused: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    notes: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
