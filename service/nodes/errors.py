"""What can go wrong with nodes and their leases."""

from service.kit.http.problems import Conflict, Forbidden, NotFound, TooManyRequests, Unauthorized


class NotANode(Forbidden):
    """Only a node may do this, and only for itself."""

    code, title = "NOT_A_NODE", "The operation is for enrolled nodes"


class NodeNotFound(NotFound):
    """There is no such node."""

    code, title = "NODE_NOT_FOUND", "There is no node of this id"


class LeaseNotFound(NotFound):
    """The node never held a lease of this id."""

    code, title = "LEASE_NOT_FOUND", "The node never held a lease of this id"


class StaleLease(Conflict):
    """The lease has ended, or belongs to another attempt by now: nothing is written under this token."""

    code, title = "STALE_LEASE", "The lease has ended or was granted anew"


class NodeBusy(Conflict):
    """The node holds a lease that another request claimed: complete it, or let it expire."""

    code, title = "NODE_BUSY", "The node holds another lease"


class NodeNotActive(Conflict):
    """The node is draining or quarantined, and is given nothing to run."""

    code, title = "NODE_NOT_ACTIVE", "The node is given nothing to run now"


class InventoryUnknown(Conflict):
    """The service does not have the inventory that holds: send it, then claim again."""

    code, title = "INVENTORY_UNKNOWN", "The inventory of the node is not known"


class NodeQuotaSpent(TooManyRequests):
    """The node has handed in as many results or inventories, or bytes of them, as it may in a day (UTC).

    What it sends again, because an answer was lost, does not count.
    """

    code, title = "NODE_QUOTA_SPENT", "The node has handed in what it may in a day"


class RunEnded(Conflict):
    """The run has ended and cannot be cancelled."""

    code, title = "RUN_ENDED", "The run has ended"


class EnrolmentTokenNotFound(NotFound):
    """There is no such enrolment token."""

    code, title = "ENROLMENT_TOKEN_NOT_FOUND", "There is no enrolment token of this id"


class EnrolmentRefused(Unauthorized):
    """The enrolment token is not one of this service, or not whole."""

    code, title = "ENROLMENT_TOKEN_REFUSED", "The enrolment token is not valid"


class EnrolmentTokenExpired(Unauthorized):
    """The enrolment token was right, but its time is over: ask for another."""

    code, title = "ENROLMENT_TOKEN_EXPIRED", "The enrolment token has expired"


class EnrolmentTokenUsed(Conflict):
    """The enrolment token has let another installation in, or this one, whose credential was used since."""

    code, title = "ENROLMENT_TOKEN_USED", "The enrolment token has been used"


class NodeRevoked(Conflict):
    """The node is revoked, which is final. Its host may enrol as a new one once an operator readmits it."""

    code, title = "NODE_REVOKED", "The node is revoked"


class NodeQuarantined(Conflict):
    """The node is quarantined: resume or revoke it first."""

    code, title = "NODE_QUARANTINED", "The node is quarantined"


class NodeBarred(Conflict):
    """An operator has quarantined or revoked the node of this installation: nobody enrols as it.

    The same token works once an operator has resumed or readmitted the node.
    """

    code, title = "NODE_BARRED", "An operator keeps this host out"


class NodeCompromised(Conflict):
    """The credential of the node is in two hands. Enrol its host with a new token, or revoke it.

    Where an operator has quarantined the node too, readmit it first.
    """

    code, title = "NODE_COMPROMISED", "The credential of the node is in two hands"
