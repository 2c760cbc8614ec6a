"""Shapes of tariffs."""

from typing import Annotated, Literal

from pydantic import MISSING, BaseModel, ConfigDict, Field, JsonValue
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.rows import EXAMPLE_SOURCES, RowDocument, RowInput, Versioned
from service.catalog.shapes import ListQuery, TextFilter
from service.schemas.base import AnswerWarning, CurrencyCode, ForeignObject, SignedDecimalText, Text
from service.schemas.tariffs import Day, Price, TariffTerms, TimeZone

MOST_CHARACTERS = 4_000_000
"""Characters of a file: some years of days."""


class TariffRequest(TariffTerms, RowInput):
    """What electricity is charged by."""

    utility: Text | MISSING = MISSING
    """Who charges by it."""


class Tariff(TariffRequest, Versioned):
    """A tariff of the catalog."""


class UrdbTariffImportRequest(RowInput):
    """A tariff by its rate in OpenEI's utility rate database (URDB)."""

    format: Literal["urdb_json"]
    urdb: ForeignObject
    """The parsed rate of version 8 or older, or the answer of the database with that rate in `items`."""
    time_zone: TimeZone
    """IANA name of the local clock; a rate does not say it."""
    holidays: Annotated[list[Day], Field(max_length=2000)] = []
    """Local days that windows treat as holidays; a rate has none."""
    effective_from: Day | MISSING = MISSING
    """First local day of the charges. Left out it is that of the rate, or the first day there is."""
    excluded_keys: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=100)
    ] = []
    """Keys of the rate to leave out of the tariff, such as those that were refused."""


class MarketTariffImportRequest(RowInput):
    """A tariff by the prices of a market: each interval's price times a factor, and an adder."""

    format: Literal["entsoe_a44_xml"]
    content: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    """A publication document of ENTSO-E's day-ahead prices (A44)."""
    time_zone: TimeZone
    """IANA name of the local clock."""
    utility: Text | MISSING = MISSING
    """Who charges by it."""
    adder: Price = "0"
    factor: Annotated[
        SignedDecimalText, Field(description="What the price of the market is multiplied by.")
    ] = "1"


TariffImportRequest = TypeAliasType(
    "TariffImportRequest",
    Annotated[UrdbTariffImportRequest | MarketTariffImportRequest, Field(discriminator="format")],
)


class ImportedTariff(TypedDict):
    """The tariff that was stored, and what became of the parts of the file."""

    tariff: Tariff
    """The tariff as stored."""
    refused: list[AnswerWarning]
    """Keys that were left out as asked, and why they could not be taken over, where that is so."""
    approximated: list[AnswerWarning]
    """Keys that were taken over under an assumption."""
    warnings: list[AnswerWarning]
    """What has no effect on a bill and a reader should know of."""


class ExportedTariff(TypedDict):
    """A tariff as a rate of OpenEI's utility rate database, version 8."""

    urdb: Annotated[dict[str, JsonValue], Field(json_schema_extra={"additionalProperties": True})]
    """The rate. Every charge in it is said exactly."""
    left_out: list[AnswerWarning]
    """What it cannot say; pointers lead into the tariff."""


class ExportQuery(BaseModel):
    """Which revision is exported."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    on: Annotated[
        str,
        Field(pattern=r"^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?$", max_length=10),
    ] = ""
    """Local day whose revision is wanted, such as 2026-11-22; the last where it is left out."""


class TariffQuery(ListQuery):
    """Filters of tariffs."""

    name: TextFilter = []
    """Names to list."""
    utility: TextFilter = []
    """Utilities to list tariffs of."""
    currency_code: Annotated[list[CurrencyCode], Field(max_length=50)] = []
    """Currencies to list tariffs in."""
    time_zone: Annotated[list[TimeZone], Field(max_length=50)] = []
    """Time zones to list tariffs of."""


EXAMPLE: RowDocument = {
    "id": "example-large-power",
    "name": "Example Utility, large power by time of use",
    "utility": "Example Utility",
    "currency_code": "USD",
    "time_zone": "America/Los_Angeles",
    "holidays": ["2026-12-25"],
    "revisions": [
        {
            "effective_from": "2026-01-01",
            "charges": [
                {"kind": "fixed", "name": "customer", "price": "1200", "per": "month"},
                {
                    "kind": "energy",
                    "name": "energy",
                    "periods": [
                        {
                            "name": "peak",
                            "tiers": [{"price": "0.16"}],
                            "windows": [
                                {
                                    "weekdays": [1, 2, 3, 4, 5],
                                    "from_time": "16:00",
                                    "to_time": "21:00",
                                    "holidays": "excluded",
                                }
                            ],
                        },
                        {
                            "name": "off_peak",
                            "tiers": [{"price": "0.09"}],
                            "windows": [
                                {"weekdays": [1, 2, 3, 4, 5], "from_time": "00:00", "to_time": "16:00"},
                                {"weekdays": [1, 2, 3, 4, 5], "from_time": "21:00", "to_time": "24:00"},
                                {"weekdays": [6, 7], "holidays": "included"},
                            ],
                        },
                    ],
                },
                {
                    "kind": "demand",
                    "name": "demand",
                    "window_minutes": 15,
                    "periods": [{"name": "all_hours", "tiers": [{"price": "21.5", "unit": "kw"}]}],
                    "billing_demand": {
                        "ratchets": [{"share_by_peak_month": [0.5] * 12, "preceding_months": 11}]
                    },
                },
                {"kind": "percentage", "name": "state tax", "percent": "2.9", "tax": True},
            ],
        }
    ],
    "sources": EXAMPLE_SOURCES,
}
"""Energy by time of use, demand with a ratchet, a customer charge and a tax."""
EXAMPLE_PATCH: RowDocument = {"holidays": ["2026-12-25", "2027-01-01"]}
