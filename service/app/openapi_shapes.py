"""Shapes of the API document: pydantic's, adapted for generators, with a description of every member."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from service.app.openapi_descriptions import read_answer_docstrings
from service.approvals import schemas as approvals
from service.approvals.delegations import schemas as delegations
from service.approvals.links import schemas as approval_links
from service.budgets import schemas as budgets
from service.budgets.actuals import schemas as actuals
from service.catalog.models import schemas as models
from service.catalog.tariffs import schemas as tariffs
from service.evidence.imports import schemas as evidence
from service.quotes import differences
from service.quotes import schemas as quotes
from service.schemas import answers as answer_shapes
from service.schemas import (
    base,
    bill_answers,
    cost_answers,
    disaggregated,
    energy_answers,
    events,
    fleet_plans,
    passes,
    plan_answers,
    run_answers,
    serving_answers,
    stored_plans,
    summary,
    tariff_bills,
)
from service.schemas import frontier as frontier_shapes
from service.schemas import what_if as what_if_shapes

_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def tidy_schema(node: object) -> None:
    """Adapts the output of FastAPI and pydantic to what generators read."""
    if isinstance(node, dict):
        _tidy_object(node)
        for value in node.values():
            tidy_schema(value)
    elif isinstance(node, list):
        for value in node:
            tidy_schema(value)


def _tidy_object(node: dict[str, Any]) -> None:
    if isinstance(node.get("title"), str):  # a name in title case beside the name itself
        del node["title"]
    if isinstance(node.get("default"), dict):  # no language has a literal of a class
        del node["default"]
    if "anyOf" in node and "default" in node:  # a literal of one of several types is none of the union
        node["description"] += f" Defaults to {node.pop('default')}."
    if isinstance(node.get("pattern"), str):
        node["pattern"] = relax_pattern(node["pattern"], node.get("maxLength"))
    kind = node.get("type")
    if kind in ("integer", "number"):
        node.setdefault("format", "int64" if kind == "integer" else "double")
    if kind == "integer":
        node.update({bound: int(node[bound]) for bound in _BOUNDS if bound in node})


_COUNTED = re.compile(r"(\^\(?(?:\[[^]]+\])+)\{([01]),([0-9]+)\}(\)?\??\$)")
"""A pattern of classes of characters, of which the last is counted."""


def relax_pattern(pattern: str, longest: object) -> str:
    """Returns a pattern without its count, if the longest text says the same.

    Generators of Go write patterns into tags that end at a comma, and then refuse every text.
    """
    found = _COUNTED.fullmatch(pattern)
    if found is None:
        return pattern
    beginning, least, most, end = found.groups()
    if longest != beginning.count("[") - 1 + int(most):
        return pattern
    return f"{beginning}{'*' if least == '0' else '+'}{end}"


_PLACE = "#/components/schemas/"
_CORE = ("type", "format", "enum", "anyOf", "oneOf")
_NAMES: dict[str, dict[str, Any]] = {
    "BetterDirection": {"type": "string", "enum": ["higher", "lower"]},
    "CachePrecision": {
        "type": "string",
        "enum": ["fp32", "fp16", "bf16", "fp8", "int8", "int4", "q8_0", "q5_0", "q4_0"],
    },
    "DeviceKind": {"type": "string", "enum": ["cuda", "cpu"]},
    "FloatPrecision": {"type": "string", "enum": ["fp32", "bf16", "fp16"]},
    "PlanGoal": {
        "type": "string",
        "enum": ["cheapest", "fastest", "cleanest", "fewest_devices", "pareto"],
    },
    "RowOrigin": {"type": "string", "enum": ["shipped", "tenant"]},
    "TextOrNumber": {"anyOf": [{"type": "string"}, {"type": "number", "format": "double"}]},
    "WeightPrecision": {"type": "string", "enum": ["fp32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"]},
}
"""Shapes that many members share. Without a name, generators name each after the member where it first
occurs, which can change. Choices of numbers have no name: Java has no literal for their default."""


_BODIES = {"create_quote": "QuoteRequest", "import_tariff": "TariffImportRequest"}
"""Names of request bodies that are one of several shapes, which FastAPI writes inline."""


_ITEMS = {
    "AcceleratorName": ("PlanSearch", "accelerators"),
    "BenchmarkName": ("CalibratedFigure", "benchmarks"),
    "ProviderName": ("PolicyConditions", "providers"),
}
"""Names of texts in lists, of which the singular of the list is the name of another shape."""


def use_named_shapes(document: dict[str, Any]) -> None:
    """Replaces shapes of members and bodies by references to shapes with a name."""
    schemas = document["components"]["schemas"]
    names = {name: _select_core(schema) for name, schema in schemas.items() if "enum" in schema} | _NAMES
    names |= _name_remaining(schemas, names)
    for item in document["paths"].values():
        for operation in item.values():
            if name := _BODIES.get(operation["operationId"]):
                content = operation["requestBody"]["content"]["application/json"]
                schemas[name], content["schema"] = content["schema"], {"$ref": _PLACE + name}
    for schema in schemas.values():
        for part in schema.values():
            _replace_with_references(part, names)
    _replace_with_references(document["paths"], names)
    schemas |= {name: {**shape} for name, shape in names.items() if name not in schemas}
    _name_nullable_objects(schemas)
    for name, (owner, member) in _ITEMS.items():
        array = schemas[owner]["properties"][member]
        schemas[name], array["items"] = array["items"], {"$ref": _PLACE + name}
    for name, schema in schemas.items():
        if "enum" in schema:
            schema["x-enum-varnames"] = [_name_constant(name, value) for value in schema["enum"]]


def _name_nullable_objects(schemas: dict[str, Any]) -> None:
    """Gives a name to each object that a member may have instead of null: generators number those without."""
    found: dict[str, Any] = {}
    for owner, schema in schemas.items():
        for member, value in schema.get("properties", {}).items():
            for place, shape in enumerate(value.get("anyOf", ())):
                if shape.get("type") == "object":
                    name = owner + member.title().replace("_", "")
                    found[name], value["anyOf"][place] = shape, {"$ref": _PLACE + name}
    schemas |= found


def _name_remaining(
    schemas: dict[str, Any], names: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns the shapes of members that would be numbered, each named after the member that has it first."""
    named: dict[str, dict[str, Any]] = {}
    known = [*names.values(), *_list_defaulted_numbers(schemas)]
    for owner, schema in schemas.items():
        for member, value in schema.get("properties", {}).items():
            for shape in _list_inline_shapes(value):
                if shape not in known and shape not in named.values():
                    named[owner + member.title().replace("_", "")] = shape
    return named


