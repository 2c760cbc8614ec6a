"""Tables of tenants, API keys, ended sessions, and the fingerprint of the service's secret."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import SECRET, Base, Json, UtcDateTime


class TenantRow(Base):
    """One tenant. ``keys_revision`` rises with every change of its keys and of itself."""

    __tablename__ = "tenants"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    version: Mapped[int] = mapped_column(BigInteger)
    keys_revision: Mapped[int] = mapped_column(BigInteger)


class ApiKeyRow(Base):
    """One API key. During a rotation both secrets work, afterwards only the next one."""

    __tablename__ = "api_keys"

    tenant_id: Mapped[str] = mapped_column(String(100), index=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    name: Mapped[str] = mapped_column(Text)
    scopes: Mapped[list[str]] = mapped_column(Json)
    digest: Mapped[str] = mapped_column(String(64), info=SECRET)
    next_digest: Mapped[str | None] = mapped_column(String(64), info=SECRET)
    rotation_ends_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str | None] = mapped_column(String(300))
    """Name of the subject that made the key. Unknown for keys older than the column."""
    lineage: Mapped[list[str]] = mapped_column(Json)
    """Subject that made the key, the maker of the key that it was made with, and so on to the first."""
    handed_to: Mapped[list[str]] = mapped_column(Json, default=list)
    """Subjects that were handed a secret of the key by a rotation, with their lineage."""
    expires_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    revoked_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    last_used_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    version: Mapped[int] = mapped_column(BigInteger)


class PastKeyRow(Base):
    """Lineage of a key that was removed long after it ended. It still attributes what was done by the key."""

    __tablename__ = "past_api_keys"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    lineage: Mapped[list[str]] = mapped_column(Json)


class IdentityRow(Base):
    """Verified identity of a subject of the issuer at the time of a write. It is never removed."""

    __tablename__ = "identities"
    __table_args__ = (
        UniqueConstraint("tenant_id", "subject", "person", name="uq_identities_subject"),
        Index("ix_identities_person", "tenant_id", "person"),
    )

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    subject: Mapped[str] = mapped_column(String(300))
    person: Mapped[str] = mapped_column(String(300))
    seen_at: Mapped[datetime] = mapped_column(UtcDateTime)
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time from which credentials that the person handed out are refused. Absent unless disabled."""


class EndedSessionRow(Base):
    """A browser session that was ended early, or everything of a person that began before.

    The id does not name the person.
    """

    __tablename__ = "ended_sessions"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    generation: Mapped[int | None] = mapped_column(BigInteger)
    """Number of times that everything of the person was ended. Absent for one session, and for persons who
    were last ended before the column existed; that is their first generation.
    """
    ended_at: Mapped[datetime] = mapped_column(UtcDateTime)
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    """Time by which the session has ended by itself. Far in the future for a person."""


class InstallationRow(Base):
    """Fingerprint of the secret that digests and seals of this database were made with."""

    __tablename__ = "installation"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(32))
