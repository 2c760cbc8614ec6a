"""What can go wrong with quotes."""

from service.kit.http.problems import Conflict, NotFound, Unprocessable


class QuoteNotFound(NotFound):
    """There is no such quote, or no such version of it."""

    code, title = "QUOTE_NOT_FOUND", "There is no quote of this id, or no such version of it"


class QuoteNotAsFrozen(Conflict):
    """Somebody has changed the version beside the service; nothing is decided about it."""

    code, title = "QUOTE_NOT_AS_FROZEN", "What is stored of the quote is not what was frozen"


class QuotePending(Conflict):
    """An approval of the quote is pending: it stays as it is until that has ended."""

    code, title = "QUOTE_PENDING", "An approval of this quote is pending"


class QuoteStateConflict(Conflict):
    """The version of the quote is in a state that does not allow this."""

    code, title = "QUOTE_STATE", "The state of this version of the quote does not allow this"


class QuoteChanged(Conflict):
    """There is a newer version than the one that was to be priced again."""

    code, title = "QUOTE_CHANGED", "The quote has a newer version than the one that was read"


class RequestOutdated(Conflict):
    """What was asked for is no question of this version of the service."""

    code, title = "REQUEST_OUTDATED", "What was asked for cannot be asked any more: quote it anew"


class QuoteTooLarge(Unprocessable):
    """What would be frozen is more than a quote holds."""

    code, title = "QUOTE_TOO_LARGE", "The answers are larger than a quote may be"


class QuoteNotExportable(Conflict):
    """The quote has no charges that accountants could read."""

    code, title = "QUOTE_NOT_EXPORTABLE", "The quote has no rows of charges"


class PlanNotQuotable(Conflict):
    """The plan has no answer, or no such candidate."""

    code, title = "PLAN_NOT_QUOTABLE", "The plan has no such candidate to quote"
