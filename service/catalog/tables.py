"""Table of catalog revisions. Tables of rows are beside their schemas."""

from datetime import datetime

from sqlalchemy import BigInteger, String
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import Base, UtcDateTime


class CatalogState(Base):
    """Number of changes of one tenant's rows, and for the shipped rows the digest of the last load.

    Every write of a tenant locks its row first, so its writes are serial and revisions have no gaps.
    """

    __tablename__ = "catalog_state"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger)
    shipped_digest: Mapped[str] = mapped_column(String(64))
    updated_at: Mapped[datetime] = mapped_column(UtcDateTime)