def _list_defaulted_numbers(schemas: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns enumerations of numbers of which a member has a default; Java has no literal of a named one."""
    return [
        _select_core(member)
        for schema in schemas.values()
        for member in schema.get("properties", {}).values()
        if "enum" in member and "default" in member and member["type"] != "string"
    ]


def _list_inline_shapes(node: object) -> Iterator[dict[str, Any]]:
    """Yields the enumerations within a member."""
    if isinstance(node, dict):
        if "enum" in node:
            yield _select_core(node)
        for key, value in node.items():
            if key not in ("default", "example"):
                yield from _list_inline_shapes(value)
    elif isinstance(node, list):
        for value in node:
            yield from _list_inline_shapes(value)


def _name_constant(owner: str, value: object) -> str:
    """Returns the name of a value that no other enumeration has: in Go all constants share one space."""
    text = str(value)
    words = f"{text[1:]}_descending" if text.startswith("-") else text
    return "_".join((re.sub(r"(?<!^)(?=[A-Z])", "_", owner), re.sub(r"\W", "_", words))).upper()


def _select_core(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in _CORE if key in schema}


def _replace_with_references(node: object, names: dict[str, dict[str, Any]]) -> None:
    if isinstance(node, dict):
        core = _select_core(node)
        for name, shape in names.items():
            if core == shape:
                for key in core:
                    del node[key]
                node["$ref"] = _PLACE + name
        for key, value in node.items():
            if key not in ("example", "examples"):
                _replace_with_references(value, names)
    elif isinstance(node, list):
        for value in node:
            _replace_with_references(value, names)


def open_answer_shapes(document: dict[str, Any]) -> None:
    """Opens the shapes of answers to additional members. A shape that is also sent stays closed."""
    schemas = document["components"]["schemas"]
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    waiting = [name for operation in operations for name in _list_references(operation.get("requestBody"))]
    sent: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in sent:
            sent.add(name)
            waiting += _list_references(schemas[name])
    for name in schemas.keys() - sent:
        if schemas[name].get("additionalProperties") is False:
            del schemas[name]["additionalProperties"]


def _list_references(node: object) -> Iterator[str]:
    """Yields the names of the shapes that a part of the document refers to."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].rpartition("/")[2]
        for key, value in node.items():
            if key not in ("example", "examples", "mapping"):
                yield from _list_references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _list_references(value)


_LONG = re.compile(r"service__[a-z_]+__([A-Z]\w+)")


def shorten_names(document: str) -> str:
    """Returns the document with short names for shapes that two rooms have."""
    return _LONG.sub(_shorten_name, document)


def _shorten_name(name: re.Match[str]) -> str:
    """Returns the name of a shape. A shape of `service.protocol` gets the prefix `Node`."""
    return f"Node{name[1]}" if name[0].startswith("service__protocol__") else name[1]


def describe_members(schemas: dict[str, Any]) -> None:
    """Describes members of answers by their docstrings."""
    parts = (base, run_answers, serving_answers, passes, disaggregated, energy_answers)
    shapes = (answer_shapes, cost_answers, bill_answers, tariff_bills, frontier_shapes, what_if_shapes)
    documented = read_answer_docstrings(
        *parts,
        *shapes,
        summary,
        plan_answers,
        fleet_plans,
        stored_plans,
        events,
        models,
        tariffs,
        evidence,
        differences,
        quotes,
        approvals,
        delegations,
        actuals,
        approval_links,
        budgets,
    )
    for name in documented.keys() & schemas.keys():
        for member, text in documented[name].items():
            schemas[name]["properties"][member]["description"] = text
