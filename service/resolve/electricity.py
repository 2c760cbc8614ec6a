"""Price of a run's electricity, from a question."""

from pydantic import MISSING

from service.planning.cost.charges import UnitPrice
from service.planning.errors import PlanningError
from service.planning.notes import AnswerNotes
from service.planning.tariff.contract import ELECTRICITY, TariffContract
from service.resolve.catalog import CatalogView
from service.resolve.contract import resolve_contract
from service.resolve.prices import multiply_price, resolve_price
from service.resolve.site import find_site
from service.schemas.estimates import UtilityBillRequest


def resolve_electricity_price(
    question: UtilityBillRequest, catalog: CatalogView, notes: AnswerNotes
) -> UnitPrice | TariffContract | None:
    """Returns the flat price or the tariff of a question or its site; None, with a gap, where it has none.

    Raises :class:`PlanningError` for a flat price beside a tariff, and as :func:`resolve_contract` does.
    """
    given = question.site
    known = None if given is MISSING else find_site(given, catalog)
    if given is MISSING or (given.electricity is MISSING and (known is None or known.tariff_id is None)):
        notes.add_gap("/electricity/total", "PRICE_REQUIRED", "no price of electricity is given")
        return None
    asked = given.electricity
    if asked is MISSING or asked.price_per_kwh is MISSING:
        return resolve_contract(question, given, catalog, notes)
    if asked.tariff_id is not MISSING or asked.tariff is not MISSING:
        raise PlanningError("ELECTRICITY_PRICE", ELECTRICITY, "give price_per_kwh or a tariff, not both")
    if given.baseline_load is not MISSING:
        detail = "at a flat price the bill of the run does not depend on what else the meter reads"
        notes.warn("BASELINE_NOT_USED", "/site/baseline_load", detail)
    return multiply_price(resolve_price(asked.price_per_kwh), asked.price_factor)
