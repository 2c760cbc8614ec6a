"""Problems of approvals and delegations."""

from service.kit.http.problems import Conflict, Forbidden, NotFound


class ApprovalNotFound(NotFound):
    """The approval does not exist."""

    code, title = "APPROVAL_NOT_FOUND", "There is no approval with this id"


class DelegationNotFound(NotFound):
    """The caller has no such delegation."""

    code, title = "APPROVAL_DELEGATION_NOT_FOUND", "You have no delegation with this id"


class NobodyToDelegate(Forbidden):
    """Policies name holders of keys and tokens; in open mode everybody is the same subject."""

    code, title = "NOT_AN_APPROVER_BY_NAME", "Only holders of API keys and tokens can delegate"


class NoApprovalPolicy(Conflict):
    """A quote without a matching policy cannot be approved."""

    code, title = "NO_APPROVAL_POLICY", "No approval policy matches the quote"


class TooFewApprovers(Conflict):
    """A step can never reach its quorum: requesters may not decide, and one person counts once."""

    code, title = "TOO_FEW_APPROVERS", "A step has fewer approvers than its quorum, apart from the requesters"


class QuoteNotDraft(Conflict):
    """A version of a quote is submitted once; an amendment or a new price is another version."""

    code, title = "QUOTE_NOT_DRAFT", "This version of the quote has been submitted before"


class QuoteNotSubmitted(Conflict):
    """The quote has no approval to cancel."""

    code, title = "QUOTE_NOT_SUBMITTED", "The quote has no approval to cancel"


class QuoteNoLongerValid(Conflict):
    """The quote has expired; it can be priced again."""

    code, title = "QUOTE_NO_LONGER_VALID", "The quote is no longer valid"


class ContentChanged(Conflict):
    """The content that the caller saw differs from the current content."""

    code, title = "CONTENT_CHANGED", "The content digest differs from that of the quote: read it again"


class ApprovalEnded(Conflict):
    """The approval has been decided or has ended in another way."""

    code, title = "APPROVAL_ENDED", "The approval has ended"


class ApprovalNotApproved(Conflict):
    """Only an approved approval has a commitment to close."""

    code, title = "APPROVAL_NOT_APPROVED", "Only an approved approval can be closed"


class ApprovalExpired(Conflict):
    """The time for its decisions has passed."""

    code, title = "APPROVAL_EXPIRED", "The time to decide has passed"


class DecidedOtherwise(Conflict):
    """A decision is final, and the caller has made the opposite one."""

    code, title = "DECIDED_OTHERWISE", "You have already made the opposite decision"


class AlreadyDecided(Conflict):
    """The same person counts once in a step, with any credentials or delegations."""

    code, title = "ALREADY_DECIDED", "The step already has a decision by you or on your behalf"


class NotAnApprover(Forbidden):
    """The open step names other approvers."""

    code, title = "NOT_AN_APPROVER", "The open step of the approval names other approvers"


class TooManyComments(Conflict):
    """The approval has reached its limit of comments."""

    code, title = "TOO_MANY_COMMENTS", "The approval has reached its limit of comments"


class OwnPolicy(Forbidden):
    """A request may not be judged by policies or budgets that the requester has written."""

    code, title = "OWN_POLICY", "You cannot submit a quote under a policy or budget that you have written"
