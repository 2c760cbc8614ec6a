"""What the API document says, as resources with operations, and shapes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Schema = Mapping[str, Any]

WAITED_FOR = {
    "get_approval": ("pending",),
    "get_background_job": ("waiting", "running"),
    "get_benchmark_run": ("waiting", "running"),
    "get_plan": ("running",),
    "get_policy_change": ("waiting",),
}
"""States that end by themselves, of the resources that a caller waits for."""


@dataclass(frozen=True)
class Parameter:
    """A value in the path or in the query."""

    name: str
    schema: Schema
    is_required: bool
    description: str

    @property
    def is_list(self) -> bool:
        """True if it may be given several times."""
        return bool(self.schema.get("type") == "array")


@dataclass(frozen=True)
class Operation:
    """One operation of the document."""

    name: str
    resource: str
    method: str
    path: str
    description: str
    path_parameters: tuple[Parameter, ...]
    query: tuple[Parameter, ...]
    headers: frozenset[str]
    body: Schema | None
    answers: tuple[Schema, ...]
    """Schemas of successful answers; null for one without content."""

    @property
    def verb(self) -> str:
        """The name of the operation without its resource: `list_models` is `list` of models."""
        words = self.name.split("_")
        for noun in _spellings(self.resource):
            for start in range(len(words) - len(noun) + 1):
                left = words[:start] + words[start + len(noun) :]
                if words[start : start + len(noun)] == noun and left:
                    return "_".join(left)
        return self.name

    @property
    def pending_states(self) -> tuple[str, ...]:
        """States in which a caller asks again, if it may wait."""
        return WAITED_FOR.get(self.name, ())


@dataclass(frozen=True)
class Document:
    """The document, read."""

    version: str
    shapes: Mapping[str, Schema]
    resources: Mapping[str, list[Operation]]
    messages: list[str]
    """Names of the shapes of webhook messages."""

    def page_item(self, operation: Operation) -> Schema | None:
        """Returns the schema of the items, if the operation answers with a page."""
        (first, *_) = operation.answers
        shape = self.shapes.get(to_name(first)) if "$ref" in first else None
        if shape is None or "page_token" not in {each.name for each in operation.query}:
            return None
        items: Schema = shape["properties"]["items"]["items"]
        return items


def _spellings(resource: str) -> Iterator[list[str]]:
    """The plural and the singular of a resource, as words, and what both begin with."""
    *words, last = resource.split("_")
    yield [*words, last]
    yield [*words, re.sub(r"ies$", "y", last) if last.endswith("ies") else last.removesuffix("s")]
    if words:
        yield words


def to_name(schema: Schema) -> str:
    """Returns the name of the shape that a reference is to."""
    return str(schema["$ref"]).rpartition("/")[2]


def read_document(document: Mapping[str, Any]) -> Document:
    """Reads what the clients are made of."""
    components = document["components"]
    operations = sorted(
        (
            _read_operation(method, path, operation, components)
            for path, item in document["paths"].items()
            for method, operation in item.items()
        ),
        key=lambda operation: operation.resource,
    )
    grouped = groupby(operations, key=lambda operation: operation.resource)
    return Document(
        version=document["info"]["version"],
        shapes=dict(sorted(components["schemas"].items())),
        resources={resource: list(found) for resource, found in grouped},
        messages=sorted(name for name in components["schemas"] if name.endswith("Message")),
    )


def _read_operation(method: str, path: str, operation: Schema, components: Schema) -> Operation:
    given = [_resolve(each, components) for each in operation.get("parameters", [])]
    return Operation(
        name=operation["operationId"],
        resource=operation["tags"][0].replace("-", "_"),
        method=method.upper(),
        path=path,
        description=operation.get("description") or operation["summary"],
        path_parameters=tuple(_read_parameters(given, "path")),
        query=tuple(_read_parameters(given, "query")),
        headers=frozenset(each["name"] for each in given if each["in"] == "header"),
        body=operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema"),
        answers=tuple(_read_answers(operation["responses"], components)),
    )


def _resolve(value: Schema, components: Schema) -> Schema:
    if "$ref" not in value:
        return value
    *_, kind, name = value["$ref"].split("/")
    resolved: Schema = components[kind][name]
    return resolved


def _read_parameters(given: Iterable[Schema], place: str) -> Iterator[Parameter]:
    for each in given:
        if each["in"] == place:
            is_required = each.get("required", False)
            yield Parameter(each["name"], each["schema"], is_required, each.get("description", ""))


def _read_answers(responses: Mapping[str, Schema], components: Schema) -> Iterator[Schema]:
    seen: list[Schema] = []
    for status, given in responses.items():
        content = _resolve(given, components).get("content", {})
        found = [media["schema"] for media in content.values()] or [{"type": "null"}]
        if status.startswith("2"):
            seen += [schema for schema in found if schema not in seen]
    yield from seen
