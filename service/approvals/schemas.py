"""Shapes of approvals."""

from typing import Annotated, Literal, NotRequired

from pydantic import MISSING, AwareDatetime, Field
from typing_extensions import TypeAliasType, TypedDict

from service.kit.http.pages import NextPageToken, PageQuery
from service.quotes.schemas import QuoteHeadlines, QuoteId, QuoteRequest
from service.schemas.base import AnswerWarning, Integer, MoneyAmount, StrictModel, Text

ApprovalId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
SubjectName = Annotated[
    str,
    Field(pattern=r"^(token|api_key|person):[\x21-\x7e]{1,255}$", max_length=270),
]
"""Kind and id of a subject: the `sub` of a token, the id of an API key, or a person who acts by links."""
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
    """A decision about what was seen."""

    content_digest: Digest
    """Of the quote that was seen; a decision about another version is refused."""
    comment: Text | MISSING = MISSING
    """Why."""


class QuoteSubmissionRequest(StrictModel):
    """Which version of a quote is to be approved."""

    content_digest: Digest
    """Of the newest version, as it was seen; another one is refused."""


class QuoteAmendmentRequest(StrictModel):
    """What is to be approved instead."""

    content_digest: Digest
    """Of the newest version, as it was seen; another one is refused."""
    quote: QuoteRequest
    """What the next version asks."""


class ApprovalCommentRequest(StrictModel):
    """Something to say."""

    text: Text
    """What."""


class ApprovalDecision(TypedDict):
    """What an approver decided."""

    approver: str
    """Whose decision it is, as the policy names them."""
    decided_by: str
    """Who made it: the approver or whom they delegated it to."""
    linked_by: NotRequired[str]
    """Who made the link that it was decided by."""
    delegation_id: NotRequired[str]
    """The delegation by which they decided in the approver's place."""
    decision: ApprovalDecisionKind
    """Which."""
    via: ApprovalDecisionChannel
    """How."""
    comment: NotRequired[str]
    """Why."""
    content_digest: str
    """Digest of what was seen."""
    decided_at: AwareDatetime
    """When."""


class ApprovalStep(TypedDict):
    """A step of an approval; the next one opens once it is approved."""

    name: str
    """What it is called."""
    policy_id: str
    """Which policy asks for it."""
    policy_version: Integer
    """In which version."""
    approvers: list[str]
    """Who may decide; whoever it was escalated to is one of them."""
    quorum: Integer
    """How many have to approve; one rejection rejects."""
    state: ApprovalStepState
    """How far it is."""
    opened_at: NotRequired[AwareDatetime]
    """Since when it is open."""
    due_at: NotRequired[AwareDatetime]
    """When the approval expires for want of its decisions."""
    escalates_at: NotRequired[AwareDatetime]
    """When others may decide too."""
    escalated_at: NotRequired[AwareDatetime]
    """Since when they may."""
    decisions: list[ApprovalDecision]
    """In the order in which they were made."""


class ApprovalComment(TypedDict):
    """What somebody said."""

    written_by: str
    """Who."""
    text: str
    """What."""
    written_at: AwareDatetime
    """When."""


class BudgetEffect(TypedDict):
    """What a quote takes from a budget of its cost centre; amounts are in the currency of the budget."""

    budget_id: str
    """Which."""
    amount: NotRequired[MoneyAmount]
    """What the quote takes of it: the part of its total that falls into the period."""
    remaining_before: NotRequired[MoneyAmount]
    """What is left without it."""
    remaining_after: NotRequired[MoneyAmount]
    """What is left with it; below 0 where it is exceeded."""
    unknown: NotRequired[str]
    """Why nobody can tell what it takes: TOTAL_UNKNOWN or RATE_UNKNOWN."""
    is_exceeded: bool
    """Whether it takes more than there is, or nobody can tell."""
    blocks: bool
    """Whether the budget lets nothing be approved that exceeds it."""


class ApprovalCommitment(TypedDict):
    """What has to be paid for what was approved, in the currency of the quote."""

    amount: MoneyAmount
    """The total of the quote."""
    committed_at: AwareDatetime
    """Since when it counts in budgets of the cost centre."""
    due_from: AwareDatetime
    """It falls due evenly from this time on: that of the run, or of the purchase."""
    due_until: AwareDatetime
    """Until then; the same time where it falls due at once."""
    released_at: NotRequired[AwareDatetime]
    """Since when it counts no longer, it was closed, cancelled or superseded: only bills count then."""
    outstanding: NotRequired[MoneyAmount]
    """What of it is not billed yet, as a read and closing tell; absent where a bill has no exchange rate."""


