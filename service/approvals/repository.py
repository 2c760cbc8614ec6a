"""Queries of approvals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session

from service.approvals.tables import (
    APPROVED,
    OPEN,
    PENDING,
    ApprovalApproverRow,
    ApprovalCommentRow,
    ApprovalDecisionRow,
    ApprovalRow,
    ApprovalStepRow,
)
from service.kit.database.engine import Reader, Writer
from service.kit.jobs import leases

_ApprovalPart = TypeVar(
    "_ApprovalPart", ApprovalStepRow, ApprovalApproverRow, ApprovalDecisionRow, ApprovalCommentRow
)


@dataclass(slots=True)
class LoadedApproval:
    """An approval with all of its parts in order."""

    row: ApprovalRow
    steps: list[ApprovalStepRow]
    approvers: list[ApprovalApproverRow]
    decisions: list[ApprovalDecisionRow]
    comments: list[ApprovalCommentRow]

    @property
    def open_step(self) -> ApprovalStepRow | None:
        """The step that is open for decisions, or None."""
        return next((step for step in self.steps if step.state == OPEN), None)

    def list_approvers(self, step: ApprovalStepRow) -> list[str]:
        """Returns the approvers of a step."""
        return [one.approver for one in self.approvers if one.step_number == step.number]

    def list_decisions(self, step: ApprovalStepRow) -> list[ApprovalDecisionRow]:
        """Returns the decisions of a step."""
        return [one for one in self.decisions if one.step_number == step.number]


def get_approval(session: Session, tenant_id: str, approval_id: str) -> LoadedApproval | None:
    """Returns an approval of a tenant, or None."""
    row = session.scalars(_select_approval(tenant_id, approval_id)).one_or_none()
    return None if row is None else _load_parts(session, row)


def lock_approval(session: Writer, tenant_id: str, approval_id: str) -> LoadedApproval | None:
    """Returns an approval, locked until the transaction ends, or None.

    The lock precedes that of its quote.
    """
    row = session.scalars(_select_approval(tenant_id, approval_id).with_for_update()).one_or_none()
    return None if row is None else _load_parts(session, row)


def _select_approval(tenant_id: str, approval_id: str) -> Select[ApprovalRow]:
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.id == approval_id)
    return select(ApprovalRow).where(*own).execution_options(populate_existing=True)


def _load_parts(session: Session, row: ApprovalRow) -> LoadedApproval:
    def load_rows(table: type[_ApprovalPart], *order: str) -> list[_ApprovalPart]:
        own = select(table).where(table.tenant_id == row.tenant_id, table.approval_id == row.id)
        ordered = own.order_by(*(getattr(table, name) for name in order))
        return list(session.scalars(ordered.execution_options(populate_existing=True)))

    return LoadedApproval(
        row,
        load_rows(ApprovalStepRow, "number"),
        load_rows(ApprovalApproverRow, "step_number", "position"),
        load_rows(ApprovalDecisionRow, "number"),
        load_rows(ApprovalCommentRow, "number"),
    )


def find_by_content(session: Session, tenant_id: str, quote_id: str, content_digest: str) -> str | None:
    """Returns the id of the approval for the version of a quote with this content, or None."""
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.quote_id == quote_id)
    newest = select(ApprovalRow.id).where(*own, ApprovalRow.content_digest == content_digest)
    return session.scalars(newest.order_by(ApprovalRow.quote_version.desc()).limit(1)).one_or_none()


def list_by_quote(session: Session, tenant_id: str, quote_id: str) -> Sequence[ApprovalRow]:
    """Returns the approvals of every version of a quote."""
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.quote_id == quote_id)
    return session.scalars(select(ApprovalRow).where(*own)).all()


def lock_approved(session: Writer, tenant_id: str, quote_id: str) -> list[LoadedApproval]:
    """Returns the approved approvals of a quote, locked until the transaction ends."""
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.quote_id == quote_id)
    found = select(ApprovalRow).where(*own, ApprovalRow.state == APPROVED).order_by(ApprovalRow.id)
    fresh = found.with_for_update().execution_options(populate_existing=True)
    return [_load_parts(session, row) for row in session.scalars(fresh).all()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalFilters:
    """Filters of approvals. An empty filter matches all."""

    states: Sequence[str] = ()
    requester: str = ""
    quote_ids: Sequence[str] = ()
    waiting_for: frozenset[str] | None = None
    """Approvers of an open step that has no decision on their behalf."""


def list_page(
    session: Reader, tenant_id: str, filters: ApprovalFilters, after: tuple[datetime, str] | None, limit: int
) -> Sequence[ApprovalRow]:
    """Returns approvals of a tenant after the submission time and id ``after``, the newest first."""
    statement = select(ApprovalRow).where(ApprovalRow.tenant_id == tenant_id)
    if filters.states:
        statement = statement.where(ApprovalRow.state.in_(filters.states))
    if filters.requester:
        statement = statement.where(ApprovalRow.requester == filters.requester)
    if filters.quote_ids:
        statement = statement.where(ApprovalRow.quote_id.in_(filters.quote_ids))
    if filters.waiting_for is not None:
        statement = statement.where(_build_waiting_condition(filters.waiting_for))
    if after is not None:
        submitted_at, approval_id = after
        tied = and_(ApprovalRow.submitted_at == submitted_at, ApprovalRow.id < approval_id)
        statement = statement.where(or_(ApprovalRow.submitted_at < submitted_at, tied))
    ordered = statement.order_by(ApprovalRow.submitted_at.desc(), ApprovalRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def _build_waiting_condition(names: frozenset[str]) -> ColumnElement[bool]:
    step, one, decision = ApprovalStepRow, ApprovalApproverRow, ApprovalDecisionRow
    decided = exists().where(
        decision.tenant_id == one.tenant_id,
        decision.approval_id == one.approval_id,
        decision.step_number == one.step_number,
        decision.approver == one.approver,
    )
    return exists().where(
        ApprovalRow.state == PENDING,
        step.tenant_id == ApprovalRow.tenant_id,
        step.approval_id == ApprovalRow.id,
        step.state == OPEN,
        one.tenant_id == step.tenant_id,
        one.approval_id == step.approval_id,
        one.step_number == step.number,
        one.approver.in_(sorted(names)),
        ~decided,
    )


class DueApproval(NamedTuple):
    """An approval with a passed deadline, and the time of the deadline."""

    acts_at: datetime
    tenant_id: str
    approval_id: str


def list_due(session: Session, after: DueApproval | None, limit: int) -> list[DueApproval]:
    """Returns approvals with a passed deadline after ``after``, the most overdue first."""
    place = (ApprovalRow.acts_at, ApprovalRow.tenant_id, ApprovalRow.id)
    found = select(*place).where(ApprovalRow.acts_at <= leases.get_database_time())
    if after is not None:
        found = found.where(tuple_(*place) > tuple_(*after))
    rows = session.execute(found.order_by(*place).limit(limit))
    return [DueApproval(at, tenant_id, approval_id) for at, tenant_id, approval_id in rows if at is not None]


def list_ids(session: Reader, tenant_id: str) -> Iterator[str]:
    """Yields the ids of all approvals of a tenant."""
    yield from session.scalars(select(ApprovalRow.id).where(ApprovalRow.tenant_id == tenant_id))


def get_version_states(session: Reader, tenant_id: str) -> dict[tuple[str, int], tuple[str, str]]:
    """Returns state and content digest of every submitted version of a quote."""
    members = (ApprovalRow.quote_id, ApprovalRow.quote_version, ApprovalRow.state, ApprovalRow.content_digest)
    rows = session.execute(select(*members).where(ApprovalRow.tenant_id == tenant_id))
    return {(quote_id, version): (state, digest) for quote_id, version, state, digest in rows}


class ApprovalCount(NamedTuple):
    """Number of approvals in a state, with the longest waiting time and the longest overdue time."""

    state: str
    approvals: int
    waiting_seconds: float
    overdue_seconds: float


def count_by_state(session: Reader) -> list[ApprovalCount]:
    """Returns the counts of approvals by state, over all tenants."""
    submitted, acts = func.min(ApprovalRow.submitted_at), func.min(ApprovalRow.acts_at)
    statement = select(ApprovalRow.state, func.count(), submitted, acts, leases.get_database_time())
    return [
        ApprovalCount(state, number, (now - first).total_seconds(), _compute_overdue_seconds(acts_at, now))
        for state, number, first, acts_at, now in session.execute(statement.group_by(ApprovalRow.state))
    ]


def _compute_overdue_seconds(due_at: datetime | None, now: datetime) -> float:
    return max(0.0, (now - due_at).total_seconds()) if due_at else 0.0
