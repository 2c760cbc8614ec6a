"""Every query of approvals."""

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

Part = TypeVar("Part", ApprovalStepRow, ApprovalApproverRow, ApprovalDecisionRow, ApprovalCommentRow)


@dataclass(slots=True)
class Held:
    """An approval with all of its parts, each in its order."""

    row: ApprovalRow
    steps: list[ApprovalStepRow]
    approvers: list[ApprovalApproverRow]
    decisions: list[ApprovalDecisionRow]
    comments: list[ApprovalCommentRow]

    @property
    def open_step(self) -> ApprovalStepRow | None:
        """The step that waits for decisions."""
        return next((step for step in self.steps if step.state == OPEN), None)

    def approvers_of(self, step: ApprovalStepRow) -> list[str]:
        """Who may decide a step."""
        return [one.approver for one in self.approvers if one.step_number == step.number]

    def decisions_of(self, step: ApprovalStepRow) -> list[ApprovalDecisionRow]:
        """What was decided in a step."""
        return [one for one in self.decisions if one.step_number == step.number]


def get(session: Session, tenant_id: str, approval_id: str) -> Held | None:
    """An approval of a tenant."""
    row = session.scalars(_one(tenant_id, approval_id)).one_or_none()
    return None if row is None else _whole(session, row)


def locked(session: Writer, tenant_id: str, approval_id: str) -> Held | None:
    """An approval of a tenant, locked until the transaction ends; before its quote."""
    row = session.scalars(_one(tenant_id, approval_id).with_for_update()).one_or_none()
    return None if row is None else _whole(session, row)


def _one(tenant_id: str, approval_id: str) -> Select[ApprovalRow]:
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.id == approval_id)
    return select(ApprovalRow).where(*own).execution_options(populate_existing=True)


def _whole(session: Session, row: ApprovalRow) -> Held:
    def parts(table: type[Part], *order: str) -> list[Part]:
        own = select(table).where(table.tenant_id == row.tenant_id, table.approval_id == row.id)
        ordered = own.order_by(*(getattr(table, name) for name in order))
        return list(session.scalars(ordered.execution_options(populate_existing=True)))

    return Held(
        row,
        parts(ApprovalStepRow, "number"),
        parts(ApprovalApproverRow, "step_number", "position"),
        parts(ApprovalDecisionRow, "number"),
        parts(ApprovalCommentRow, "number"),
    )


def of_content(session: Session, tenant_id: str, quote_id: str, content_digest: str) -> str | None:
    """Id of the approval of the version of a quote that has this content."""
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.quote_id == quote_id)
    newest = select(ApprovalRow.id).where(*own, ApprovalRow.content_digest == content_digest)
    return session.scalars(newest.order_by(ApprovalRow.quote_version.desc()).limit(1)).one_or_none()


def of_quote(session: Session, tenant_id: str, quote_id: str) -> Sequence[ApprovalRow]:
    """The approvals of every version of a quote."""
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.quote_id == quote_id)
    return session.scalars(select(ApprovalRow).where(*own)).all()


def locked_approved(session: Writer, tenant_id: str, quote_id: str) -> list[Held]:
    """The approvals of a quote that are approved, locked until the transaction ends."""
    own = (ApprovalRow.tenant_id == tenant_id, ApprovalRow.quote_id == quote_id)
    found = select(ApprovalRow).where(*own, ApprovalRow.state == APPROVED).order_by(ApprovalRow.id)
    fresh = found.with_for_update().execution_options(populate_existing=True)
    return [_whole(session, row) for row in session.scalars(fresh).all()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which approvals to list; one that is empty lets all through."""

    states: Sequence[str] = ()
    requester: str = ""
    quote_ids: Sequence[str] = ()
    waiting_for: frozenset[str] | None = None
    """Approvers of an open step that has no decision in their place."""


def page(
    session: Reader, tenant_id: str, filters: Filters, after: tuple[datetime, str] | None, limit: int
) -> Sequence[ApprovalRow]:
    """Approvals of a tenant, the newest first, behind the submission time and id ``after``."""
    statement = select(ApprovalRow).where(ApprovalRow.tenant_id == tenant_id)
    if filters.states:
        statement = statement.where(ApprovalRow.state.in_(filters.states))
    if filters.requester:
        statement = statement.where(ApprovalRow.requester == filters.requester)
    if filters.quote_ids:
        statement = statement.where(ApprovalRow.quote_id.in_(filters.quote_ids))
    if filters.waiting_for is not None:
        statement = statement.where(_waits_for(filters.waiting_for))
    if after is not None:
        submitted_at, approval_id = after
        tied = and_(ApprovalRow.submitted_at == submitted_at, ApprovalRow.id < approval_id)
        statement = statement.where(or_(ApprovalRow.submitted_at < submitted_at, tied))
    ordered = statement.order_by(ApprovalRow.submitted_at.desc(), ApprovalRow.id.desc())
    return session.scalars(ordered.limit(limit)).all()


def _waits_for(names: frozenset[str]) -> ColumnElement[bool]:
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


class Due(NamedTuple):
    """An approval about which something has to be done, and since when."""

    acts_at: datetime
    tenant_id: str
    approval_id: str


def due(session: Session, after: Due | None, limit: int) -> list[Due]:
    """Approvals about which something has to be done now, the most overdue first, behind ``after``."""
    place = (ApprovalRow.acts_at, ApprovalRow.tenant_id, ApprovalRow.id)
    found = select(*place).where(ApprovalRow.acts_at <= leases.now())
    if after is not None:
        found = found.where(tuple_(*place) > tuple_(*after))
    rows = session.execute(found.order_by(*place).limit(limit))
    return [Due(at, tenant_id, approval_id) for at, tenant_id, approval_id in rows if at is not None]


def ids(session: Reader, tenant_id: str) -> Iterator[str]:
    """Every approval of a tenant."""
    yield from session.scalars(select(ApprovalRow.id).where(ApprovalRow.tenant_id == tenant_id))


def states(session: Reader, tenant_id: str) -> dict[tuple[str, int], tuple[str, str]]:
    """State and content of every version of a quote that was submitted."""
    members = (ApprovalRow.quote_id, ApprovalRow.quote_version, ApprovalRow.state, ApprovalRow.content_digest)
    rows = session.execute(select(*members).where(ApprovalRow.tenant_id == tenant_id))
    return {(quote_id, version): (state, digest) for quote_id, version, state, digest in rows}


class Count(NamedTuple):
    """How many approvals are in a state, and how long the first waits for people and for the service."""

    state: str
    approvals: int
    waiting_seconds: float
    overdue_seconds: float


def counts(session: Reader) -> list[Count]:
    """How the approvals of every tenant stand."""
    submitted, acts = func.min(ApprovalRow.submitted_at), func.min(ApprovalRow.acts_at)
    statement = select(ApprovalRow.state, func.count(), submitted, acts, leases.now())
    return [
        Count(state, number, (now - first).total_seconds(), _since(acts_at, now))
        for state, number, first, acts_at, now in session.execute(statement.group_by(ApprovalRow.state))
    ]


def _since(due_at: datetime | None, now: datetime) -> float:
    return max(0.0, (now - due_at).total_seconds()) if due_at else 0.0
