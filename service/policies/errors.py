"""Problems of policies and of their changes."""

from service.kit.http.problems import Conflict, Forbidden, NotFound


class PolicyNotFound(NotFound):
    """The policy does not exist."""

    code, title = "APPROVAL_POLICY_NOT_FOUND", "There is no approval policy with this id"


class PolicyExists(Conflict):
    """A policy with this id exists."""

    code, title = "APPROVAL_POLICY_EXISTS", "An approval policy with this id exists"


class OwnApproval(Forbidden):
    """Requesters may not decide on their own request, with any key."""

    code, title = "OWN_APPROVAL", "You cannot decide on your own request"


class NobodyInOpenMode(Forbidden):
    """In open mode everybody is the same subject, who has asked for everything."""

    code, title = (
        "OPEN_MODE_CANNOT_DECIDE",
        "Nobody can decide in open mode, since everybody is the same subject",
    )


class PolicyChangeNotFound(NotFound):
    """The change does not exist."""

    code, title = "POLICY_CHANGE_NOT_FOUND", "There is no change with this id"


class ChangeWaits(Conflict):
    """The resource already has a pending change, which must take effect or be rejected first."""

    code, title = "POLICY_CHANGE_WAITS", "A change is already pending; it can be rejected"


class ChangeEnded(Conflict):
    """The change has taken effect or was rejected."""

    code, title = "POLICY_CHANGE_ENDED", "The change has taken effect or was rejected"


class NotAnApproverOfChange(Forbidden):
    """The current policies name other approvers for the change, or none."""

    code, title = "NOT_AN_APPROVER_OF_CHANGE", "No step of the current policies names you for this change"
