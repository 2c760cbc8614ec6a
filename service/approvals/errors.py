"""What can go wrong with approvals, policies and delegations."""

from service.kit.http.problems import Conflict, Forbidden, NotFound


class ApprovalNotFound(NotFound):
    """There is no such approval."""

    code, title = "APPROVAL_NOT_FOUND", "There is no approval of this id"


class PolicyNotFound(NotFound):
    """There is no such policy."""

    code, title = "APPROVAL_POLICY_NOT_FOUND", "There is no approval policy of this id"


class PolicyExists(Conflict):
    """The id is taken."""

    code, title = "APPROVAL_POLICY_EXISTS", "There is an approval policy of this id"


class DelegationNotFound(NotFound):
    """There is no such delegation of the caller's own."""

    code, title = "APPROVAL_DELEGATION_NOT_FOUND", "You have no delegation of this id"


class NobodyToDelegate(Forbidden):
    """Policies name holders of keys and tokens; in open mode everybody is the same."""

    code, title = "NOT_AN_APPROVER_BY_NAME", "Only holders of API keys and tokens can delegate"


class NoApprovalPolicy(Conflict):
    """Nothing is approved that no policy speaks of."""

    code, title = "NO_APPROVAL_POLICY", "No approval policy matches the quote"


class TooFewApprovers(Conflict):
    """A step can never have its quorum: those who asked may not decide, and one person counts once."""

    code, title = "TOO_FEW_APPROVERS", "A step has fewer approvers than its quorum, without those who ask"


class QuoteNotDraft(Conflict):
    """A version of a quote is submitted once; an amendment or a new price is a version of its own."""

    code, title = "QUOTE_NOT_DRAFT", "This version of the quote has been submitted before"


class QuoteNotSubmitted(Conflict):
    """There is nothing to cancel."""

    code, title = "QUOTE_NOT_SUBMITTED", "The quote has no approval that could be cancelled"


class QuoteNoLongerValid(Conflict):
    """The quote has outlived its validity; it can be priced anew."""

    code, title = "QUOTE_NO_LONGER_VALID", "The quote is not valid any more"


class ContentChanged(Conflict):
    """What was seen is not what would be decided about."""

    code, title = "CONTENT_CHANGED", "The content digest is not that of the quote: read it again"


class ApprovalEnded(Conflict):
    """It was decided, or ended otherwise."""

    code, title = "APPROVAL_ENDED", "The approval has ended"


class ApprovalNotApproved(Conflict):
    """Only what is approved has committed something."""

    code, title = "APPROVAL_NOT_APPROVED", "Only an approval that is approved can be closed"


class ApprovalExpired(Conflict):
    """The time for its decisions has passed."""

    code, title = "APPROVAL_EXPIRED", "The time to decide has passed"


class DecidedOtherwise(Conflict):
    """A decision is final."""

    code, title = "DECIDED_OTHERWISE", "You have decided otherwise before"


class AlreadyDecided(Conflict):
    """Nobody counts twice in a step, by whatever credentials or delegation."""

    code, title = "ALREADY_DECIDED", "The step has a decision of yours, or one in your place"


class OwnApproval(Forbidden):
    """Nobody approves what they asked for themselves, by whatever key."""

    code, title = "OWN_APPROVAL", "Nobody decides what they have asked for themselves"


class NotAnApprover(Forbidden):
    """The open step names other approvers."""

    code, title = "NOT_AN_APPROVER", "The open step of the approval names other approvers"


class NobodyInOpenMode(Forbidden):
    """In open mode everybody is the same subject, who has asked for everything."""

    code, title = "OPEN_MODE_CANNOT_DECIDE", "In open mode nobody can decide: everybody is the same subject"


class TooManyComments(Conflict):
    """An approval is no forum."""

    code, title = "TOO_MANY_COMMENTS", "The approval has as many comments as it can have"


class OwnPolicy(Forbidden):
    """Nobody is judged by what they have written themselves."""

    code, title = "OWN_POLICY", "Nobody asks under a policy or a budget that they have written themselves"


class PolicyChangeNotFound(NotFound):
    """There is no such change."""

    code, title = "POLICY_CHANGE_NOT_FOUND", "There is no change of this id"


class ChangeWaits(Conflict):
    """It waits for a change: that one takes effect or is rejected before there is another."""

    code, title = "POLICY_CHANGE_WAITS", "It waits for a change already, which can be rejected"


class ChangeEnded(Conflict):
    """It has taken effect, or was rejected."""

    code, title = "POLICY_CHANGE_ENDED", "The change is effective or rejected already"


class NotAnApproverOfChange(Forbidden):
    """The policies that stand name others, or nobody."""

    code, title = "NOT_AN_APPROVER_OF_CHANGE", "No step of the policies that stand names you for this change"
