"""Events that webhooks tell of. Each type is declared once, with its members, its scope and a sample.

The messages of the API document, the scopes that receivers need and the examples follow from the declaration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, NotRequired, Self

from typing_extensions import TypedDict

from service.schemas.base import Integer, MoneyAmount


class ApprovalEvent(TypedDict):
    """Approval of an event. Everything else about it is read by its id."""

    approval_id: str
    """Id of the approval."""
    quote_id: str
    """Id of the quote."""
    quote_version: Integer
    """Version of the quote."""
    name: str
    """Name of the quote."""
    requester: str
    """Subject that asked for the approval."""
    total: NotRequired[MoneyAmount]
    """Amount that has to be paid."""
    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""
    step: NotRequired[str]
    """Name of the open step."""
    approvers: NotRequired[list[str]]
    """Subjects that are asked to decide the open step."""
    due_at: NotRequired[str]
    """Time until which the open step has to be decided."""
    decided_by: NotRequired[str]
    """Subject of the last decision."""
    page_url: NotRequired[str]
    """URL of the page of the approval. Absent if the service does not know its own address."""


class QuoteEvent(TypedDict):
    """Quote that nobody has decided."""

    quote_id: str
    """Id of the quote."""
    quote_version: Integer
    """Version of the quote."""
    name: str
    """Name of the quote."""
    created_by: str
    """Subject that created the quote."""
    valid_until: str
    """Time until which its prices hold."""
    cost_center_id: NotRequired[str]
    """Id of the cost centre that would pay."""


class BudgetEvent(TypedDict):
    """Budget of an event."""

    budget_id: str
    """Id of the budget."""
    cost_center_id: str
    """Id of the cost centre of the budget."""
    amount: MoneyAmount
    """Amount of the budget."""
    committed: MoneyAmount
    """Amount that approvals have committed."""
    spent: MoneyAmount
    """Amount that was spent, by imported actuals."""
    threshold_share: NotRequired[float]
    """Share of the budget that was reached."""
    approval_id: NotRequired[str]
    """Id of the approval by which it was reached."""


class PolicyChangeEvent(TypedDict):
    """Change of a policy, a budget or the delay of changes. Everything else about it is read by its id."""

    change_id: str
    """Id of the change."""
    resource: str
    """Path of the resource that changes, below `/v1/`."""
    action: str
    """Action on the resource: it is created, changed or deleted."""
    proposed_by: str
    """Subject that proposed the change."""
    effective_at: str
    """Time at which the change takes effect, unless it is approved or rejected before."""
    ended_by: NotRequired[str]
    """Subject that approved it last or rejected it. Absent if the delay was over."""


class BenchmarkRegressionEvent(TypedDict):
    """Benchmark that measures worse than before, or worse than on equal nodes."""

    node_id: str
    """Id of the node."""
    benchmark: str
    """Name of the benchmark."""
    metric: str
    """Metric of the benchmark."""
    against: Literal["earlier_runs", "other_nodes"]
    """Results that it is compared with: earlier ones of the node, or those of nodes with equal hardware."""
    relative_change: float
    """Share by which the figure is worse. Negative if a lower figure is worse."""
    result_id: str
    """Id of the result that is worse."""


class AuditHeadEvent(TypedDict):
    """Last event of the audit chain."""

    sequence: Integer
    """Number of the last event."""
    hash: str
    """Hash of the last event, 64 hexadecimal digits."""


class WebhookDisabledEvent(TypedDict):
    """Webhook that the service has disabled."""

    webhook_id: str
    """Id of the webhook."""
    description: NotRequired[str]
    """Description of the webhook."""
    reason: Literal["GONE", "FAILING"]
    """Reason: its receiver answered with 410, or every attempt of five days has failed."""


class WebhookTestEvent(TypedDict):
    """Webhook that a test delivery was asked for."""

    webhook_id: str
    """Id of the webhook."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSubject:
    """Properties that several types of events share: the members of their data and the scope to read them."""

    noun: str
    """Noun with its article, as the description of the message names it."""
    data: type
    """Typed dictionary of the members. The name of the message is its name with `Message` for `Event`."""
    scope: str
    """Scope that a receiver needs to be told. Empty if it needs none."""
    sample: Mapping[str, Any]
    """Members of an example that all types of the subject share."""

    @property
    def message_name(self) -> str:
        """Name of the message in the API document."""
        return f"{self.data.__name__.removesuffix('Event')}Message"


