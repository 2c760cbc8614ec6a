"""Table of cost centres."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, Json, UtcDateTime


class CostCenterRow(Base):
    """A payer, with the accounts and tags that identify its charges on bills."""

    __tablename__ = "cost_centers"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    note: Mapped[str | None] = mapped_column(Text)
    accounts: Mapped[list[str]] = mapped_column(Json)
    tags: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    version: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
