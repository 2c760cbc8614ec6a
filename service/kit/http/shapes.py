"""The shape of a body, as its JSON schema tells it: members that are allowed at a place, and an example."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from pydantic import TypeAdapter

_Node = Mapping[str, Any]

_DEEPEST_EXAMPLE = 4
_LONGEST_EXAMPLE = 300
_EXAMPLES_BY_FORMAT = {"date-time": "2026-11-21T12:00:00Z", "date": "2026-11-21"}


class _NoExample(Exception):
    """The schema has no example of a part that is required."""


class BodyShape:
    """The JSON schema of a body, generated on first use."""

    def __init__(self, adapter: TypeAdapter[Any]) -> None:
        self._adapter = adapter

    @cached_property
    def _schema(self) -> _Node:
        return self._adapter.json_schema()

    def _list_branches(self, node: _Node) -> Iterator[_Node]:
        """Yields the shapes that a value may have, without references and unions."""
        if "$ref" in node:
            named = self._schema["$defs"][node["$ref"].rpartition("/")[2]]
            yield from self._list_branches({**named, **{k: v for k, v in node.items() if k != "$ref"}})
        elif branches := node.get("anyOf") or node.get("oneOf"):
            for branch in branches:
                yield from self._list_branches(branch)
        else:
            yield node

    def _step(self, node: _Node, part: object) -> Iterator[_Node]:
        if isinstance(part, int):
            yield from [node["items"]] if "items" in node else []
        elif part in node.get("properties", {}):
            yield node["properties"][part]
        elif isinstance(node.get("additionalProperties"), Mapping):
            yield node["additionalProperties"]

    def find(self, location: Sequence[object]) -> list[_Node]:
        """Returns the shapes of the values at the location of an error, which may name branches of unions."""
        nodes = list(self._list_branches(self._schema))
        for part in location:
            # A branch is named by its tag, which may also be the name of a member.
            tagged = [node for node in nodes if _has_tag(node, part)] if len(nodes) > 1 else []
            inner = [] if tagged else [step for node in nodes for step in self._step(node, part)]
            nodes = tagged or [branch for node in inner for branch in self._list_branches(node)] or nodes
        return nodes

    def list_members(self, location: Sequence[object]) -> list[str]:
        """Returns the names of the members of the object at a location."""
        nodes = self.find(location)
        return list(dict.fromkeys(name for node in nodes for name in node.get("properties", {})))

    def list_values(self, location: Sequence[object], member: str) -> list[str]:
        """Returns the values of a member that tells the branches of a union apart."""
        found = [
            node["properties"][member] for node in self.find(location) if member in node.get("properties", {})
        ]
        return [str(value) for tag in found for value in _list_constants(tag)]

    def format_example(self, location: Sequence[object], *, is_object: bool = False) -> str:
        """Returns an example of the value at a location as JSON; empty if the schema has no short one."""
        nodes = self.find(location)
        chosen = [node for node in nodes if not is_object or node.get("type") == "object"]
        try:
            text = json.dumps(self._build_example(chosen[0], 0)) if chosen else ""
        except _NoExample:
            return ""
        return text if len(text) <= _LONGEST_EXAMPLE else ""

    def _build_example(self, node: _Node, depth: int) -> Any:  # noqa: ANN401
        node = next(self._list_branches(node))
        if node.get("examples"):
            return node["examples"][0]
        if constants := _list_constants(node):
            return constants[0]
        kind = node.get("type")
        if kind == "object" and depth < _DEEPEST_EXAMPLE:
            return self._build_object(node, depth)
        if kind == "array" and node.get("minItems", 0) <= 1:
            return [self._build_example(node["items"], depth + 1)]
        return _build_scalar(node)

    def _build_object(self, node: _Node, depth: int) -> dict[str, Any]:
        members = node.get("properties", {})
        shown = node.get("required") or list(members)[:1]
        example = {name: self._build_example(members[name], depth + 1) for name in shown}
        free = node.get("additionalProperties")
        if isinstance(free, Mapping):
            names = next(self._list_branches(node.get("propertyNames", {})), {})
            name = next(iter(_list_constants(names)), "name")
            return {name: self._build_example(free, depth + 1)}
        if not example:
            raise _NoExample
        return example


def _list_constants(node: _Node) -> list[Any]:
    return [node["const"]] if "const" in node else list(node.get("enum", []))


def _has_tag(node: _Node, tag: object) -> bool:
    """Returns true if a member of the object may only have the value ``tag``."""
    return any(tag in _list_constants(member) for member in node.get("properties", {}).values())


def _build_scalar(node: _Node) -> Any:  # noqa: ANN401
    match node.get("type"):
        case "integer":
            return max(1, node.get("minimum", 1))
        case "number":
            return _build_number(node)
        case "boolean":
            return True
        case "string" if "pattern" not in node or re.search(node["pattern"], "text"):
            return _EXAMPLES_BY_FORMAT.get(node.get("format", ""), "text")
    raise _NoExample


def _build_number(node: _Node) -> float:
    least = node.get("minimum", node.get("exclusiveMinimum", 0.0))
    most = node.get("maximum", node.get("exclusiveMaximum", least + 2.0))
    return 1.0 if least < 1.0 < most else float(min(most, least + 0.5 * (most - least)))


@lru_cache(maxsize=256)
def load_shape(of: TypeAdapter[Any] | type[Any]) -> BodyShape:
    """Returns the shape of the bodies that an adapter or a model validates."""
    return BodyShape(of if isinstance(of, TypeAdapter) else TypeAdapter(of))


def list_some(names: Iterable[str], most: int) -> str:
    """Returns the first names as a list with commas, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
