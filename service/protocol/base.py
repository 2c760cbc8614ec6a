"""Parts of every message: strict scalars with bounds, and two base classes."""

import re
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

_INT64 = {"format": "int64"}
_RFC_3339 = (
    r"2[01][0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def _validate_rfc_3339(value: object) -> object:
    if isinstance(value, datetime) or (isinstance(value, str) and re.fullmatch(_RFC_3339, value)):
        return value
    raise PydanticCustomError("datetime_parsing", "must be a time such as 2026-11-21T12:00:00Z")


Instant = Annotated[
    AwareDatetime,
    BeforeValidator(_validate_rfc_3339),
    Field(strict=False, json_schema_extra={"maxLength": 32, "pattern": f"^{_RFC_3339}$"}),
]
Int53 = Annotated[int, Field(ge=0, le=2**53 - 1, json_schema_extra=_INT64)]
"""Zero or more; above the bound readers in JavaScript lose digits."""
PositiveInt53 = Annotated[int, Field(ge=1, le=2**53 - 1, json_schema_extra=_INT64)]
FencingToken = Annotated[int, Field(ge=1, le=2**53 - 1, json_schema_extra=_INT64)]
"""A fencing token."""
NotNegative = Annotated[float, Field(ge=0, le=1e30)]
AboveZero = Annotated[float, Field(gt=0, le=1e30)]
FiniteNumber = Annotated[float, Field(ge=-1e30, le=1e30)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$", max_length=100)]
Hex128 = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", max_length=32)]
"""128 random bits."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", max_length=64)]
Uuid = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", max_length=36)]
Code = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,63}$", max_length=64)]
SingleLine = Annotated[str, Field(max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""A line of text, such as a name that a driver gives."""
MultipleLines = Annotated[str, Field(max_length=4000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]


class ProtocolMessage(BaseModel):
    """A message that a node sends and the service keeps: strict types, no unknown members, no nulls."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        defer_build=True,
    )


class ProtocolReply(BaseModel):
    """An answer of the service to a node: members that a newer service adds are ignored."""

    model_config = ConfigDict(
        extra="ignore",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        defer_build=True,
    )
