"""What can go wrong with actuals."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class ActualsNotFound(NotFound):
    """There is no such import."""

    code, title = "ACTUALS_NOT_FOUND", "There are no imported actuals of this id"


class ActualsRefused(Unprocessable):
    """The table is not in the columns of FOCUS, or a row of it is wrong: the bill would not be whole."""

    code, title = "ACTUALS_REFUSED", "The bill cannot be imported"


class ImportedBefore(Conflict):
    """The same table counts or has counted: it would count twice, or take the place of a later one."""

    code, title = "IMPORTED_BEFORE", "The same bill was imported before"


class ActualsWithdrawn(Conflict):
    """The import counts no longer already."""

    code, title = "ACTUALS_WITHDRAWN", "The import is withdrawn already"
