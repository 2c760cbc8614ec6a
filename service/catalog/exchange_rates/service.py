"""What an exchange rate must obey."""

from service.catalog.rows import RowDocument
from service.planning.errors import PlanningError
from service.schemas.tariffs import parse_day


def check_rate(document: RowDocument) -> RowDocument:
    """Nothing to add; :class:`PlanningError` for a rate between one currency, or of no day."""
    if document["from_currency_code"] == document["to_currency_code"]:
        detail = "a currency is worth one of itself"
        raise PlanningError("SAME_CURRENCY", "/to_currency_code", detail)
    parse_day(document["as_of"], "/as_of")
    return {}
