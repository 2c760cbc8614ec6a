"""Rules of exchange rates."""

from service.catalog.rows import RowDocument
from service.planning.errors import PlanningError
from service.schemas.tariffs import parse_day


def check_rate(document: RowDocument) -> RowDocument:
    """Returns no members. Raises :class:`PlanningError` for equal currencies, or an invalid day."""
    if document["from_currency_code"] == document["to_currency_code"]:
        detail = "must be another currency than from_currency_code"
        raise PlanningError("SAME_CURRENCY", "/to_currency_code", detail)
    parse_day(document["as_of"], "/as_of")
    return {}
