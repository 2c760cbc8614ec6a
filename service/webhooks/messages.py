"""What receivers are sent, as the document describes it."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter
from pydantic import Field
from typing_extensions import TypedDict

from service.schemas.base import RFC_3339
from service.schemas.events import (
    ApprovalEvent,
    AuditHeadEvent,
    BenchmarkRegressionEvent,
    BudgetEvent,
    PolicyChangeEvent,
    QuoteEvent,
    WebhookDisabledEvent,
    WebhookEventType,
    WebhookTestEvent,
)

Moment = Annotated[str, Field(max_length=32, pattern=f"^{RFC_3339}$")]


class ApprovalMessage(TypedDict):
    """An approval went on."""

    type: Literal[
        "approval.requested",
        "approval.escalated",
        "approval.due_soon",
        "approval.approved",
        "approval.rejected",
        "approval.expired",
        "approval.cancelled",
        "approval.superseded",
        "approval.closed",
        "approval.commented",
    ]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: ApprovalEvent
    """To which approval."""


class BudgetMessage(TypedDict):
    """A budget is used up to some share of it."""

    type: Literal["budget.threshold_reached", "budget.exceeded"]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: BudgetEvent
    """To which budget."""


class PolicyChangeMessage(TypedDict):
    """A policy, a budget or the delay of changes is to change, or has."""

    type: Literal["policy_change.proposed", "policy_change.effective", "policy_change.rejected"]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: PolicyChangeEvent
    """To which change."""


class BenchmarkRegressionMessage(TypedDict):
    """A node measures worse than before, or than others like it."""

    type: Literal["benchmark.regressed"]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: BenchmarkRegressionEvent
    """Which figure of which node."""


class QuoteMessage(TypedDict):
    """A quote that nobody has decided soon holds no more."""

    type: Literal["quote.expires_soon"]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: QuoteEvent
    """To which quote."""


class AuditHeadMessage(TypedDict):
    """The chain of events ends here now."""

    type: Literal["audit.head"]
    """What happened."""
    timestamp: Moment
    """When it was read."""
    data: AuditHeadEvent
    """Where it ends."""


class WebhookDisabledMessage(TypedDict):
    """A webhook is disabled, because of its receiver."""

    type: Literal["webhook.disabled"]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: WebhookDisabledEvent
    """To which webhook, and why."""


class WebhookTestMessage(TypedDict):
    """Somebody wanted to see a delivery."""

    type: Literal["webhook.test"]
    """What happened."""
    timestamp: Moment
    """When it happened."""
    data: WebhookTestEvent
    """To which webhook."""


MESSAGES: Final[dict[WebhookEventType, tuple[type, str]]] = {
    WebhookEventType.APPROVAL_REQUESTED: (
        ApprovalMessage,
        "A step of an approval opened: somebody is asked.",
    ),
    WebhookEventType.APPROVAL_ESCALATED: (
        ApprovalMessage,
        "A step waited so long that others may decide it too.",
    ),
    WebhookEventType.APPROVAL_DUE_SOON: (ApprovalMessage, "Most of the time of a step has passed."),
    WebhookEventType.APPROVAL_APPROVED: (ApprovalMessage, "A quote is approved."),
    WebhookEventType.APPROVAL_REJECTED: (ApprovalMessage, "A quote is rejected."),
    WebhookEventType.APPROVAL_EXPIRED: (ApprovalMessage, "Nobody decided in time."),
    WebhookEventType.APPROVAL_CANCELLED: (ApprovalMessage, "The request was taken back."),
    WebhookEventType.APPROVAL_SUPERSEDED: (
        ApprovalMessage,
        "The quote was amended: its approval begins anew.",
    ),
    WebhookEventType.APPROVAL_CLOSED: (
        ApprovalMessage,
        "What was approved is over: it commits nothing more.",
    ),
    WebhookEventType.APPROVAL_COMMENTED: (ApprovalMessage, "Somebody said something about a request."),
    WebhookEventType.BUDGET_THRESHOLD_REACHED: (BudgetMessage, "So much of a budget is committed or spent."),
    WebhookEventType.BUDGET_EXCEEDED: (BudgetMessage, "More than a budget has is committed or spent."),
    WebhookEventType.POLICY_CHANGE_PROPOSED: (PolicyChangeMessage, "A policy or a budget is to change."),
    WebhookEventType.POLICY_CHANGE_EFFECTIVE: (
        PolicyChangeMessage,
        "A change of a policy or a budget holds now.",
    ),
    WebhookEventType.POLICY_CHANGE_REJECTED: (
        PolicyChangeMessage,
        "A change of a policy or a budget is rejected.",
    ),
    WebhookEventType.BENCHMARK_REGRESSED: (BenchmarkRegressionMessage, "A node measures worse."),
    WebhookEventType.QUOTE_EXPIRES_SOON: (QuoteMessage, "The prices of a quote hold for a day more at most."),
    WebhookEventType.AUDIT_HEAD: (AuditHeadMessage, "The chain of events ends here now."),
    WebhookEventType.WEBHOOK_DISABLED: (
        WebhookDisabledMessage,
        "A webhook is told nothing more, because of its receiver.",
    ),
    WebhookEventType.WEBHOOK_TEST: (WebhookTestMessage, "Somebody wanted to see a delivery."),
}
"""The shape of each kind of message, and what it tells."""


def build_message_router() -> APIRouter:
    """Every message as an operation that receivers offer; nobody here answers it."""
    router = APIRouter()
    for type_, (shape, told) in MESSAGES.items():

        def receive(body: Any) -> None:  # noqa: ANN401
            del body

        receive.__annotations__["body"] = shape
        name = f"receive_{type_.replace('.', '_')}"
        router.post(type_, operation_id=name, summary=told, description=told, tags=["webhooks"])(receive)
    return router
