"""Webhooks and deliveries, as examples."""

from typing import Any, Final

from service.app.examples import nodes
from service.app.examples.catalog import WRITTEN_AT

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
_APPROVAL: Final[dict[str, Any]] = {
    "approval_id": "8a6f1c2d4e9b47308d5a7f3c1b2e6049",
    "quote_id": "2f7b9d1e5c3a48608b4d6e0f9a1c7253",
    "quote_version": 1,
    "name": "Llama 70B, second run",
    "requester": "token:alice",
    "total": {"amount": "1415571.28", "currency_code": "USD"},
    "cost_center_id": "research",
}
_BUDGET: Final[dict[str, Any]] = {
    "budget_id": "research-2027",
    "cost_center_id": "research",
    "amount": {"amount": "5000000", "currency_code": "USD"},
    "committed": {"amount": "4100000", "currency_code": "USD"},
    "spent": {"amount": "1200000", "currency_code": "USD"},
}
_CHANGE: Final = {
    "change_id": "6d0c8b3f5a7e41c29b1d4f6a8e0c2735",
    "resource": "approval-policies/large-runs",
    "action": "update",
    "proposed_by": "token:alice",
    "effective_at": "2026-11-23T12:00:00Z",
}
_ASKED: Final = {"step": "finance", "approvers": ["person:bob"], "due_at": "2026-11-23T12:00:00Z"}
_DECIDED: Final = {"decided_by": "person:bob"}
_DATA: Final[dict[str, dict[str, Any]]] = {
    "approval.requested": _APPROVAL | _ASKED,
    "approval.escalated": _APPROVAL | _ASKED,
    "approval.due_soon": _APPROVAL | _ASKED,
    "approval.approved": _APPROVAL | _DECIDED,
    "approval.rejected": _APPROVAL | _DECIDED,
    "approval.expired": _APPROVAL,
    "approval.cancelled": _APPROVAL,
    "approval.superseded": _APPROVAL,
    "approval.closed": _APPROVAL | _DECIDED,
    "approval.commented": _APPROVAL,
    "budget.threshold_reached": {**_BUDGET, "threshold_share": 0.8},
    "budget.exceeded": _BUDGET,
    "policy_change.proposed": _CHANGE,
    "policy_change.effective": _CHANGE,
    "policy_change.rejected": {**_CHANGE, "ended_by": "token:bob"},
    "benchmark.regressed": {
        "node_id": nodes.IDS["nodes"],
        "benchmark": "gemm-bf16",
        "metric": "flops_per_second",
        "against": "earlier_runs",
        "relative_change": -0.12,
        "result_id": nodes.IDS["benchmark-results"],
    },
    "quote.expires_soon": {
        "quote_id": _APPROVAL["quote_id"],
        "quote_version": 1,
        "name": _APPROVAL["name"],
        "created_by": _APPROVAL["requester"],
        "valid_until": "2026-11-23T12:00:00Z",
        "cost_center_id": "research",
    },
    "audit.head": {"sequence": 4, "hash": "b" * 64},
    "webhook.disabled": {"webhook_id": _ID, "description": "Orders of the capacity team", "reason": "GONE"},
    "webhook.test": {"webhook_id": _ID},
}
MESSAGES: Final = {
    type_: {"type": type_, "timestamp": WRITTEN_AT, "data": data} for type_, data in _DATA.items()
}
"""A message of each kind."""
IDS: Final = {"webhooks": _ID}
