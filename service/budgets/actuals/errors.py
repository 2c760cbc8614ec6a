"""Problems of actuals."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class ActualsNotFound(NotFound):
    """The import does not exist."""

    code, title = "ACTUALS_NOT_FOUND", "There are no imported actuals with this id"


class ActualsRefused(Unprocessable):
    """The table does not have the columns of FOCUS, or a row is invalid.

    Bills are imported completely or not at all.
    """

    code, title = "ACTUALS_REFUSED", "The bill cannot be imported"


class ImportedBefore(Conflict):
    """The same table was imported before: it would count twice or replace a later one."""

    code, title = "IMPORTED_BEFORE", "The same bill was imported before"


class ActualsWithdrawn(Conflict):
    """The import was already withdrawn."""

    code, title = "ACTUALS_WITHDRAWN", "The import was already withdrawn"
