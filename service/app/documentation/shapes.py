"""Shapes of the API document as a page tells them: type, bounds and description of every member."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from service.app.openapi_order import FIRST_MEMBERS

_CODE = re.compile(r"`+([^`]+)`+")
_LARGEST = 1e15
"""Bounds from here on keep numbers representable, and say nothing of the subject."""
_BOUNDS = (
    ("minimum", "from"),
    ("exclusiveMinimum", "above"),
    ("maximum", "to"),
    ("exclusiveMaximum", "below"),
    ("minItems", "at least"),
    ("maxItems", "at most"),
    ("maxLength", "length to"),
)


def mark_up(text: str) -> Markup:
    """Returns a description with its code and its paragraphs."""
    paragraphs = (str(escape(each)) for each in text.split("\n\n"))
    marked = (_CODE.sub(r"<code>\1</code>", each) for each in paragraphs)
    return Markup("").join(Markup("<p>{}</p>").format(Markup(each)) for each in marked)  # noqa: S704  # escaped


@dataclass(frozen=True)
class Member:
    """A member of an object, a parameter, or one of several alternatives."""

    name: str
    type: Markup
    is_required: bool
    text: Markup
    bounds: str


@dataclass(frozen=True)
class Shape:
    """A shape with its members, of which the few that people use first are apart."""

    text: Markup
    first: list[Member]
    more: list[Member]
    alternatives: list[Markup]
    type: Markup


def describe_type(schema: dict[str, Any]) -> Markup:
    """Returns a type in words, with a link to a shape that has a name."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="/docs/shapes/{}">{}</a>').format(name, name)
    if "const" in schema:
        return Markup("<code>{}</code>").format(schema["const"])
    if "enum" in schema:
        return _join_types(Markup("<code>{}</code>").format(value) for value in schema["enum"])
    if alternatives := schema.get("oneOf", schema.get("anyOf")):
        return _join_types(describe_type(each) for each in alternatives)
    return _describe_plain_type(schema)


def _describe_plain_type(schema: dict[str, Any]) -> Markup:
    match schema.get("type"):
        case "array":
            return Markup("list of {}").format(describe_type(schema.get("items", {})))
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return Markup("object of {} by name").format(describe_type(schema["additionalProperties"]))
        case "string":
            return Markup("{}").format(schema.get("format", "string"))
        case kind:
            return Markup("{}").format(kind or "any value")


def _join_types(types: Iterable[Markup]) -> Markup:
    return Markup(" or ").join(types)


def describe_bounds(schema: dict[str, Any]) -> str:
    """Returns bounds and default of a value in words."""
    said = [
        f"{word} {schema[name]:,}"
        for name, word in _BOUNDS
        if name in schema and abs(schema[name]) < _LARGEST
    ]
    if "default" in schema:
        said.append(f"{_write_value(schema['default'])} by default")
    return ", ".join(said)


def _write_value(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value or "empty")


def describe_member(name: str, schema: dict[str, Any], *, is_required: bool, text: str = "") -> Member:
    """Returns a member as a page shows it."""
    return Member(
        name,
        describe_type(schema),
        is_required,
        mark_up(text or schema.get("description", "")),
        describe_bounds(schema),
    )


def describe_shape(schema: dict[str, Any]) -> Shape:
    """Returns a shape as a page shows it."""
    required = schema.get("required", ())
    members = [
        describe_member(name, each, is_required=name in required)
        for name, each in schema.get("properties", {}).items()
    ]
    count = len(schema.get(FIRST_MEMBERS, members))
    alternatives = schema.get("oneOf", schema.get("anyOf", ()))
    return Shape(
        mark_up(schema.get("description", "")),
        members[:count],
        members[count:],
        [describe_type(each) for each in alternatives],
        describe_type(schema),
    )
