"""What can go wrong with nodes and their leases."""

from service.kit.problems import Conflict, Forbidden, NotFound


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


class RunEnded(Conflict):
    """The run has ended and cannot be cancelled."""

    code, title = "RUN_ENDED", "The run has ended"
