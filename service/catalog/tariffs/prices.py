"""Tariffs at the prices of a market, from its published documents."""

from decimal import Decimal
from typing import Annotated

from pydantic import MISSING, Field, ValidationError

from service.catalog.rows import Document, RowInput
from service.catalog.tariffs.schemas import TariffInput
from service.kit.problems import FieldError, Unprocessable
from service.planning.errors import PlanningError
from service.planning.formats.grid import entsoe_prices
from service.planning.tariff.calendar import zone_of
from service.planning.tariff.charges import RealTimeCharge, Revision, Tariff
from service.questions.base import SignedDecimalText, Text
from service.questions.tariffs import Price, TimeZone, from_planning

CHARGE = "market_price"
_LONGEST = 4_000_000


class MarketPrices(RowInput):
    """A tariff of day-ahead prices, by the XML document of ENTSO-E (A44)."""

    content: Annotated[str, Field(min_length=1, max_length=_LONGEST)]
    """The document. A position that is left out repeats the one before (curve type A03)."""
    time_zone: TimeZone
    """IANA name of the local clock by which bills are made."""
    adder: Price = "0"
    factor: Annotated[
        SignedDecimalText, Field(description="What the price of the market is multiplied by.")
    ] = "1"
    utility: Text | MISSING = MISSING
    """Who charges by it."""


def read_prices(body: MarketPrices) -> Document:
    """The row that charges the prices of a document from its first day on."""
    try:
        zone = zone_of(body.time_zone)
        found = entsoe_prices(body.content)
    except PlanningError as error:
        field = FieldError(error.pointer, error.code, error.detail)
        raise Unprocessable("The prices cannot be imported", field) from error
    charge = RealTimeCharge(
        name=CHARGE, prices=found.prices, adder=Decimal(body.adder), factor=Decimal(body.factor)
    )
    starts_on = found.prices.start.astimezone(zone).date()
    tariff = Tariff(
        currency_code=found.currency_code,
        time_zone=body.time_zone,
        revisions=(Revision(effective_from=starts_on, charges=(charge,)),),
    )
    row = body.model_dump(mode="json", exclude={"content", "adder", "factor"}) | from_planning(tariff)
    try:
        return TariffInput.model_validate(row).model_dump(mode="json")
    except ValidationError as error:
        detail = "the document has more prices than a tariff holds"
        raise Unprocessable(
            "The prices cannot be imported", FieldError("/content", "OUT_OF_BOUNDS", detail)
        ) from error
