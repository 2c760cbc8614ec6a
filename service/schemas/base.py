"""Building blocks of every shape of the API: strict scalars, input models and parts of answers."""

import re
from itertools import chain
from typing import Annotated, Literal, NotRequired

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from service.planning.quantity import EvidenceBasis

LARGEST_INTEGER = 2**53 - 1
"""Largest integer that JavaScript reads without losing digits."""

_INT64 = {"format": "int64"}

PositiveInteger = Annotated[int, Field(ge=1, le=LARGEST_INTEGER, json_schema_extra=_INT64)]
Size = Annotated[int, Field(ge=1, le=2**31 - 1, json_schema_extra=_INT64)]
Degree = Annotated[int, Field(ge=1, le=1_000_000, json_schema_extra=_INT64)]
Positive = Annotated[float, Field(gt=0, le=1e30)]
NotNegative = Annotated[float, Field(ge=0, le=1e30)]
Share = Annotated[float, Field(gt=0, le=1)]
Factor = Annotated[float, Field(gt=0, le=1e12)]
"""Factor that a figure is multiplied by, to see the effect of a change."""
ResourceId = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$", max_length=100, examples=["example-1"])
]
CatalogName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._/+():-]{0,199}$",
        max_length=200,
        description="The id of a catalog row, or one of its aliases. Case does not matter.",
    ),
]


def _check_rfc_3339(text: object) -> object:
    if not isinstance(text, str) or not re.fullmatch(RFC_3339, text):
        raise PydanticCustomError("datetime_parsing", "must be a time such as 2026-11-21T12:00:00Z")
    return text


RFC_3339 = (
    r"2[01][0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
"""Times of the years 2000 to 2199. In no time zone do they leave the range of a clock."""
Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_check_rfc_3339),
    Field(
        strict=False,
        examples=["2026-11-21T12:00:00Z"],
        json_schema_extra={"maxLength": 32, "pattern": f"^{RFC_3339}$"},
    ),
]
"""A time that callers send, with its zone."""
DEEPEST = 100
"""Most levels of an object in a foreign format. Parsers end at 200, and the object is nested in what is
stored or shown."""


def _check_depth(given: dict[str, JsonValue]) -> dict[str, JsonValue]:
    level: list[dict[str, JsonValue] | list[JsonValue]] = [given]
    for _ in range(DEEPEST):
        held = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [each for each in held if isinstance(each, dict | list)]
        if not level:
            return given
    raise PydanticCustomError("too_deep", "must be nested no deeper than 100 levels")


ForeignObject = Annotated[
    dict[str, JsonValue],
    Field(min_length=1, max_length=500, json_schema_extra={"additionalProperties": True}),
    AfterValidator(_check_depth),
]
"""A parsed JSON object in a format of another program."""
Text = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
DecimalText = Annotated[str, Field(pattern=r"^[0-9]{1,15}(\.[0-9]{1,9})?$", max_length=25, examples=["2.49"])]
SignedDecimalText = Annotated[
    str, Field(pattern=r"^-?[0-9]{1,15}(\.[0-9]{1,18})?$", max_length=36, examples=["-2.49"])
]
"""Money that may be a credit."""
CurrencyCode = Annotated[str, Field(pattern=r"^[A-Z]{3}$", max_length=3, examples=["USD"])]
Integer = Annotated[int, Field(json_schema_extra=_INT64)]
"""An integer of an answer."""


class StrictModel(BaseModel):
    """Base of the shapes that callers send: strict types, no unknown members, no NaN, no nulls."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        defer_build=True,
    )


class MoneyInput(StrictModel):
    """An amount of one currency."""

    amount: DecimalText
    """Decimal number as text, such as "3" or "2.49"."""
    currency_code: CurrencyCode
    """ISO 4217 code."""


class MoneyAmount(TypedDict):
    """An amount of one currency."""

    amount: str
    """Decimal number as text."""
    currency_code: str
    """ISO 4217 code."""


class MoneyQuantity(TypedDict):
    """A headline amount with its 80% interval and the evidence behind it."""

    amount: str
    """Decimal number as text."""
    low: str
    """Lower end of the interval."""
    high: str
    """Upper end of the interval."""
    currency_code: str
    """ISO 4217 code."""
    basis: EvidenceBasis
    """Weakest evidence that the amount rests on."""


class QuantityEstimate(TypedDict):
    """A number with its 80% interval and the evidence behind it."""

    value: float
    """Estimate, in the unit that ends the name of the member."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    basis: EvidenceBasis
    """Weakest evidence that the number rests on."""


class EstimateDefault(TypedDict):
    """A member that the question leaves open, and the value that the answer holds for."""

    pointer: str
    """JSON Pointer of the member in the question."""
    value: str
    """Value that the answer holds for."""
    rule: Literal["published", "reference_system", "framework", "engine", "search", "service"]
    """Rule that fills the member: the publication of the model, the reference system of the accelerator, the
    default of the framework or engine, the search, or the default of the service."""
    detail: str
    """Reason for the value."""


class EstimateGap(TypedDict):
    """A figure that is absent, and why. It is unknown, not zero."""

    pointer: str
    """JSON Pointer of the absent member of the answer."""
    code: str
    """Stable name of the reason."""
    detail: str
    """Description of what is missing."""


class AnswerWarning(TypedDict):
    """A remark about the question that the reader of the answer should know."""

    code: str
    """Stable name of the warning."""
    pointer: str
    """JSON Pointer into the request."""
    detail: str
    """Text of the remark."""


class EstimateAdvice(TypedDict):
    """A change worth trying, and its effect."""

    code: str
    """Stable name of the change."""
    detail: str
    """Description of the change and its effect."""
    gain_share: NotRequired[float]
    """Share of the time of a token that the change saves, estimated anew with it."""


SourceKind = Literal[
    "model",
    "accelerator",
    "link",
    "offer",
    "tariff",
    "grid",
    "site",
    "exchange_rate",
    "token_price",
    "hardware_price",
    "reference_curve",
]


class EstimateSource(TypedDict):
    """A catalog row or a reference curve that the answer rests on."""

    pointer: str
    """JSON Pointer of the member of the request that it stands for."""
    kind: SourceKind
    """Kind of the row."""
    id: str
    """Id of the row or curve."""
    version: Integer
    """Version of the row or curve."""
    origin: Literal["shipped", "tenant"]
    """`shipped` for a row that ships with the service, `tenant` for a row of the tenant."""
    shadows_shipped_version: NotRequired[Integer]
    """Version of the shipped row of the same id that the tenant's row replaces."""
    citation: str
    """Citation of the source of its values."""


class EstimateEvidence(TypedDict):
    """Versions, calibrations and catalog rows that reproduce an answer."""

    catalog_revision: Integer
    """Catalog revision that was read."""
    method_version: str
    """Version of the formulas."""
    input_digest: str
    """SHA-256 of the question with its defaults filled in."""
    calibration_ids: list[str]
    """Calibrations that entered the answer."""
    sources: list[EstimateSource]
    """Catalog rows and reference curves that entered the answer."""


class CostLine(TypedDict):
    """One charge: quantity times unit price, rounded once."""

    name: str
    """Name of what is charged."""
    quantity: float
    """Number of units."""
    unit: str
    """Unit of the quantity."""
    unit_price: NotRequired[MoneyAmount]
    """Price of one unit. Absent if no price is known."""
    amount: NotRequired[MoneyAmount]
    """Quantity times unit price."""
    source: str
    """Source of the price."""
    category: NotRequired[Literal["usage", "purchase", "tax", "credit"]]
    """Category of the charge (ChargeCategory of FOCUS). Usage if absent."""
