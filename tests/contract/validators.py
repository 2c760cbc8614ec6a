"""Schemas of the document: whether a value is right by one, and a right value by one."""

import functools
import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from tests.contract.test_document import DOCUMENT, target

Schema = dict[str, Any]
_SHARED = "urn:document"
_REGISTRY = jsonschema_rs.Registry([(_SHARED, {"components": DOCUMENT["components"]})])
"""Read once for all validators."""
_TEXTS = (
    *("a", "A", "1", "1.5", "USD", "2026-11", "2026-11-30", "12:00", "2026-11-30T12:00:00Z", "Europe/Berlin"),
    *("https://example.com/", "token:erin@example.com", "0" * 16, "0" * 32, "0" * 64),
)
"""Of which one fits most patterns."""


def is_right(schema: Schema, value: Any) -> bool:
    """Whether a value is right by a schema."""
    return compile_schema(json.dumps(schema)).is_valid(value)


@functools.cache
def compile_schema(schema: str) -> jsonschema_rs.Validator:
    """The validator of a schema as JSON."""
    located = json.loads(schema.replace('"#/components', f'"{_SHARED}#/components'))
    return jsonschema_rs.validator_for(located, registry=_REGISTRY)


def build_value(schema: Schema) -> Any:
    """A small value that is right by a schema; None if none is found."""
    schema = target(schema)
    return next((value for value in _list_values(schema) if is_right(schema, value)), None)


def _list_values(schema: Schema) -> Iterator[Any]:
    yield from schema.get("examples", ())
    yield from schema.get("enum", ())
    for name in ("const", "default"):
        if name in schema:
            yield schema[name]
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield build_value(branch)
    match schema.get("type"):
        case "string":
            yield from _TEXTS
        case "boolean":
            yield True
        case "integer" | "number":
            start = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            yield from (start, start + 1, schema.get("multipleOf"), schema.get("maximum"))
        case "array":
            yield [build_value(schema.get("items", {})) for _ in range(schema.get("minItems", 0))]
        case "object":
            members = schema.get("properties", {})
            yield {name: build_value(members[name]) for name in schema.get("required", ())}
            # One of them is enough where none is required by name.
            yield from ({name: build_value(member)} for name, member in members.items())
