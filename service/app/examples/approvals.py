"""Examples of approvals, policies and delegations."""

from typing import Any, Final

from service.app.examples import quotes
from service.app.examples.catalog import WRITTEN_AT

_ID: Final = "b9d03c5f8e7a4126a1c4e9f07d52b836"
_DELEGATION_ID: Final = "4a7f90c2d1e34b5a8f6e0d9c7b3a2511"
_QUOTED: Final = quotes.build_answers()["create_quote"]
_DIGEST: Final[str] = _QUOTED["content_digest"]
_ALICE: Final = "token:alice@example.com"
_BOB: Final = "token:bob@example.com"
_STEP: Final[dict[str, Any]] = {
    "name": "Head of research",
    "approvers": [_ALICE, "person:carol@example.com"],
    "quorum": 1,
    "order": 10,
    "expires_after_seconds": 604_800,
    "escalation": {"after_seconds": 172_800, "to": ["token:dave@example.com"]},
}
_POLICY: Final[dict[str, Any]] = {
    "id": "large-runs",
    "name": "Large runs",
    "conditions": {"total_above": {"amount": "500", "currency_code": "USD"}},
    "steps": [_STEP],
}
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "submit_quote": {"content_digest": _DIGEST},
    "amend_quote": {"content_digest": _DIGEST, "quote": quotes.EXAMPLES["create_quote"]},
    "cancel_quote": {"content_digest": _DIGEST},
    "approve_approval": {"content_digest": _DIGEST, "comment": "As planned."},
    "reject_approval": {"content_digest": _DIGEST, "comment": "Not before the next quarter."},
    "comment_approval": {"text": "Can it wait for the new cluster?"},
    "link_approval": {"approver": _STEP["approvers"][1]},
    "create_approval_policy": _POLICY,
    "update_approval_policy": {"name": "Runs above 500 USD"},
    "update_approval_settings": {"change_delay_seconds": 172_800},
    "create_approval_delegation": {
        "delegate": _BOB,
        "starts_at": "2026-12-20T00:00:00Z",
        "ends_at": "2099-12-31T00:00:00Z",
        "note": "Knows the clusters better.",
    },
}
_CHANGE_ID: Final = "6d0c8b3f5a7e41c29b1d4f6a8e0c2735"
IDS: Final = {
    "approvals": _ID,
    "approval-links": "m4x8q2t6v0z3b7k1",
    "approval-policies": _POLICY["id"],
    "approval-delegations": _DELEGATION_ID,
    "policy-changes": _CHANGE_ID,
}

_DUE_AT: Final = "2026-11-28T12:00:00Z"
_SUMMARY: Final[dict[str, Any]] = {
    "id": _ID,
    "state": "pending",
    "quote_id": _QUOTED["id"],
    "quote_version": 1,
    "content_digest": _DIGEST,
    "name": _QUOTED["name"],
    "headlines": _QUOTED["headlines"],
    "cost_center_id": _QUOTED["cost_center_id"],
    "requester": _BOB,
    "submitted_at": WRITTEN_AT,
    "expires_at": _DUE_AT,
    "version": 1,
}
_WAITING: Final[dict[str, Any]] = {
    "name": _STEP["name"],
    "policy_id": _POLICY["id"],
    "policy_version": 1,
    "approvers": _STEP["approvers"],
    "quorum": 1,
    "state": "open",
    "opened_at": WRITTEN_AT,
    "due_at": _DUE_AT,
    "escalates_at": "2026-11-23T12:00:00Z",
    "decisions": [],
}
_PENDING: Final[dict[str, Any]] = {
    **_SUMMARY,
    "steps": [_WAITING],
    "comments": [],
    "budgets": [],
    "warnings": [],
    "judged": {
        "on": WRITTEN_AT[:10],
        "policies": [{"policy_id": _POLICY["id"], "version": 1, "matches": True}],
        "exchange_rates": [],
    },
}
_TOTAL: Final = _QUOTED["headlines"]["total"]
_COMMITTED: Final[dict[str, Any]] = {
    "amount": {name: _TOTAL[name] for name in ("amount", "currency_code")},
    "committed_at": WRITTEN_AT,
    "due_from": WRITTEN_AT,
    "due_until": "2026-12-12T03:50:00Z",
}
_CLOSED: Final[dict[str, Any]] = {
    **_COMMITTED,
    "released_at": WRITTEN_AT,
    "outstanding": {"amount": "0.00", "currency_code": _TOTAL["currency_code"]},
}
_COMMENT: Final = {
    "written_by": _ALICE,
    "text": EXAMPLES["comment_approval"]["text"],
    "written_at": WRITTEN_AT,
}
_LINKED: Final[dict[str, Any]] = {
    "link": {
        "id": "m4x8q2t6v0z3b7k1",
        "approval_id": _ID,
        **EXAMPLES["link_approval"],
        "created_by": "api_key:k3v9x2m4c7b1n5q8",
        "created_at": WRITTEN_AT,
        "expires_at": _DUE_AT,
    },
    "url": f"https://plan.example.com/decide/ironlawlink_m4x8q2t6v0z3b7k1_{'0' * 49}",
}
_DELEGATION: Final[dict[str, Any]] = {
    **EXAMPLES["create_approval_delegation"],
    "id": _DELEGATION_ID,
    "approver": _ALICE,
    "created_at": WRITTEN_AT,
}
_TIMES: Final = {"created_at": WRITTEN_AT, "updated_at": WRITTEN_AT}
_STORED: Final[dict[str, Any]] = {
    **_POLICY,
    "automatic": False,
    "version": 1,
    **_TIMES,
    "written_by": ["token:erin@example.com"],
}


