"""Events of which webhooks tell: their names, and what each says."""

from enum import StrEnum
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.base import Integer, MoneyAmount


class WebhookEventType(StrEnum):
    """What happened."""

    APPROVAL_REQUESTED = "approval.requested"
    """A step of an approval opened: somebody is asked."""
    APPROVAL_ESCALATED = "approval.escalated"
    """A step waited so long that others may decide it too."""
    APPROVAL_DUE_SOON = "approval.due_soon"
    """Most of the time of a step has passed without its decisions."""
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_CANCELLED = "approval.cancelled"
    APPROVAL_SUPERSEDED = "approval.superseded"
    """The quote was amended: its approval begins anew as another one."""
    APPROVAL_CLOSED = "approval.closed"
    """What was approved is over: what nobody has billed is free again."""
    APPROVAL_COMMENTED = "approval.commented"
    BUDGET_THRESHOLD_REACHED = "budget.threshold_reached"
    """So much of a budget is committed or spent as it wants to be told of."""
    BUDGET_EXCEEDED = "budget.exceeded"
    POLICY_CHANGE_PROPOSED = "policy_change.proposed"
    """A policy, a budget or the delay is to change: it can be approved or rejected until it takes effect."""
    POLICY_CHANGE_EFFECTIVE = "policy_change.effective"
    POLICY_CHANGE_REJECTED = "policy_change.rejected"
    BENCHMARK_REGRESSED = "benchmark.regressed"
    """A node measures worse than before, or than others like it."""
    QUOTE_EXPIRES_SOON = "quote.expires_soon"
    """Its prices hold for a day more at most, and nobody has decided."""
    AUDIT_HEAD = "audit.head"
    """Where the chain of events ends now; kept elsewhere, it shows later whether the end was cut off."""
    WEBHOOK_DISABLED = "webhook.disabled"
    """A webhook is told nothing more, because of its receiver. The others are told of that."""
    WEBHOOK_TEST = "webhook.test"
    """Somebody wanted to see a delivery."""


class ApprovalEvent(TypedDict):
    """Of events of approvals; all else is behind the id."""

    approval_id: str
    """Which approval."""
    quote_id: str
    """Of which quote."""
    quote_version: Integer
    """In which version."""
    name: str
    """What the quote is called."""
    requester: str
    """Who asks."""
    total: NotRequired[MoneyAmount]
    """What has to be paid."""
    cost_center_id: NotRequired[str]
    """Who pays."""
    step: NotRequired[str]
    """Name of the step."""
    approvers: NotRequired[list[str]]
    """Who is asked."""
    due_at: NotRequired[str]
    """Until when."""
    decided_by: NotRequired[str]
    """Who decided last."""
    page_url: NotRequired[str]
    """The page of the approval, where the service knows its own address."""


class QuoteEvent(TypedDict):
    """Of a quote that nobody has decided."""

    quote_id: str
    """Which quote."""
    quote_version: Integer
    """In which version."""
    name: str
    """What it is called."""
    created_by: str
    """Who asked for it."""
    valid_until: str
    """How long its prices hold."""
    cost_center_id: NotRequired[str]
    """Who would pay."""


class BudgetEvent(TypedDict):
    """Of events of budgets."""

    budget_id: str
    """Which budget."""
    cost_center_id: str
    """Of which cost centre."""
    amount: MoneyAmount
    """What there is."""
    committed: MoneyAmount
    """What is committed by approvals."""
    spent: MoneyAmount
    """What was spent, by imported actuals."""
    threshold_share: NotRequired[float]
    """Which share was reached."""
    approval_id: NotRequired[str]
    """By which approval."""


class PolicyChangeEvent(TypedDict):
    """Of a change of what decides who has to approve; all else is behind the id."""

    change_id: str
    """Which change."""
    resource: str
    """What changes: its path below `/v1/`."""
    action: str
    """Whether it is created, changed or deleted."""
    proposed_by: str
    """Who wants it."""
    effective_at: str
    """When it takes effect, unless it is approved or rejected before."""
    ended_by: NotRequired[str]
    """Who approved it last or rejected it; absent where the delay was over."""


class BenchmarkRegressionEvent(TypedDict):
    """Of a benchmark that measures worse."""

    node_id: str
    """Which node."""
    benchmark: str
    """Which benchmark."""
    metric: str
    """Which figure of it."""
    against: Literal["earlier_runs", "other_nodes"]
    """Over time, or across nodes with equal hardware."""
    relative_change: float
    """Share by which it is worse, negative where less is worse."""
    result_id: str
    """The result that is worse."""


class AuditHeadEvent(TypedDict):
    """Of the end of the chain of events."""

    sequence: Integer
    """Number of the last event."""
    hash: str
    """Its hash, of 64 hexadecimal digits."""


class WebhookDisabledEvent(TypedDict):
    """Of a webhook that the service has disabled."""

    webhook_id: str
    """Which webhook."""
    description: NotRequired[str]
    """What it is for."""
    reason: Literal["GONE", "FAILING"]
    """Its receiver answered with 410, or every attempt of five days has failed."""


class WebhookTestEvent(TypedDict):
    """Of a delivery that somebody wanted to see."""

    webhook_id: str
    """To which webhook."""
