"""Requests and answers of approvals."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType, TypedDict

from service.budgets.schemas import BudgetEffect
from service.kit.http.pages import NextPageToken, PageQuery
from service.quotes.schemas import QuoteHeadlines, QuoteId, QuoteRequest
from service.schemas.base import AnswerWarning, Integer, MoneyAmount, StrictModel, Text

ApprovalId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]
ApprovalState = TypeAliasType(
    "ApprovalState",
    Literal["pending", "approved", "rejected", "cancelled", "expired", "superseded"],
)
ApprovalStepState = TypeAliasType(
    "ApprovalStepState", Literal["waiting", "open", "approved", "rejected", "ended"]
)
ApprovalDecisionKind = TypeAliasType("ApprovalDecisionKind", Literal["approve", "reject"])
ApprovalDecisionChannel = TypeAliasType("ApprovalDecisionChannel", Literal["api", "page", "link"])


class ApprovalDecisionRequest(StrictModel):
    """A decision on one version of a quote."""

    content_digest: Digest
    """Digest of the quote that the approver has seen. A decision on another version is refused."""
    comment: Text | MISSING = MISSING
    """Reason for the decision."""


class QuoteSubmissionRequest(StrictModel):
    """Version of a quote to submit for approval."""

    content_digest: Digest
    """Digest of the newest version that the caller has seen. Another version is refused."""


class QuoteAmendmentRequest(StrictModel):
    """New version of a quote that replaces the submitted one."""

    content_digest: Digest
    """Digest of the newest version that the caller has seen. Another version is refused."""
    quote: QuoteRequest
    """Request of the next version."""


class ApprovalCommentRequest(StrictModel):
    """A comment on an approval."""

    text: Text
    """Text of the comment."""


class ApprovalDecision(TypedDict):
    """Decision of an approver."""

    approver: str
    """Approver whose decision it is, as the policy names them."""
    decided_by: str
    """Subject that decided: the approver or their delegate."""
    linked_by: NotRequired[str]
    """Subject that made the link by which the decision was made."""
    delegation_id: NotRequired[str]
    """Id of the delegation by which the delegate decided."""
    decision: ApprovalDecisionKind
    """Decision: approve or reject."""
    via: ApprovalDecisionChannel
    """Channel of the decision."""
    comment: NotRequired[str]
    """Reason for the decision."""
    content_digest: str
    """Digest of the quote that the approver has seen."""
    decided_at: AwareDatetime
    """Time of the decision."""


class ApprovalStep(TypedDict):
    """A step of an approval. The next step opens once it is approved."""

    name: str
    """Name of the step."""
    policy_id: str
    """Id of the policy that requires the step."""
    policy_version: Integer
    """Version of the policy."""
    approvers: list[str]
    """Subjects that may decide, including those that the step was escalated to."""
    quorum: Integer
    """Number of approvers that must approve. A single rejection rejects."""
    state: ApprovalStepState
    """State of the step."""
    opened_at: NotRequired[AwareDatetime]
    """Time at which the step opened."""
    due_at: NotRequired[AwareDatetime]
    """Time at which the approval expires if the step is undecided."""
    escalates_at: NotRequired[AwareDatetime]
    """Time at which the step escalates."""
    escalated_at: NotRequired[AwareDatetime]
    """Time at which the step was escalated."""
    decisions: list[ApprovalDecision]
    """Decisions in the order in which they were made."""


class ApprovalComment(TypedDict):
    """A comment on an approval."""

    written_by: str
    """Author of the comment."""
    text: str
    """Text of the comment."""
    written_at: AwareDatetime
    """Time of the comment."""


class ApprovalCommitment(TypedDict):
    """Amount that is to be paid for an approved quote, in the currency of the quote."""

    amount: MoneyAmount
    """Total of the quote."""
    committed_at: AwareDatetime
    """Time from which the amount counts in budgets of the cost centre."""
    due_from: AwareDatetime
    """Start of the time over which the amount falls due evenly: the start of the run, or the time of the
    purchase."""
    due_until: AwareDatetime
    """End of the time over which the amount falls due. Equal to the start if it falls due at once."""
    released_at: NotRequired[AwareDatetime]
    """Time at which the commitment was released because the approval was closed, cancelled or superseded.
    Only bills count from then on."""
    outstanding: NotRequired[MoneyAmount]
    """Amount that is not billed yet. Present in single reads and after closing; absent if a bill has no
    exchange rate."""


class EvaluatedPolicy(TypedDict):
    """A policy that existed when the approval was requested."""

    policy_id: str
    """Id of the policy."""
    version: Integer
    """Version of the policy."""
    matches: bool
    """True if the policy applies to the quote."""


class EvaluatedExchangeRate(TypedDict):
    """An exchange rate by which a total was compared with the limit of a policy."""

    id: NotRequired[str]
    """Id of the row of the catalog."""
    version: NotRequired[Integer]
    """Version of the row."""
    from_currency_code: str
    """Currency of the one unit that is converted."""
    to_currency_code: str
    """Currency that the rate is counted in."""
    rate: str
    """Units of the second currency for one of the first, as decimal text."""
    as_of: str
    """Day of the rate."""


class PolicyEvaluation(TypedDict):
    """Policies and exchange rates that determined the approvers, frozen at submission."""

    on: str
    """Day of the exchange rates, UTC."""
    policies: list[EvaluatedPolicy]
    """All policies that existed, in order of id."""
    exchange_rates: list[EvaluatedExchangeRate]
    """Exchange rates that were used, as stated in the catalog."""


class ApprovalSummary(TypedDict):
    """An approval in lists."""

    id: str
    """Id of the approval."""
    state: ApprovalState
    """State of the approval."""
    quote_id: str
    """Id of the quote to approve."""
    quote_version: Integer
    """Version of the quote."""
    content_digest: str
    """Digest of all frozen content of the version."""
    name: str
    """Name of the quote."""
    headlines: QuoteHeadlines
    """Headline figures of the quote."""
    cost_center_id: NotRequired[str]
    """Id of the cost centre that pays."""
    requester: str
    """Subject that requests the approval."""
    submitted_at: AwareDatetime
    """Time of the submission."""
    expires_at: NotRequired[AwareDatetime]
    """Time at which the approval expires, unless it is decided earlier."""
    ended_at: NotRequired[AwareDatetime]
    """Time at which the approval was decided or ended otherwise."""
    version: Integer
    """Number of changes."""
    supersedes: NotRequired[str]
    """Id of the approval of an earlier version of the quote that this one replaces."""


class Approval(ApprovalSummary):
    """An approval with its steps, comments and budgets."""

    steps: list[ApprovalStep]
    """Steps in order. Empty if a policy requires no approver."""
    comments: list[ApprovalComment]
    """Comments in the order in which they were written."""
    commitment: NotRequired[ApprovalCommitment]
    """Amount that is to be paid, once the quote is approved. Absent if the total is unknown."""
    budgets: list[BudgetEffect]
    """Effect on the budgets of the cost centre: at submission, and from the approval on at the time of the
    approval."""
    warnings: list[AnswerWarning]
    """Conditions that a policy could not evaluate, such as those on an unknown total. They count against the
    requester."""
    judged: PolicyEvaluation
    """Policies and exchange rates that determined the approvers."""


class ApprovalPage(TypedDict):
    """A page of approvals."""

    items: list[ApprovalSummary]
    """Approvals, the newest first."""
    next_page_token: NextPageToken


class ApprovalQuery(PageQuery):
    """Filters of approvals."""

    state: Annotated[list[ApprovalState], Field(max_length=6)] = []
    """States to list."""
    approver: Literal["", "me"] = ""
    """`me` lists approvals that wait for the caller, as an approver of the open step or in the place of
    one."""
    requester: Annotated[str, Field(max_length=300, pattern=r"^[\x21-\x7e]*$")] = ""
    """Kind and id of the requester, such as `token:alice`."""
    quote_id: Annotated[list[QuoteId], Field(max_length=50)] = []
    """Quotes whose approvals to list."""


class ApprovalHistoryEvent(TypedDict):
    """A recorded change of an approval."""

    sequence: Integer
    """Number of the event in the audit chain of the tenant."""
    occurred_at: AwareDatetime
    """Time of the change."""
    operation: str
    """Operation that made the change."""
    subject: NotRequired[str]
    """Kind and id of the subject that made the change. Absent after a redaction of the tenant."""
    request_id: str
    """Id of the request, as in the log. Empty for changes that the service made by itself."""
    before_digest: NotRequired[str]
    """SHA-256 of the approval before the change."""
    after_digest: NotRequired[str]
    """SHA-256 of the approval after the change."""
    hash: str
    """SHA-256 of the event."""


class ApprovalHistory(TypedDict):
    """Every recorded change of an approval."""

    items: list[ApprovalHistoryEvent]
    """Changes in the order in which they were made."""
    is_as_recorded: bool
    """True if the stored approval matches its last event. If false, the database was changed directly."""