_APPROVAL: Final = EventSubject(
    noun="an approval",
    data=ApprovalEvent,
    scope="approvals:read",
    sample={
        "approval_id": "8a6f1c2d4e9b47308d5a7f3c1b2e6049",
        "quote_id": "2f7b9d1e5c3a48608b4d6e0f9a1c7253",
        "quote_version": 1,
        "name": "Llama 70B, second run",
        "requester": "token:alice",
        "total": {"amount": "1415571.28", "currency_code": "USD"},
        "cost_center_id": "research",
    },
)
_ASKED: Final = {"step": "finance", "approvers": ["person:bob"], "due_at": "2026-11-23T12:00:00Z"}
_DECIDED: Final = {"decided_by": "person:bob"}
_BUDGET: Final = EventSubject(
    noun="a budget",
    data=BudgetEvent,
    scope="budgets:read",
    sample={
        "budget_id": "research-2027",
        "cost_center_id": "research",
        "amount": {"amount": "5000000", "currency_code": "USD"},
        "committed": {"amount": "4100000", "currency_code": "USD"},
        "spent": {"amount": "1200000", "currency_code": "USD"},
    },
)
_POLICY_CHANGE: Final = EventSubject(
    noun="a change of a policy, a budget or the delay of changes",
    data=PolicyChangeEvent,
    scope="policy-changes:read",
    sample={
        "change_id": "6d0c8b3f5a7e41c29b1d4f6a8e0c2735",
        "resource": "approval-policies/large-runs",
        "action": "update",
        "proposed_by": "token:alice",
        "effective_at": "2026-11-23T12:00:00Z",
    },
)
_BENCHMARK_REGRESSION: Final = EventSubject(
    noun="a benchmark that measures worse",
    data=BenchmarkRegressionEvent,
    scope="benchmark-results:read",
    sample={
        "node_id": "n5r8k1m4p7s0v3ya",
        "benchmark": "gemm-bf16",
        "metric": "flops_per_second",
        "against": "earlier_runs",
        "relative_change": -0.12,
        "result_id": "019aa6f2-7c31-7b5e-9d04-3f8a61c2e7b9",
    },
)
_QUOTE: Final = EventSubject(
    noun="a quote",
    data=QuoteEvent,
    scope="quotes:read",
    sample={
        "quote_id": "2f7b9d1e5c3a48608b4d6e0f9a1c7253",
        "quote_version": 1,
        "name": "Llama 70B, second run",
        "created_by": "token:alice",
        "valid_until": "2026-11-23T12:00:00Z",
        "cost_center_id": "research",
    },
)
_AUDIT_HEAD: Final = EventSubject(
    noun="the end of the audit chain",
    data=AuditHeadEvent,
    scope="audit-events:read",
    sample={"sequence": 4, "hash": "b" * 64},
)
_WEBHOOK_DISABLED: Final = EventSubject(
    noun="a webhook that the service has disabled",
    data=WebhookDisabledEvent,
    scope="webhooks:read",
    sample={
        "webhook_id": "c7d0a9e4b2f14d6c8a5e3b1f9d7c6042",
        "description": "Orders of the capacity team",
        "reason": "GONE",
    },
)
_WEBHOOK_TEST: Final = EventSubject(
    noun="a test delivery",
    data=WebhookTestEvent,
    scope="",
    sample={"webhook_id": "c7d0a9e4b2f14d6c8a5e3b1f9d7c6042"},
)


class WebhookEventType(StrEnum):
    """Type of an event."""

    # Name, subject, summary, and the members that its sample has beside those of the subject.
    APPROVAL_REQUESTED = (
        "approval.requested",
        _APPROVAL,
        "A step of an approval is open and waits for its approvers.",
        _ASKED,
    )
    APPROVAL_ESCALATED = (
        "approval.escalated",
        _APPROVAL,
        "A step of an approval has waited so long that others may decide it too.",
        _ASKED,
    )
    APPROVAL_DUE_SOON = (
        "approval.due_soon",
        _APPROVAL,
        "Most of the time of a step has passed without its decisions.",
        _ASKED,
    )
    APPROVAL_APPROVED = "approval.approved", _APPROVAL, "A quote is approved.", _DECIDED
    APPROVAL_REJECTED = "approval.rejected", _APPROVAL, "A quote is rejected.", _DECIDED
    APPROVAL_EXPIRED = "approval.expired", _APPROVAL, "An approval has expired without a decision."
    APPROVAL_CANCELLED = "approval.cancelled", _APPROVAL, "The request for an approval is withdrawn."
    APPROVAL_SUPERSEDED = (
        "approval.superseded",
        _APPROVAL,
        "The quote was amended, and its approval begins anew under another id.",
    )
    APPROVAL_CLOSED = (
        "approval.closed",
        _APPROVAL,
        "An approved quote is closed: what was not billed of it is no longer committed.",
        _DECIDED,
    )
    APPROVAL_COMMENTED = "approval.commented", _APPROVAL, "An approval has a new comment."
    BUDGET_THRESHOLD_REACHED = (
        "budget.threshold_reached",
        _BUDGET,
        "A share of a budget that it names as a threshold is committed or spent.",
        {"threshold_share": 0.8},
    )
    BUDGET_EXCEEDED = "budget.exceeded", _BUDGET, "More than the amount of a budget is committed or spent."
    POLICY_CHANGE_PROPOSED = (
        "policy_change.proposed",
        _POLICY_CHANGE,
        "A change is proposed and can be approved or rejected until it takes effect.",
    )
    POLICY_CHANGE_EFFECTIVE = "policy_change.effective", _POLICY_CHANGE, "A change has taken effect."
    POLICY_CHANGE_REJECTED = (
        "policy_change.rejected",
        _POLICY_CHANGE,
        "A change is rejected.",
        {"ended_by": "token:bob"},
    )
    BENCHMARK_REGRESSED = (
        "benchmark.regressed",
        _BENCHMARK_REGRESSION,
        "A node measures worse than before, or worse than nodes with equal hardware.",
    )
    QUOTE_EXPIRES_SOON = (
        "quote.expires_soon",
        _QUOTE,
        "The prices of a quote that nobody has decided hold for a day more at most.",
    )
    AUDIT_HEAD = (
        "audit.head",
        _AUDIT_HEAD,
        "The last event of the audit chain. Kept elsewhere, it proves later that none is missing at the end.",
    )
    WEBHOOK_DISABLED = (
        "webhook.disabled",
        _WEBHOOK_DISABLED,
        "The service has disabled a webhook because of its receiver. The tenant's other webhooks are told.",
    )
    WEBHOOK_TEST = "webhook.test", _WEBHOOK_TEST, "A test delivery was asked for."

    subject: EventSubject
    summary: str
    sample: dict[str, Any]

    def __new__(
        cls, name: str, subject: EventSubject, summary: str, sample: Mapping[str, Any] | None = None
    ) -> Self:
        """Make a member from the parts of its declaration."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.subject, member.summary = subject, summary
        member.sample = {**subject.sample, **(sample or {})}
        return member
