"""The API document by audience: operations of people and their programs, and of operators and nodes."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

Audience = Literal["users", "operators"]
AUDIENCES: Final[dict[Audience, str]] = {
    "users": "Operations for people who plan, and for their programs.",
    "operators": "Operations for the operator of the service, and for nodes.",
}
_TAGS: Final = frozenset(
    {"audit-events", "background-jobs", "enrolment-tokens", "leases", "nodes", "sessions", "tenants"}
)
_SCOPES: Final = frozenset({"benchmark-results:report", "leases:claim"})


def find_audience(tag: str, scopes: Iterable[str]) -> Audience:
    """Returns who calls an operation with a tag and with scopes that it needs."""
    return "operators" if tag in _TAGS or not _SCOPES.isdisjoint(scopes) else "users"


def build_audience_document(document: dict[str, Any], audience: Audience) -> dict[str, Any]:
    """Returns the document with the operations of one audience and the components that they refer to."""
    selected = _select_operations(document, audience)
    return {**selected, "info": {**document["info"], "summary": AUDIENCES[audience]}}


def _is_for(operation: dict[str, Any], audience: Audience) -> bool:
    scopes = [scope for needed in operation["security"] for each in needed.values() for scope in each]
    return find_audience(operation["tags"][0], scopes) == audience


def _select_operations(document: dict[str, Any], audience: Audience) -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for path, item in document["paths"].items():
        kept = {method: operation for method, operation in item.items() if _is_for(operation, audience)}
        if kept:
            paths[path] = kept
    tags = {tag for item in paths.values() for operation in item.values() for tag in operation["tags"]}
    return {
        **{name: value for name, value in document.items() if name != "webhooks"},
        "paths": paths,
        "tags": [tag for tag in document["tags"] if tag["name"] in tags],
        "components": _select_components(document["components"], paths),
    }


def _select_components(components: dict[str, Any], paths: dict[str, Any]) -> dict[str, Any]:
    """Returns the components that are reachable from ``paths``, and the security schemes."""
    found: set[tuple[str, str]] = set()
    waiting = [*list_references(paths)]
    while waiting:
        part, name = place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += list_references(components[part][name])
    return {
        part: {name: value for name, value in each.items() if (part, name) in found}
        if part != "securitySchemes"
        else each
        for part, each in components.items()
    }


def list_references(node: object) -> Iterator[tuple[str, str]]:
    """Yields section and name of each component that a part of the document refers to; examples have none."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            _, _, part, name = node["$ref"].split("/")
            yield part, name
        for key, value in node.items():
            if key not in ("example", "examples", "mapping"):
                yield from list_references(value)
    elif isinstance(node, list):
        for value in node:
            yield from list_references(value)
