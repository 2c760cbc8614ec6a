"""Models that are derived from a dataclass: what becomes of its members, and the way there and back."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Literal

import pytest
from pydantic import MISSING, ValidationError

from service.schemas.base import DecimalText, Size
from service.schemas.derived import build_planned, derive_model, list_of, write_document


class Shade(StrEnum):
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of something."""

    size: int
    """Size in ``mm``."""


@dataclass(frozen=True, kw_only=True)
class Lamp(Part):
    """A lamp.

    Physics that callers do not read.
    """

    kind: ClassVar[Literal["lamp"]] = "lamp"
    price: Decimal = Decimal("1.50")
    shade: Shade = Shade.DARK
    """Shade of
    the lamp."""
    length: int | None = None
    months: frozenset[int] = frozenset(range(1, 13))
    parts: tuple[Part, ...] = ()
    built_on: date | None = None


TYPES = {int: Size, Decimal: DecimalText}
PART = derive_model("PartShape", Part, types=TYPES, members={})
LAMP = derive_model(
    "LampShape",
    Lamp,
    types=TYPES,
    members={
        "months": list_of(Size, most=12) | MISSING,
        "parts": list_of(PART, most=2),
        "built_on": str | MISSING,
    },
)


def test_members_have_bounds_defaults_and_descriptions():
    schema = LAMP.model_json_schema()
    assert schema["description"] == "A lamp."
    assert schema["required"] == ["size", "kind"]
    assert list(schema["properties"]) == [
        "size", "kind", "price", "shade", "length", "months", "parts", "built_on"
    ]  # fmt: skip
    size, shade, length = (schema["properties"][name] for name in ("size", "shade", "length"))
    assert size == PART.model_json_schema()["properties"]["size"]
    assert (size["description"], size["minimum"], size["maximum"]) == ("Size in `mm`.", 1, 2**31 - 1)
    assert (shade["enum"], shade["default"]) == (["light", "dark"], "dark")
    assert shade["description"] == "Shade of\nthe lamp."
    assert (length["minimum"], length.get("default")) == (1, None)
    assert (schema["properties"]["price"]["default"], schema["properties"]["parts"]["default"]) == (
        "1.50",
        [],
    )


def test_absent_members_keep_the_default_of_planning():
    assert build_planned(LAMP(kind="lamp", size=3)) == Lamp(size=3)


def test_there_and_back():
    lamp = Lamp(
        size=3,
        price=Decimal(2),
        shade=Shade.LIGHT,
        length=4,
        months=frozenset({3, 1}),
        parts=(Part(size=1),),
    )
    document = write_document(lamp)
    assert document == {
        "kind": "lamp",
        "size": 3,
        "price": "2",
        "shade": "light",
        "length": 4,
        "months": [1, 3],
        "parts": [{"size": 1}],
    }
    assert build_planned(LAMP.model_validate(document)) == lamp


@pytest.mark.parametrize(
    "given",
    [{"size": 0}, {"kind": "chair"}, {"length": None}, {"shade": "grey"}, {"parts": [{}]}, {"more": 1}],
)
def test_other_documents_are_refused(given):
    with pytest.raises(ValidationError):
        LAMP.model_validate({"kind": "lamp", "size": 3, **given})
