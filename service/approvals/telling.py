"""Events of approvals, and how approvals look to callers."""

import json
from collections.abc import Sequence
from datetime import UTC
from typing import Any, Final

from service.approvals.budgets.money import money
from service.approvals.repository import Held
from service.approvals.tables import ApprovalDecisionRow, ApprovalRow, ApprovalStepRow
from service.audit.service import columns_of
from service.kit.database.engine import Base, Writer
from service.kit.jobs.events import emit
from service.schemas.events import ApprovalEvent, EventType

_SUMMARY: Final = (
    "id",
    "state",
    "quote_id",
    "quote_version",
    "content_digest",
    "name",
    "cost_center_id",
    "requester",
    "submitted_at",
    "expires_at",
    "ended_at",
    "version",
    "supersedes",
)
_STEP: Final = ("name", "policy_id", "policy_version", "quorum", "state")
_STEP_TIMES: Final = ("opened_at", "due_at", "escalates_at", "escalated_at")
_DECISION: Final = (
    *("approver", "decided_by", "delegation_id", "linked_by", "decision", "via", "comment"),
    *("content_digest", "decided_at"),
)
_COMMENT: Final = ("written_by", "text", "written_at")


def _members(row: object, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def shown_summary(row: ApprovalRow) -> dict[str, Any]:
    """An approval as lists show it."""
    return {**_members(row, *_SUMMARY), "headlines": json.loads(row.headlines)}


def shown(held: Held) -> dict[str, Any]:
    """An approval as callers see it."""
    return {
        **shown_summary(held.row),
        **_commitment(held.row),
        "steps": [_shown_step(held, step) for step in held.steps],
        "comments": [_members(comment, *_COMMENT) for comment in held.comments],
        "budgets": held.row.budgets,
        "warnings": held.row.warnings,
        "judged": held.row.judged,
    }


def _commitment(row: ApprovalRow) -> dict[str, Any]:
    if row.committed_micros is None or row.committed_currency_code is None:
        return {}
    amount = money(row.committed_micros, row.committed_currency_code)
    times = _members(row, "committed_at", "due_from", "due_until", "released_at")
    return {"commitment": {"amount": amount, **times}}


def recorded(held: Held) -> dict[str, Any]:
    """All that is stored of an approval, what nobody is shown included: what the audit holds a digest of."""
    parts: dict[str, Sequence[Base]] = {
        "steps": held.steps,
        "approvers": held.approvers,
        "decisions": held.decisions,
        "comments": held.comments,
    }
    return {
        "approval": columns_of(held.row),
        **{name: [columns_of(row) for row in rows] for name, rows in parts.items()},
    }


def _shown_step(held: Held, step: ApprovalStepRow) -> dict[str, Any]:
    return {
        **_members(step, *_STEP, *_STEP_TIMES),
        "approvers": held.approvers_of(step),
        "decisions": [_shown_decision(decision) for decision in held.decisions_of(step)],
    }


def _shown_decision(decision: ApprovalDecisionRow) -> dict[str, Any]:
    return _members(decision, *_DECISION)


def tell(session: Writer, held: Held, event: EventType, *, decided_by: str = "") -> None:
    """Write an event of an approval; of its open step, where it has one."""
    row, step = held.row, held.open_step
    data: ApprovalEvent = {
        "approval_id": row.id,
        "quote_id": row.quote_id,
        "quote_version": row.quote_version,
        "name": row.name,
        "requester": row.requester,
    }
    total = json.loads(row.headlines).get("total")
    if total is not None:
        data["total"] = {"amount": total["amount"], "currency_code": total["currency_code"]}
    if row.cost_center_id is not None:
        data["cost_center_id"] = row.cost_center_id
    if step is not None:
        data["step"], data["approvers"] = step.name, held.approvers_of(step)
        if step.due_at is not None:
            data["due_at"] = step.due_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if decided_by:
        data["decided_by"] = decided_by
    emit(session, row.tenant_id, event, data)