class EvaluatedPolicy(TypedDict):
    """A policy that was there when an approval was asked for."""

    policy_id: str
    """Which."""
    version: Integer
    """In which version."""
    matches: bool
    """Whether it speaks of the quote."""


class EvaluatedExchangeRate(TypedDict):
    """An exchange rate by which a total was compared with the limit of a policy."""

    id: NotRequired[str]
    """Row of the catalog."""
    version: NotRequired[Integer]
    """In which version."""
    from_currency_code: str
    """Currency of the one unit."""
    to_currency_code: str
    """Currency that the rate counts."""
    rate: str
    """Units of the second currency for one of the first, as decimal text."""
    as_of: str
    """Day of the rate."""


class PolicyEvaluation(TypedDict):
    """By what it was judged who has to approve: frozen when it was asked for, whatever is changed later."""

    on: str
    """Day (UTC) of the exchange rates."""
    policies: list[EvaluatedPolicy]
    """All that there were, by id."""
    exchange_rates: list[EvaluatedExchangeRate]
    """Those that were used, as they are stated."""


class ApprovalSummary(TypedDict):
    """An approval as lists show it."""

    id: str
    """Id of the approval."""
    state: ApprovalState
    """How far it is."""
    quote_id: str
    """What is to be approved."""
    quote_version: Integer
    """In which version."""
    content_digest: str
    """Digest of all that is frozen in it."""
    name: str
    """What the quote is called."""
    headlines: QuoteHeadlines
    """What is decided about."""
    cost_center_id: NotRequired[str]
    """Who pays."""
    requester: str
    """Who asks."""
    submitted_at: AwareDatetime
    """Since when."""
    expires_at: NotRequired[AwareDatetime]
    """When it expires, unless it is decided before."""
    ended_at: NotRequired[AwareDatetime]
    """When it was decided or ended otherwise."""
    version: Integer
    """Number of changes."""
    supersedes: NotRequired[str]
    """The approval of an earlier version of the quote that this one stands instead of."""


class Approval(ApprovalSummary):
    """An approval, whole."""

    steps: list[ApprovalStep]
    """In order; none where a policy says that nobody has to be asked."""
    comments: list[ApprovalComment]
    """In the order in which they were written."""
    commitment: NotRequired[ApprovalCommitment]
    """What has to be paid, once it is approved; absent where the total is not known."""
    budgets: list[BudgetEffect]
    """Of the cost centre: as it was when it was submitted, and from its approval on as it was then."""
    warnings: list[AnswerWarning]
    """What a policy could not judge, such as a total that is unknown; it counts against whoever asks."""
    judged: PolicyEvaluation
    """By which policies and exchange rates."""


class ApprovalPage(TypedDict):
    """A page of approvals."""

    items: list[ApprovalSummary]
    """The newest first."""
    next_page_token: NextPageToken


class ApprovalQuery(PageQuery):
    """Filters of approvals."""

    state: Annotated[list[ApprovalState], Field(max_length=6)] = []
    """States to list."""
    approver: Literal["", "me"] = ""
    """`me`: those that wait for the caller, as an approver of the open step or in the place of one."""
    requester: Annotated[str, Field(max_length=300, pattern=r"^[\x21-\x7e]*$")] = ""
    """Kind and id of who asks, such as `token:alice`."""
    quote_id: Annotated[list[QuoteId], Field(max_length=50)] = []
    """Quotes of which to list the approvals."""


class ApprovalHistoryEvent(TypedDict):
    """A recorded change of an approval."""

    sequence: Integer
    """Number of the event in the audit chain of the tenant."""
    occurred_at: AwareDatetime
    """When."""
    operation: str
    """What was done."""
    subject: NotRequired[str]
    """Kind and id of who did it; absent after a redaction of the tenant."""
    request_id: str
    """Id of the request, as in the log; empty for what the service did by itself."""
    before_digest: NotRequired[str]
    """SHA-256 of the approval before."""
    after_digest: NotRequired[str]
    """SHA-256 of the approval after."""
    hash: str
    """SHA-256 of the event."""


class ApprovalHistory(TypedDict):
    """Every recorded change of an approval."""

    items: list[ApprovalHistoryEvent]
    """In the order in which they were made."""
    is_as_recorded: bool
    """Whether the approval still is what its last event says; if not, somebody has changed the database."""
