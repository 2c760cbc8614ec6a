"""Problems of nodes and their leases."""

from service.kit.http.problems import Conflict, Forbidden, NotFound, TooManyRequests, Unauthorized


class NotANode(Forbidden):
    """The operation is reserved for nodes, each for itself."""

    code, title = "NOT_A_NODE", "The operation is reserved for enrolled nodes"


class NodeNotFound(NotFound):
    """The node does not exist."""

    code, title = "NODE_NOT_FOUND", "There is no node with this id"


class LeaseNotFound(NotFound):
    """The node never held this lease."""

    code, title = "LEASE_NOT_FOUND", "The node never held a lease with this id"


class StaleLease(Conflict):
    """The lease has ended or belongs to another attempt, so writes under this token are refused."""

    code, title = "STALE_LEASE", "The lease has ended or was granted again"


class NodeBusy(Conflict):
    """The node holds a lease of another request, which it must complete or let expire."""

    code, title = "NODE_BUSY", "The node holds another lease"


class NodeNotActive(Conflict):
    """The node is draining or quarantined and gets no leases."""

    code, title = "NODE_NOT_ACTIVE", "The node currently gets no leases"


class InventoryUnknown(Conflict):
    """The current inventory is missing: send it, then claim again."""

    code, title = "INVENTORY_UNKNOWN", "The inventory of the node is unknown"


class NodeQuotaSpent(TooManyRequests):
    """The node has reached its daily limit (UTC) of results, inventories or their bytes.

    Repetitions of a request after a lost answer do not count.
    """

    code, title = "NODE_QUOTA_SPENT", "The node has reached its daily limit"


class RunEnded(Conflict):
    """The run has ended and cannot be cancelled."""

    code, title = "RUN_ENDED", "The run has ended"


class EnrolmentTokenNotFound(NotFound):
    """The enrolment token does not exist."""

    code, title = "ENROLMENT_TOKEN_NOT_FOUND", "There is no enrolment token with this id"


class EnrolmentRefused(Unauthorized):
    """The enrolment token is unknown or incomplete."""

    code, title = "ENROLMENT_TOKEN_REFUSED", "The enrolment token is not valid"


class EnrolmentTokenExpired(Unauthorized):
    """The enrolment token has expired; create another one."""

    code, title = "ENROLMENT_TOKEN_EXPIRED", "The enrolment token has expired"


class EnrolmentTokenUsed(Conflict):
    """The token has enrolled another installation, or this one, whose credential has been used since."""

    code, title = "ENROLMENT_TOKEN_USED", "The enrolment token has been used"


class NodeRevoked(Conflict):
    """The node is revoked, which is final. Its host may enrol as a new node after an operator readmits it."""

    code, title = "NODE_REVOKED", "The node is revoked"


class NodeQuarantined(Conflict):
    """The node is quarantined and must be resumed or revoked first."""

    code, title = "NODE_QUARANTINED", "The node is quarantined"


class NodeBarred(Conflict):
    """An operator has quarantined or revoked the node of this installation, which cannot enrol.

    The same token is valid again after an operator resumes or readmits the node.
    """

    code, title = "NODE_BARRED", "An operator has barred this host"


class NodeCompromised(Conflict):
    """Two hosts use the credential of the node. Enrol its host with a new token, or revoke it.

    If an operator has also quarantined the node, readmit it first.
    """

    code, title = "NODE_COMPROMISED", "Two hosts use the credential of the node"
