"""What can go wrong with budgets."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class BudgetNotFound(NotFound):
    """There is no such budget."""

    code, title = "BUDGET_NOT_FOUND", "There is no budget of this id"


class BudgetExists(Conflict):
    """The id is taken."""

    code, title = "BUDGET_EXISTS", "The id is taken"


class BudgetInUse(Conflict):
    """Approvals have committed of it: they are cancelled before it goes."""

    code, title = "BUDGET_IN_USE", "Approvals have committed of this budget"


class BudgetContradicts(Unprocessable):
    """Members of the budget contradict each other or what is stored."""

    code, title = "BUDGET_CONTRADICTS", "The budget contradicts itself"


class BudgetExceeded(Conflict):
    """A budget that blocks has less left than the quote takes, or nobody can tell what it takes."""

    code, title = "BUDGET_EXCEEDED", "A budget has less left than the quote takes"


class AmountTooLarge(Conflict):
    """The quote takes a million million units of a currency or more, which no budget holds."""

    code, title = "AMOUNT_TOO_LARGE", "The quote takes more than a budget can hold"
