"""What can go wrong with cost centres."""

from service.kit.http.problems import Conflict, NotFound


class CostCenterNotFound(NotFound):
    """There is no such cost centre."""

    code, title = "COST_CENTER_NOT_FOUND", "There is no cost centre of this id"


class CostCenterExists(Conflict):
    """The id is taken, or an account or tag belongs to another cost centre."""

    code, title = "COST_CENTER_EXISTS", "The id, an account or a tag belongs to another cost centre"


class CostCenterInUse(Conflict):
    """Budgets are of this cost centre, or approvals have committed for it."""

    code, title = "COST_CENTER_IN_USE", "Budgets or commitments are of this cost centre"


class CostCenterUnknown(Conflict):
    """The quote names a cost centre that there is not: nobody could say which budget it is of."""

    code, title = "COST_CENTER_UNKNOWN", "The quote names a cost centre that there is not"