def build_change(resource: str, **members: Any) -> dict[str, Any]:  # noqa: ANN401
    """Returns a change that is waiting."""
    return {
        "id": _CHANGE_ID,
        "resource": resource,
        "action": "update" if members else "delete",
        **members,
        "based_on_version": 1,
        "proposed_by": "token:erin@example.com",
        "proposed_at": WRITTEN_AT,
        "effective_at": _DUE_AT,
        "state": "waiting",
        "approvals": [],
        "version": 1,
    }


_POLICY_PATH: Final = f"approval-policies/{_POLICY['id']}"
_OF_POLICY: Final = build_change(_POLICY_PATH, policy={**_POLICY, "automatic": True, "steps": []})
_SETTINGS: Final[dict[str, Any]] = {**EXAMPLES["update_approval_settings"], "version": 1}
_AGREED: Final = {"decided_by": _ALICE, "decided_at": WRITTEN_AT}


def _build_ended(document: dict[str, Any], state: str) -> dict[str, Any]:
    kept = {name: value for name, value in document.items() if name != "expires_at"}
    return {**kept, "state": state, "ended_at": WRITTEN_AT, "version": 2}


def _build_decided(decision: str, state: str) -> dict[str, Any]:
    sent = EXAMPLES[f"{decision}_approval"]
    made = {
        "approver": _ALICE,
        "decided_by": _ALICE,
        "decision": decision,
        "via": "api",
        **sent,
        "decided_at": WRITTEN_AT,
    }
    step = {**_WAITING, "state": state, "decisions": [made]}
    return _build_ended({**_PENDING, "steps": [step]}, state)


def _build_changed(state: str, by: str) -> dict[str, Any]:
    return {**_OF_POLICY, "state": state, "ended_at": WRITTEN_AT, "ended_by": by, "version": 2}


def _build_history() -> dict[str, Any]:
    event = {
        "sequence": 7,
        "occurred_at": WRITTEN_AT,
        "operation": "submit_quote",
        "subject": _BOB,
        "request_id": "5f2c9d1e7a304b68",
        "after_digest": "9c0f5e3b" * 8,
        "hash": "3d1a7e44" * 8,
    }
    return {"items": [event], "is_as_recorded": True}


def build_answers() -> dict[str, Any]:
    """Returns the answers of a pending approval, and of the operations that change it."""
    approved = _build_decided("approve", "approved") | {"commitment": _COMMITTED}
    return {
        "submit_quote": _PENDING,
        "amend_quote": {**_PENDING, "quote_version": 2, "supersedes": _DELEGATION_ID},
        "cancel_quote": _build_ended({**_PENDING, "steps": [{**_WAITING, "state": "ended"}]}, "cancelled"),
        "list_approvals": {"items": [_SUMMARY], "next_page_token": None},
        "get_approval": _PENDING,
        "get_approval_history": _build_history(),
        "approve_approval": approved,
        "reject_approval": _build_decided("reject", "rejected"),
        "close_approval": {**approved, "commitment": _CLOSED, "version": 3},
        "comment_approval": {**_PENDING, "comments": [_COMMENT], "version": 2},
        "link_approval": _LINKED,
        "list_approval_links": {"items": [{**_LINKED["link"], "state": "open"}]},
        "list_approval_policies": {"items": [_STORED], "next_page_token": None},
        "create_approval_policy": _STORED,
        "create_approval_policy 202": {
            **build_change(_POLICY_PATH, policy=_POLICY),
            "action": "create",
            "based_on_version": 0,
        },
        "get_approval_policy": _STORED,
        "update_approval_policy": {**_STORED, **EXAMPLES["update_approval_policy"], "version": 2},
        "update_approval_policy 202": _OF_POLICY,
        "delete_approval_policy 202": build_change(_POLICY_PATH),
        "list_policy_changes": {"items": [_OF_POLICY], "next_page_token": None},
        "get_policy_change": _OF_POLICY,
        "approve_policy_change": _build_changed("effective", _ALICE) | {"approvals": [_AGREED]},
        "reject_policy_change": _build_changed("rejected", _BOB),
        "get_approval_settings": _SETTINGS,
        "update_approval_settings": _SETTINGS,
        "update_approval_settings 202": build_change(
            "approval-settings/own", settings={"change_delay_seconds": 3600}
        ),
        "list_approval_delegations": {"items": [_DELEGATION], "next_page_token": None},
        "create_approval_delegation": _DELEGATION,
    }
