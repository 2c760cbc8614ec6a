"""Alerts of Ironlaw in PagerDuty, by its Events API v2: exceeded budgets, regressions, late approvals.

PAGERDUTY_ROUTING_KEY_FILE   file with the integration key of a service
PAGERDUTY_URL                where events are sent; that of PagerDuty by default
"""

import os
from pathlib import Path
from typing import Any

from receiving import Handle, post, serve, text_of

URL = "https://events.pagerduty.com/v2/enqueue"
TRIGGERS = {
    "approval.due_soon": "warning",
    "approval.escalated": "warning",
    "approval.expired": "error",
    "budget.exceeded": "error",
    "budget.threshold_reached": "warning",
    "benchmark.regressed": "warning",
    "webhook.disabled": "error",
}
"""What somebody is woken for, and how loudly."""
RESOLVES = ("approval.approved", "approval.rejected", "approval.cancelled", "approval.superseded")
_SUMMARY_CHARACTERS = 1024


def document(key: str, message: dict[str, Any]) -> dict[str, Any] | None:
    """What PagerDuty is sent; None where it is no concern of it.

    Messages on one approval, budget or benchmark are one incident, however often they come.
    """
    type_, data = message["type"], message["data"]
    about = {"routing_key": key, "dedup_key": f"ironlaw {_subject(type_, data)}"}
    if type_ in RESOLVES:
        return {**about, "event_action": "resolve"}
    if type_ not in TRIGGERS:
        return None
    payload = {
        "summary": text_of(message)[:_SUMMARY_CHARACTERS],
        "source": "ironlaw",
        "severity": TRIGGERS[type_],
        "timestamp": message["timestamp"],
        "class": type_,
        "custom_details": data,
    }
    links = [{"href": data["page_url"], "text": "Read and decide"}] if "page_url" in data else []
    return {**about, "event_action": "trigger", "payload": payload, "links": links}


def _subject(type_: str, data: dict[str, Any]) -> str:
    match type_.partition(".")[0]:
        case "approval":
            return f"approval {data['approval_id']}"
        case "budget":
            return f"budget {data['budget_id']}"
        case "benchmark":
            return f"benchmark {data['node_id']} {data['benchmark']} {data['metric']}"
        case "webhook":
            return f"webhook {data['webhook_id']}"
        case other:
            return " ".join([other, *(str(value) for name, value in data.items() if name.endswith("_id"))])


def handler(key: str, url: str) -> Handle:
    """Hands to PagerDuty at ``url`` what concerns it."""

    def handle(_: str, message: dict[str, Any]) -> None:
        if (sent := document(key, message)) is not None:
            post(url, sent)

    return handle


if __name__ == "__main__":
    key_file = Path(os.environ["PAGERDUTY_ROUTING_KEY_FILE"])
    serve(handler(key_file.read_text().strip(), os.environ.get("PAGERDUTY_URL", URL)))
