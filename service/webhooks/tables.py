"""Tables of webhooks, of deliveries to them, and of attempts."""

from datetime import datetime

from sqlalchemy import BigInteger, Index, Integer, LargeBinary, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from service.kit.database.engine import SECRET, Base, Json, UtcDateTime
from service.kit.jobs.leases import RUNNING, LeasedColumns

DELIVERED = "delivered"
FAILED = "failed"
CANCELLED = "cancelled"
_RUNS = text(f"state = '{RUNNING}'")


class WebhookRow(Base):
    """Address at which a tenant is told of events. Secrets are encrypted under the service's own."""

    __tablename__ = "webhooks"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    id: Mapped[str] = mapped_column(String(100), primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    event_types: Mapped[list[str]] = mapped_column(Json)
    """Event types that it is told of. Empty for all."""
    signature_scheme: Mapped[str] = mapped_column(String(10))
    public_key: Mapped[str | None] = mapped_column(String(100))
    """Public key of the secret, if receivers check signatures without the secret."""
    secret: Mapped[bytes] = mapped_column(LargeBinary, info=SECRET)
    previous_secret: Mapped[bytes | None] = mapped_column(LargeBinary, info=SECRET)
    rotation_ends_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time until which messages are signed with the previous secret too."""
    disabled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    disabled_reason: Mapped[str | None] = mapped_column(String(20))
    failing_since: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time of the first failure since the last success."""
    succeeded_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    paused_until: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """Time until which nothing is sent to the receiver."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    created_by: Mapped[str] = mapped_column(String(300))
    on_behalf_of: Mapped[str] = mapped_column(String(300))
    """Name of the subject that last set the URL or the event types."""
    scopes: Mapped[list[str]] = mapped_column(Json)
    """Scopes that the subject had then."""
    version: Mapped[int] = mapped_column(BigInteger)


class DeliveryRow(LeasedColumns, Base):
    """Delivery of one event to one webhook, leased to the process that sends it."""

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        UniqueConstraint("tenant_id", "webhook_id", "event_id"),
        Index("ix_webhook_deliveries_due", "due_at"),
        Index("ix_webhook_deliveries_next", "webhook_id", "due_at"),
        Index("ix_webhook_deliveries_running", "webhook_id", postgresql_where=_RUNS, sqlite_where=_RUNS),
        Index("ix_webhook_deliveries_listed", "tenant_id", "webhook_id", "created_at", "id"),
        Index("ix_webhook_deliveries_finished", "finished_at"),
    )

    webhook_id: Mapped[str] = mapped_column(String(100))
    event_id: Mapped[str] = mapped_column(String(100))
    event_type: Mapped[str] = mapped_column(String(100))
    failures: Mapped[int] = mapped_column(Integer, default=0)
    """Attempts that failed since the delivery was added or replayed."""
    created_at: Mapped[datetime] = mapped_column(UtcDateTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcDateTime)


class AttemptRow(Base):
    """Attempt of a delivery, numbered by the token of the lease that it was made under."""

    __tablename__ = "webhook_attempts"

    tenant_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    delivery_id: Mapped[str] = mapped_column(String(100), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    started_at: Mapped[datetime] = mapped_column(UtcDateTime)
    milliseconds: Mapped[int] = mapped_column(BigInteger)
    status_code: Mapped[int | None] = mapped_column(Integer)
    error_code: Mapped[str | None] = mapped_column(String(100))
    answer_excerpt: Mapped[str | None] = mapped_column(Text)
