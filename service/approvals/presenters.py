"""Representations of approvals, and their events."""

import json
from collections.abc import Sequence
from datetime import UTC
from typing import Any, Final

from service.approvals.repository import LoadedApproval
from service.approvals.tables import ApprovalDecisionRow, ApprovalRow, ApprovalStepRow
from service.audit.service import to_audit_columns
from service.budgets import commitments
from service.kit.database.engine import Base, Writer
from service.kit.jobs.events import emit_event
from service.schemas.events import ApprovalEvent, WebhookEventType

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


def _select_members(row: object, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(row, name)) is not None}


def to_summary(row: ApprovalRow) -> dict[str, Any]:
    """Returns the representation of an approval in lists."""
    return {**_select_members(row, *_SUMMARY), "headlines": json.loads(row.headlines)}


def to_detail(held: LoadedApproval) -> dict[str, Any]:
    """Returns the representation of an approval."""
    commitment = commitments.to_response(held.row)
    return {
        **to_summary(held.row),
        **({"commitment": commitment} if commitment else {}),
        "steps": [_step_to_response(held, step) for step in held.steps],
        "comments": [_select_members(comment, *_COMMENT) for comment in held.comments],
        "budgets": held.row.budgets,
        "warnings": held.row.warnings,
        "judged": held.row.judged,
    }


def to_audit_document(held: LoadedApproval) -> dict[str, Any]:
    """Returns all stored columns of an approval, including hidden ones, for the digest of the audit."""
    parts: dict[str, Sequence[Base]] = {
        "steps": held.steps,
        "approvers": held.approvers,
        "decisions": held.decisions,
        "comments": held.comments,
    }
    return {
        "approval": to_audit_columns(held.row),
        **{name: [to_audit_columns(row) for row in rows] for name, rows in parts.items()},
    }


def _step_to_response(held: LoadedApproval, step: ApprovalStepRow) -> dict[str, Any]:
    return {
        **_select_members(step, *_STEP, *_STEP_TIMES),
        "approvers": held.list_approvers(step),
        "decisions": [_decision_to_response(decision) for decision in held.list_decisions(step)],
    }


def _decision_to_response(decision: ApprovalDecisionRow) -> dict[str, Any]:
    return _select_members(decision, *_DECISION)


def write_event(
    session: Writer, held: LoadedApproval, event: WebhookEventType, *, decided_by: str = ""
) -> None:
    """Writes an event of an approval, with its open step if there is one."""
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
        data["step"], data["approvers"] = step.name, held.list_approvers(step)
        if step.due_at is not None:
            data["due_at"] = step.due_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if decided_by:
        data["decided_by"] = decided_by
    emit_event(session, row.tenant_id, event, data)
