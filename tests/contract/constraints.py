"""Every constraint that the document puts on a request, and a value that breaks it.

Bodies are walked beside their named examples; what no example of an operation has is put there.
"""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.contract.corpus import MARK
from tests.contract.test_document import OPERATIONS, target
from tests.contract.validators import Schema, build_value, is_right

MOST_BYTES = 8000
"""Longest value that breaks a constraint here; the corpus has longer ones."""
REMOVED = object()
"""In the place of a member that is left out."""
ABSENT = object()
"""The value of a member that an example lacks."""
WRONG_TYPES = (MARK, 7, True, [], {})
Path = tuple[str | int, ...]
_HEADERS = {"Catalog-Revision": (400,), "If-Match": (404, 409, 412, 422, 428), "Content-Digest": (400, 422)}
"""Statuses that refuse a header; others are refused with 422."""


class Break(NamedTuple):
    """One constraint of a request, and what breaks it."""

    place: str
    """Of the request: body, query, path or header."""
    path: Path
    """Of the member in the body; of other places the name of the parameter."""
    rule: str
    value: Any
    """Of the member; of other places what is sent, None where nothing is."""
    statuses: tuple[int, ...] = (422,)
    inside: Path = ()
    """Where in the value of a member the constraint is."""

    @property
    def pointer(self) -> str:
        """Where a problem says that it is."""
        path = (*self.path, *self.inside)
        if self.place != "body":
            path = (self.place, *(str(part).lower() if self.place == "header" else part for part in path))
        return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)

    def is_apart(self, other: "Break") -> bool:
        """Whether the other is at another member, and neither inside the other."""
        if self.place != other.place:
            return True
        length = min(len(self.path), len(other.path))
        return self.path[:length] != other.path[:length]


