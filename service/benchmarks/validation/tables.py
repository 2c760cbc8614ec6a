"""Table of validations."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class BenchmarkValidationRow(Base):
    """Verdict on one result that has a measurement, under the rules that were last applied to it."""

    __tablename__ = "benchmark_validations"
    __table_args__ = (
        Index("ix_benchmark_validations_verdict", "tenant_id", "verdict"),
        Index("ix_benchmark_validations_samples", "tenant_id", "samples_sha256"),
        Index("ix_benchmark_validations_checksum", "tenant_id", "checksum"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    result_id: Mapped[str] = mapped_column(String(36), primary_key=True)
    rules_version: Mapped[int] = mapped_column(BigInteger)
    verdict: Mapped[str] = mapped_column(String(20))
    findings: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    unchecked: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    agreeing_run_ids: Mapped[list[str]] = mapped_column(Json)
    """Ids of runs of the same benchmark on the same node whose figures agree."""
    samples_sha256: Mapped[str | None] = mapped_column(String(64))
    """Digest of the samples. None if they are too few to identify a measurement."""
    checksum: Mapped[str | None] = mapped_column(String(64))
    """Checksum of the result that was computed from the seed."""
    seed: Mapped[int] = mapped_column(BigInteger)
    validated_at: Mapped[datetime] = mapped_column(UtcDateTime)
