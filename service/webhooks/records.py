"""Webhooks as the audit records them."""

from typing import Final

from service.audit.records import RecordedTable
from service.webhooks.tables import WebhookRow

_HEALTH: Final = "says how the receiver has answered, at every attempt; what follows from it is recorded"

WEBHOOKS: Final = RecordedTable(
    table=WebhookRow,
    resource=lambda row: f"webhooks/{row.id}",
    moving=dict.fromkeys(("failing_since", "succeeded_at", "paused_until"), _HEALTH),
)
