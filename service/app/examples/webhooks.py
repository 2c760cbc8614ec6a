"""Examples of webhooks, deliveries and messages."""

from typing import Any, Final

from service.app.examples.catalog import WRITTEN_AT
from service.schemas.events import WebhookEventType

_ID: Final = "c7d0a9e4b2f14d6c8a5e3b1f9d7c6042"
_DELIVERY_ID: Final = "5b8e1f3a7c9d42e6b0a4d8c2f6e91357"
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "create_webhook": {
        "url": "https://hooks.example.com/ironlaw",
        "event_types": ["approval.approved", "approval.requested", "budget.threshold_reached"],
        "description": "Orders of the capacity team",
    },
    "update_webhook": {"event_types": None, "enabled": True},
    "rotate_webhook": {"overlap_seconds": 86400},
    "replay_webhook": {"delivery_ids": [_DELIVERY_ID]},
    "recover_webhook": {"since": WRITTEN_AT},
}
_WEBHOOK: Final[dict[str, Any]] = {
    **EXAMPLES["create_webhook"],
    "id": _ID,
    "signature_scheme": "v1",
    "state": "enabled",
    "version": 1,
    "created_at": WRITTEN_AT,
    "created_by": "local:local",
    "on_behalf_of": "local:local",
}
_SECRET: Final = "whsec_" + "A" * 43 + "="  # no secret: it is all zeros
_WAITING: Final[dict[str, Any]] = {
    "id": _DELIVERY_ID,
    "webhook_id": _ID,
    "event_id": "9f2c4e6a8b0d41f3a5c7e9b1d3f50728",
    "event_type": "webhook.test",
    "state": "waiting",
    "attempts": [],
    "next_attempt_at": WRITTEN_AT,
    "created_at": WRITTEN_AT,
}
_DELIVERED: Final[dict[str, Any]] = {
    **{name: value for name, value in _WAITING.items() if name != "next_attempt_at"},
    "state": "delivered",
    "attempts": [
        {
            "started_at": WRITTEN_AT,
            "milliseconds": 84,
            "status_code": 503,
            "error_code": "REFUSED_BY_RECEIVER",
            "answer_excerpt": "in maintenance",
        },
        {"started_at": WRITTEN_AT, "milliseconds": 51, "status_code": 204},
    ],
    "finished_at": WRITTEN_AT,
}
ANSWERED: Final[dict[str, Any]] = {
    "list_webhooks": {"items": [_WEBHOOK], "next_page_token": None},
    "create_webhook": {"webhook": _WEBHOOK, "secret": _SECRET},
    "get_webhook": _WEBHOOK,
    "update_webhook": {
        **{name: value for name, value in _WEBHOOK.items() if name != "event_types"},
        "version": 2,
    },
    "rotate_webhook": {
        "webhook": {**_WEBHOOK, "version": 2, "rotation_ends_at": WRITTEN_AT},
        "secret": _SECRET,
    },
    "test_webhook": _WAITING,
    "replay_webhook": {"items": [_WAITING]},
    "recover_webhook": {"delivery_count": 1},
    "list_webhook_deliveries": {"items": [_DELIVERED], "next_page_token": None},
}
MESSAGES: Final = {
    str(type_): {"type": str(type_), "timestamp": WRITTEN_AT, "data": type_.sample}
    for type_ in WebhookEventType
}
"""A message of each type."""
IDS: Final = {"webhooks": _ID}
