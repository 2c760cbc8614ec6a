"""Operations of the API as pages tell them: listed by group, and each with its requests and answers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.routing import BaseRoute

from service.app.documentation.audiences import AUDIENCES, Audience, find_audience
from service.app.documentation.shapes import Member, Shape, describe_member, describe_shape, mark_up
from service.kit.http.problems import NotFound
from service.kit.http.web import JsonRoute


@dataclass(frozen=True)
class ListedOperation:
    """An operation in the list of all."""

    name: str
    method: str
    path: str
    summary: str


@dataclass(frozen=True)
class Group:
    """Operations of one tag for one audience."""

    tag: str
    text: str
    operations: list[ListedOperation]


def list_groups(routes: Sequence[BaseRoute], tags: Sequence[tuple[str, str]]) -> dict[Audience, list[Group]]:
    """Returns the groups of operations for each audience, in the order of ``tags``."""
    found: dict[tuple[Audience, str], list[ListedOperation]] = {}
    for route in routes:
        if isinstance(route, JsonRoute) and route.include_in_schema:
            tag = str(route.tags[0])
            audience = find_audience(tag, [route.permission.scope])
            method = next(iter(route.methods or ()))
            listed = ListedOperation(route.name, method, route.path_format, route.summary or route.name)
            found.setdefault((audience, tag), []).append(listed)
    return {
        audience: [Group(tag, text, found[audience, tag]) for tag, text in tags if (audience, tag) in found]
        for audience in AUDIENCES
    }


@dataclass(frozen=True)
class Example:
    """A request with a name, as JSON."""

    name: str
    summary: str
    body: str


@dataclass(frozen=True)
class Answer:
    """A successful answer of an operation."""

    status: str
    text: str
    type: str
    shape: str
    example: str


@dataclass(frozen=True)
class Operation:
    """An operation with its requests and answers."""

    name: str
    method: str
    path: str
    tag: str
    summary: str
    text: Markup
    is_open: bool
    parameters: list[Member]
    places: dict[str, str]
    """Place of each parameter: path, query or header."""
    values: dict[str, str]
    """Example of each parameter that has one."""
    body: Shape | None
    body_name: str
    examples: list[Example]
    answers: list[Answer]
    problems: list[str]


def _follow(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Returns what a part of the document refers to, or itself."""
    if "$ref" not in node:
        return node
    _, _, part, name = node["$ref"].split("/")
    found: dict[str, Any] = document["components"][part][name]
    return found


def find_shape(document: dict[str, Any], name: str) -> Shape:
    """Returns a shape by its name."""
    schema = document["components"]["schemas"].get(name)
    if schema is None:
        raise NotFound("The API has no shape of this name")
    return describe_shape(schema)


def find_operation(document: dict[str, Any], name: str) -> Operation:
    """Returns an operation by its name."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if operation["operationId"] == name:
                return _describe_operation(document, path, method, operation)
    raise NotFound("The API has no operation of this name")


def _describe_operation(
    document: dict[str, Any], path: str, method: str, operation: dict[str, Any]
) -> Operation:
    given = [_follow(document, each) for each in operation.get("parameters", ())]
    (content,) = operation.get("requestBody", {"content": {"": {}}})["content"].values()
    body_name = content["schema"]["$ref"].rpartition("/")[2] if content else ""
    return Operation(
        name=operation["operationId"],
        method=method.upper(),
        path=path,
        tag=operation["tags"][0],
        summary=operation["summary"],
        text=mark_up(operation["description"]),
        is_open=not operation["security"],
        parameters=[
            describe_member(
                each["name"],
                each["schema"],
                is_required=each.get("required", False),
                text=each["description"],
            )
            for each in given
        ],
        places={each["name"]: each["in"] for each in given},
        values={each["name"]: str(each["example"]) for each in given if "example" in each},
        body=describe_shape(document["components"]["schemas"][body_name]) if content else None,
        body_name=body_name,
        examples=[
            Example(key, each["summary"], _write_json(each["value"]))
            for key, each in content.get("examples", {}).items()
        ],
        answers=[*_list_answers(document, operation)],
        problems=[status for status in operation["responses"] if status >= "400"],
    )


def _list_answers(document: dict[str, Any], operation: dict[str, Any]) -> Iterator[Answer]:
    for status, response in operation["responses"].items():
        told = _follow(document, response)
        if status < "400":
            for kind, content in told.get("content", {"": {}}).items():
                shape = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                example = _write_json(content["example"]) if "example" in content else ""
                yield Answer(status, told["description"], kind, shape, example)


def _write_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
