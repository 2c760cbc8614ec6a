"""Problems of catalog rows."""

from service.kit.http.problems import Conflict, FieldError, NotFound, Unprocessable


class RowNotFound(NotFound):
    """The row does not exist."""

    code, title = "ROW_NOT_FOUND", "There is no row of this id"


class RowExists(Conflict):
    """The id or an alias belongs to another row."""

    code, title = "ROW_EXISTS", "The id or an alias is taken"


class RowShipped(Conflict):
    """The row ships with the service. The tenant can copy it and change the copy."""

    code, title = "ROW_SHIPPED", "Rows that ship with the service are read-only"


class RowInUse(Conflict):
    """Another row refers to this one."""

    code, title = "ROW_IN_USE", "Another row refers to this one"


class TooManyRows(Conflict):
    """The tenant has as many rows of the resource as the operator allows. Delete some first."""

    code, title = "TOO_MANY_ROWS", "The tenant has as many rows of this resource as it may have"


def build_unknown_reference(pointer: str, resource: str, nearest: str = "") -> Unprocessable:
    """Returns the problem that a member names a row that does not exist."""
    guess = f"; did you mean {nearest}?" if nearest else ""
    detail = f"there is no row of this id among {resource}{guess}"
    return Unprocessable("A member refers to no row", FieldError(pointer, "UNKNOWN_REFERENCE", detail))
