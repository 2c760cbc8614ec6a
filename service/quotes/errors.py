"""Problems of quotes."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class QuoteNotFound(NotFound):
    """The quote or the version does not exist."""

    code, title = "QUOTE_NOT_FOUND", "There is no quote with this id, or it has no such version"


class QuoteNotAsFrozen(Conflict):
    """The stored version differs from the frozen one. It cannot be decided on."""

    code, title = "QUOTE_NOT_AS_FROZEN", "The stored quote differs from the frozen one"


class QuotePending(Conflict):
    """An approval of the quote is pending, so it cannot change."""

    code, title = "QUOTE_PENDING", "An approval of this quote is pending"


class QuoteStateConflict(Conflict):
    """The version of the quote is in a state that does not allow this."""

    code, title = "QUOTE_STATE", "The state of this version of the quote does not allow this"


class QuoteChanged(Conflict):
    """The quote has a newer version than the one to price again."""

    code, title = "QUOTE_CHANGED", "The quote has a newer version than the one that was read"


class RequestOutdated(Conflict):
    """The stored request is not valid in this version of the service."""

    code, title = "REQUEST_OUTDATED", "The stored request is no longer valid: create a new quote"


class QuoteTooLarge(Unprocessable):
    """The answers exceed the size limit of a quote."""

    code, title = "QUOTE_TOO_LARGE", "The answers exceed the size limit of a quote"


class QuoteNotExportable(Conflict):
    """The quote has no charges to export."""

    code, title = "QUOTE_NOT_EXPORTABLE", "The quote has no charges to export"


class PlanNotQuotable(Conflict):
    """The plan has no answer, or no candidate with this rank."""

    code, title = "PLAN_NOT_QUOTABLE", "The plan has no candidate with this rank"
