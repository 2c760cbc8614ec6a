"""Problems of cost centres."""

from service.kit.http.problems import Conflict, NotFound


class CostCenterNotFound(NotFound):
    """The cost centre does not exist."""

    code, title = "COST_CENTER_NOT_FOUND", "There is no cost centre with this id"


class CostCenterExists(Conflict):
    """The id is taken, or an account or tag belongs to another cost centre."""

    code, title = "COST_CENTER_EXISTS", "The id, an account or a tag belongs to another cost centre"


class CostCenterInUse(Conflict):
    """The cost centre has budgets or commitments."""

    code, title = "COST_CENTER_IN_USE", "The cost centre has budgets or commitments"
