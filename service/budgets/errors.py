"""Problems of budgets."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class BudgetNotFound(NotFound):
    """The budget does not exist."""

    code, title = "BUDGET_NOT_FOUND", "There is no budget with this id"


class BudgetExists(Conflict):
    """A budget with this id exists."""

    code, title = "BUDGET_EXISTS", "A budget with this id exists"


class BudgetInUse(Conflict):
    """The budget has commitments of approvals, which must be cancelled first."""

    code, title = "BUDGET_IN_USE", "The budget has commitments of approvals"


class BudgetContradicts(Unprocessable):
    """Members of the budget contradict each other or the stored ones."""

    code, title = "BUDGET_CONTRADICTS", "The budget contradicts itself"


class BudgetExceeded(Conflict):
    """A blocking budget has less left than the quote takes, or the amount is unknown."""

    code, title = "BUDGET_EXCEEDED", "A budget has less left than the quote takes"


class AmountTooLarge(Conflict):
    """The quote takes a million million units of a currency or more, the limit of budgets."""

    code, title = "AMOUNT_TOO_LARGE", "The quote exceeds the largest amount of a budget"


class CostCenterUnknown(Conflict):
    """The quote names a cost centre that does not exist, so its budget is unknown."""

    code, title = "COST_CENTER_UNKNOWN", "The quote names a cost centre that does not exist"