class Question:
    """A right request to an operation, and the constraints that it keeps."""

    def __init__(self, number: int, operation: str, example: str = "", body: Any = ABSENT) -> None:
        self.number, self.operation, self.example = number, operation, example
        method, self.path, self.document = OPERATIONS[operation]
        self.method = method.upper()
        self._text = "" if body is ABSENT else json.dumps(body)
        self._parameters = self.document.get("parameters", [])
        self.needed = [each["name"].encode() for each in self._list("query") if each.get("required")]
        """Parameters that its query has to have."""

    def _list(self, place: str) -> list[dict[str, Any]]:
        return [each for each in self._parameters if each["in"] == place]

    def takes(self, header: str) -> bool:
        """Whether the document has a header for it."""
        return any(each["name"] == header for each in self._list("header"))

    @functools.cached_property
    def breaks(self) -> tuple[Break, ...]:
        """Every constraint, broken alone."""
        found = list(_break_parameters(self._parameters))
        if self._text:
            found.append(Break("header", ("Content-Type",), "media", b"text/plain", (415,)))
            found += _break_bodies(self.operation)[self.example]
        return tuple(found)

    def pairs(self) -> Iterator[tuple[Break, Break]]:
        """Every two constraints of different members, those that are farthest from each other first."""
        count = len(self.breaks)
        for distance in range(count // 2, 0, -1):
            # Half way round, each pair is met from both of its ends.
            for place in range(distance if 2 * distance == count else count):
                first, second = self.breaks[place], self.breaks[(place + distance) % count]
                if first.is_apart(second):
                    yield first, second

    def singles(self) -> Iterator[tuple[Break]]:
        """Every constraint, alone."""
        return ((each,) for each in self.breaks)

    def body(self, breaks: tuple[Break, ...]) -> bytes:
        """The body with members as the breaks have them."""
        if not self._text:
            return b""
        document = json.loads(self._text)
        for each in breaks:
            if each.place == "body":
                document = _put(document, each.path, each.value)
        return json.dumps(document).encode()


@functools.cache
def list_questions() -> tuple[Question, ...]:
    """A question for every named example of a body, and for every operation without a body."""
    asked = []
    for name, (_, _, operation) in OPERATIONS.items():
        media = operation.get("requestBody", {}).get("content", {}).get("application/json")
        examples = {} if media is None else media["examples"]
        asked += [(name, example, said["value"]) for example, said in examples.items()] or [(name,)]
    return tuple(Question(number, *each) for number, each in enumerate(asked))


def _put(document: Any, path: Path, value: Any) -> Any:
    """The document with a value at a place, or without the place."""
    if not path:
        return value
    inside = functools.reduce(lambda part, key: part[key], path[:-1], document)
    if value is REMOVED:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return document


@functools.cache
def _break_bodies(operation: str) -> dict[str, list[Break]]:
    """What breaks the body of an operation, by example."""
    media = OPERATIONS[operation][2]["requestBody"]["content"]["application/json"]
    examples = {name: said["value"] for name, said in media["examples"].items()}
    walk = _Walk()
    for example in examples.values():
        walk.reach(media["schema"], example)
    return {name: list(_break_body(walk, media["schema"], example)) for name, example in examples.items()}


def _break_body(walk: "_Walk", schema: Schema, example: Any) -> Iterator[Break]:
    text = json.dumps(example)
    for place in walk.find(schema, example, ()):
        for value in place.values:
            if value is not REMOVED and len(json.dumps(value)) > MOST_BYTES:
                continue
            if not is_right(schema, _put(json.loads(text), place.path, value)):
                yield Break("body", place.path, place.rule, value, inside=place.inside)
                break


class _Constraint(NamedTuple):
    """A constraint of a body."""

    path: Path
    rule: str
    values: tuple[Any, ...]
    """Of which the first that the document refuses breaks it."""
    inside: Path = ()
    """Where in the value the constraint is."""


class _Walk:
    """Finds the constraints of the bodies of one operation.

    What no example has is walked in a small value of its own, the first time that it is met.
    """

    def __init__(self) -> None:
        self._reached: set[int] = set()

    def reach(self, schema: Schema, value: Any) -> None:
        """Know the schemas of what an example has."""
        schema = _branch(schema, value)
        if value != []:
            self._reached.add(id(schema))
        if isinstance(value, dict):
            for name, inner in value.items():
                if member := _member(schema, name):
                    self.reach(member, inner)
        elif isinstance(value, list) and "items" in schema:
            for inner in value:
                self.reach(schema["items"], inner)

    def find(self, schema: Schema, value: Any, path: Path) -> Iterator[_Constraint]:
        """The constraints at a place and inside it."""
        own = _branch(schema, value)
        yield from (_Constraint(path, rule, values) for rule, values in _break_value(own, value))
        if isinstance(value, dict):
            yield from self._find_members(own, value, path)
        elif isinstance(value, list) and value and "items" in own:
            # Those of a series are alike.
            for place in sorted({0, len(value) - 1}):
                yield from self.find(own["items"], value[place], (*path, place))
        if value is ABSENT or value == [] or own is not target(schema):
            yield from self._find_others(schema, path)

    def _find_members(self, schema: Schema, value: dict[str, Any], path: Path) -> Iterator[_Constraint]:
        for name in schema.get("required", ()):
            yield _Constraint((*path, name), "required", (REMOVED,))
        if schema.get("additionalProperties") is False:
            yield _Constraint((*path, "zz"), "additionalProperties", (1,))
        if "propertyNames" in schema and value:
            yield _Constraint((*path, f"{MARK} !"), "propertyNames", (next(iter(value.values())),))
        for name in dict.fromkeys([*schema.get("properties", {}), *value]):
            if member := _member(schema, name):
                yield from self.find(member, value.get(name, ABSENT), (*path, name))

    def _find_others(self, schema: Schema, path: Path) -> Iterator[_Constraint]:
        """Constraints of what could be at a place and that no example has."""
        for branch in _list_branches(schema):
            if id(branch) in self._reached or branch.get("type") not in ("object", "array"):
                continue
            self._reached.add(id(branch))
            value = build_value(branch)
            if branch["type"] == "array" and not value:
                value = [build_value(branch.get("items", {}))]
            if not is_right(branch, value):
                continue
            text = json.dumps(value)
            for each in self.find(branch, value, ()):
                values = tuple(_put(json.loads(text), each.path, wrong) for wrong in each.values)
                yield _Constraint(path, each.rule, values, (*each.path, *each.inside))


def _member(schema: Schema, name: str) -> Schema | None:
    """The schema of a member of an object."""
    others = (*schema.get("patternProperties", {}).values(), schema.get("additionalProperties"))
    other = next((each for each in others if isinstance(each, dict)), None)
    return schema.get("properties", {}).get(name, other)


def _list_branches(schema: Schema) -> list[Schema]:
    """Every schema of a union, or the one that it is."""
    schema = target(schema)
    branches = schema.get("oneOf") or schema.get("anyOf")
    return [each for branch in branches for each in _list_branches(branch)] if branches else [schema]


def _branch(schema: Schema, value: Any) -> Schema:
    """The schema of a union that a value is of."""
    branches = _list_branches(schema)
    if len(branches) == 1 or value is ABSENT:
        return branches[0]
    return next((each for each in branches if is_right(each, value)), branches[0])


def _break_value(schema: Schema, value: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Rules of a schema that hold for the value itself."""
    if "type" in schema:
        yield "const type" if "const" in schema else "type", WRONG_TYPES
    for rule in ("enum", "const"):
        if rule in schema:
            yield rule, (MARK,)
    match schema.get("type"):
        case "string":
            yield from _break_text(schema)
        case "integer" | "number":
            yield from _break_number(schema)
        case "array" if isinstance(value, list) and value:
            if "minItems" in schema:
                yield "minItems", (value[: schema["minItems"] - 1],)
            if "maxItems" in schema:
                longer = schema["maxItems"] + 1
                yield "maxItems", ((value * (longer // len(value) + 1))[:longer],)
        case "object" if isinstance(value, dict) and value:
            yield from _break_count(schema, value)


def _break_count(schema: Schema, value: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if "minProperties" in schema:
        yield "minProperties", ({},)
    if "maxProperties" in schema:
        inner = next(iter(value.values()))
        yield "maxProperties", (dict.fromkeys(map(str, range(schema["maxProperties"] + 1)), inner),)


def _break_text(schema: Schema) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if "minLength" in schema:
        yield "minLength", ("a" * (schema["minLength"] - 1),)
    if "maxLength" in schema:
        longer = schema["maxLength"] + 1
        yield "maxLength", ((MARK * (longer // len(MARK) + 1))[:longer],)
    if schema.get("format") in ("date", "date-time"):
        yield "format", ("2026-02-30", "2026-02-30T12:00:00Z")
    if "pattern" in schema:
        yield "pattern", (f"{MARK} !", f"{MARK}\x00", "!", "\x00")


def _break_number(schema: Schema) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if schema["type"] == "integer":
        yield "integer", (schema.get("minimum", 1) + 0.5,)
    for rule, beyond in (("minimum", -1), ("exclusiveMinimum", 0), ("maximum", 1), ("exclusiveMaximum", 0)):
        if rule in schema:
            yield rule, (schema[rule] + beyond, schema[rule] * 2)
    if "multipleOf" in schema:
        yield "multipleOf", (schema["multipleOf"] * 1.5, schema["multipleOf"] + 1)


def _break_parameters(parameters: list[dict[str, Any]]) -> Iterator[Break]:
    for parameter in parameters:
        schema, name = target(parameter["schema"]), parameter["name"]
        match parameter["in"]:
            case "query":
                yield from _break_query(parameter, schema)
            case "path":
                for rule, value in (("pattern", b"-a"), ("maxLength", b"a" * (schema["maxLength"] + 1))):
                    yield Break("path", (name,), rule, value, (404, 422))
            case "header":
                yield from _break_header(parameter, schema)
    yield Break("query", ("zz",), "additionalProperties", b"zz=1")


def _break_query(parameter: dict[str, Any], schema: Schema) -> Iterator[Break]:
    name = parameter["name"]
    start = name.encode() + b"="
    item = target(schema.get("items", schema))
    if parameter.get("required"):
        yield Break("query", (name,), "required", None)
    if "items" in schema:
        given = str(item["enum"][0] if "enum" in item else "a").encode()
        yield Break("query", (name,), "maxItems", b"&".join([start + given] * (schema["maxItems"] + 1)))
    else:
        yield Break("query", (name,), "repeated", start + b"1&" + start + b"1")
    if item["type"] != "string":
        yield Break("query", (name,), "type", start + MARK.encode())
    for rule, values in _break_value(item, ABSENT):
        texts = [_format(value) for value in values if value not in WRONG_TYPES or rule == "enum"]
        text = next((text for text in texts if _is_refused(item, text)), None)
        if rule != "type" and text is not None:
            yield Break("query", (name,), rule, start + _quote(text))


def _break_header(parameter: dict[str, Any], schema: Schema) -> Iterator[Break]:
    name = parameter["name"]
    statuses = _HEADERS.get(name, (422,))
    if parameter.get("required"):
        yield Break("header", (name,), "required", None, statuses)
    for rule, values in _break_value(schema, ABSENT):
        texts = (_format(value) for value in values)
        text = next((text for text in texts if _is_refused(schema, text)), None)
        if text is not None and "\x00" not in text:
            yield Break("header", (name,), rule, text.encode(), statuses)


def _format(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _is_refused(schema: Schema, text: str) -> bool:
    """Whether a text is none that a parameter may have."""
    readings: list[Any] = [text]
    if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?|true|false", text):
        readings.append(json.loads(text))
    return not any(is_right(schema, reading) for reading in readings)


def _quote(text: str) -> bytes:
    return "".join(f"%{byte:02x}" if byte < 0x30 else chr(byte) for byte in text.encode()).encode()
