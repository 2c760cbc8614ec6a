"""Requests and answers of the tariffs of the catalog."""

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
    """The terms by which a utility charges electricity."""

    utility: Text | MISSING = MISSING
    """Company that charges by the tariff."""


class Tariff(TariffRequest, Versioned):
    """A tariff of the catalog."""


class UrdbTariffImportRequest(RowInput):
    """A tariff by its rate in OpenEI's utility rate database (URDB)."""

    format: Literal["urdb_json"]
    urdb: ForeignObject
    """The parsed rate of version 8 or older, or the answer of the database with that rate in `items`."""
    time_zone: TimeZone
    """IANA name of the local clock; a rate does not state it."""
    holidays: Annotated[list[Day], Field(max_length=2000)] = []
    """Local days that windows treat as holidays; a rate has none."""
    effective_from: Day | MISSING = MISSING
    """First local day of the charges. Defaults to the day of the rate, or to the first day there is."""
    excluded_keys: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=100)]], Field(max_length=100)
    ] = []
    """Keys of the rate to leave out of the tariff, such as the refused ones."""


class MarketTariffImportRequest(RowInput):
    """A tariff by the prices of a market: the price of each interval times a factor, and an adder."""

    format: Literal["entsoe_a44_xml"]
    content: Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
    """A publication document of ENTSO-E's day-ahead prices (A44)."""
    time_zone: TimeZone
    """IANA name of the local clock."""
    utility: Text | MISSING = MISSING
    """Company that charges by the tariff."""
    adder: Price = "0"
    factor: Annotated[SignedDecimalText, Field(description="Decimal factor of the price of the market.")] = (
        "1"
    )


TariffImportRequest = TypeAliasType(
    "TariffImportRequest",
    Annotated[UrdbTariffImportRequest | MarketTariffImportRequest, Field(discriminator="format")],
)


class ImportedTariff(TypedDict):
    """The stored tariff, and the parts of the file that were left out or approximated."""

    tariff: Tariff
    """The tariff as stored."""
    refused: list[AnswerWarning]
    """Keys that were left out on request, each with the reason if it could not be taken over."""
    approximated: list[AnswerWarning]
    """Keys that were taken over under an assumption."""
    warnings: list[AnswerWarning]
    """Remarks that have no effect on a bill."""


class ExportedTariff(TypedDict):
    """A tariff as a rate of OpenEI's utility rate database, version 8."""

    urdb: Annotated[dict[str, JsonValue], Field(json_schema_extra={"additionalProperties": True})]
    """The rate. It states every one of its charges exactly."""
    left_out: list[AnswerWarning]
    """Terms that a rate cannot express; pointers lead into the tariff."""


class ExportQuery(BaseModel):
    """The revision that is exported."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    on: Annotated[
        str,
        Field(pattern=r"^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?$", max_length=10),
    ] = ""
    """Local day whose revision is exported, such as 2026-11-22. Defaults to the last revision."""


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
