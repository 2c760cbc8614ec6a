"""Search from a request to more expensive ones, by steps within the shapes of the API document."""

import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]
MOST_BYTES = 8 * 2**20
_GROWTH = (2, 3, 10, 50)
_FACTORS = (0.1, 0.5, 2, 10, 1000)
_DEPTH = 6
_VALID, _REFUSED = 0.75, 400
"""Number of times that a step continues from an answer, and the first status that ends it."""


class ClimbRequest(NamedTuple):
    """A body, its origin and its cost."""

    name: str
    raw: bytes
    steps: int = 0
    status: int = 0
    cpu_seconds: float = 0.0
    seconds: float = 0.0


class ValuePlace(NamedTuple):
    """A value within a body, in its container, and its shape."""

    holder: Any
    key: Any
    schema: Schema


class DocumentShapes:
    """Shapes of the document, with observed values of each."""

    def __init__(self, document: Schema) -> None:
        self._schemas = document["components"]["schemas"]
        self._seen: dict[str, list[Any]] = {}

    def resolved(self, schema: Schema, value: Any = None) -> Schema:  # noqa: ANN401
        """Returns the shape without references; of several, the one that ``value`` has."""
        while True:
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].rpartition("/")[2]]
            elif branches := schema.get("oneOf") or schema.get("anyOf"):
                fitting = [each for each in branches if self._fits(self.resolved(each, value), value)]
                schema = (fitting or branches)[0]
            else:
                return schema

    def _fits(self, schema: Schema, value: Any) -> bool:  # noqa: ANN401
        kinds = {
            dict: "object",
            list: "array",
            str: "string",
            bool: "boolean",
            int: "integer",
            float: "number",
        }
        kind = kinds.get(type(value), "null")
        if schema.get("type") not in (kind, None) and (kind, schema.get("type")) != ("integer", "number"):
            return False
        if not isinstance(value, dict):
            return True
        members = schema.get("properties", {})
        constants = all(value.get(name) == each["const"] for name, each in members.items() if "const" in each)
        return constants and set(schema.get("required", ())) <= set(value) and set(value) <= set(members)

    def learn(self, schema: Schema, value: Any) -> None:  # noqa: ANN401
        """Records the values of each shape within a value."""
        for place in self.places({"": value}, "", schema):
            name = _name(place.schema)
            if name and len(self._seen.setdefault(name, [])) < 100:  # noqa: PLR2004
                self._seen[name].append(place.holder[place.key])

    def places(self, holder: Any, key: Any, schema: Schema) -> Iterator[ValuePlace]:  # noqa: ANN401
        """Yields every value within a value that has a shape; of long lists the first ones."""
        yield ValuePlace(holder, key, schema)
        value = holder[key]
        shape = self.resolved(schema, value)
        if isinstance(value, dict):
            for name, inner in shape.get("properties", {}).items():
                if name in value:
                    yield from self.places(value, name, inner)
        elif isinstance(value, list) and "items" in shape:
            for position in range(min(len(value), 3)):
                yield from self.places(value, position, shape["items"])

    def made(self, schema: Schema, chance: random.Random, depth: int = 0) -> Any:  # noqa: ANN401
        """Returns a value of a shape: an observed one, or the smallest that it allows."""
        if seen := self._seen.get(_name(schema)):
            return copy.deepcopy(chance.choice(seen))
        if branches := schema.get("oneOf") or schema.get("anyOf"):
            return self.made(chance.choice(branches), chance, depth)
        shape = self.resolved(schema)
        if shape is not schema:
            return self.made(shape, chance, depth)
        return self._least(shape, chance, depth)

    def _least(self, shape: Schema, chance: random.Random, depth: int) -> Any:  # noqa: ANN401
        if "const" in shape or "enum" in shape:
            return shape.get("const", chance.choice(shape.get("enum", [None])))
        kind = shape.get("type")
        if kind == "object":
            names = shape.get("required", ()) if depth < _DEPTH else ()
            return {name: self.made(shape["properties"][name], chance, depth + 1) for name in names}
        if kind == "array":
            return [self.made(shape["items"], chance, depth + 1) for _ in range(shape.get("minItems", 1))]
        least = {"boolean": True, "string": "a"}.get(str(kind), shape.get("minimum", 1))
        return shape.get("default", least)


def _name(schema: Schema) -> str:
    """Returns a key that distinguishes values of a shape."""
    if "$ref" in schema:
        return str(schema["$ref"])
    return str(schema.get("pattern", "") or schema.get("format", ""))


def _other_number(value: float, shape: Schema, chance: random.Random) -> Any:  # noqa: ANN401
    bounds = [shape[name] for name in ("maximum", "minimum") if name in shape]
    others = [value * factor for factor in _FACTORS] + bounds
    other = chance.choice(others)
    if shape.get("type") == "integer":
        other = int(other)
    return max(min(other, shape.get("maximum", 1e30)), shape.get("minimum", -1e30))


def _varied(value: Any, number: int) -> Any:  # noqa: ANN401
    """Returns a copy that differs in its names and some of its numbers."""
    if isinstance(value, dict):
        return {key: _varied(each, number) if _may_vary(key, each) else each for key, each in value.items()}
    if isinstance(value, int) and not isinstance(value, bool):
        return value + number
    if isinstance(value, str):
        return f"{value}{number}"
    return value


def _may_vary(key: str, value: object) -> bool:
    return key in ("id", "name", "size", "hidden_size", "inner_size", "price") or isinstance(value, list)


def _longer(value: list[Any], shape: Schema, chance: random.Random) -> list[Any]:
    most = shape.get("maxItems", 10_000)
    count = chance.choice([min(len(value) * factor, most) for factor in _GROWTH] + [most])
    vary = chance.random() < 0.6  # noqa: PLR2004
    return [
        _varied(value[i % len(value)], i) if vary and i >= len(value) else value[i % len(value)]
        for i in range(max(count, len(value)))
    ]


def _step(shapes: DocumentShapes, place: ValuePlace, chance: random.Random) -> None:
    """Replaces one value of a body with another of its shape."""
    value = place.holder[place.key]
    shape = shapes.resolved(place.schema, value)
    if chance.random() < 0.1:  # noqa: PLR2004
        place.holder[place.key] = shapes.made(place.schema, chance)
    elif isinstance(value, dict):
        _change_members(shapes, value, shape, chance)
    elif isinstance(value, list) and value:
        place.holder[place.key] = _longer(value, shape, chance)
    elif isinstance(value, bool):
        place.holder[place.key] = not value
    elif isinstance(value, int | float):
        place.holder[place.key] = _other_number(value, shape, chance)
    elif isinstance(value, str):
        place.holder[place.key] = _other_text(value, shape, chance)


def _other_text(value: str, shape: Schema, chance: random.Random) -> str:
    if "enum" in shape:
        return str(chance.choice(shape["enum"]))
    length = min(shape.get("maxLength", 10_000), 10**6)
    longer: str = (value * (length // max(1, len(value)) + 1))[:length]
    return longer


def _change_members(shapes: DocumentShapes, value: Schema, shape: Schema, chance: random.Random) -> None:
    members = shape.get("properties", {})
    missing = [name for name in members if name not in value]
    optional = [name for name in value if name not in shape.get("required", ())]
    if missing and (chance.random() < 0.8 or not optional):  # noqa: PLR2004
        name = chance.choice(missing)
        value[name] = shapes.made(members[name], chance)
    elif optional:
        del value[chance.choice(optional)]


def _stepped(shapes: DocumentShapes, schema: Schema, raw: bytes, chance: random.Random) -> bytes:
    body = {"": json.loads(raw)}
    for _ in range(chance.choice((1, 1, 2, 3))):
        _step(shapes, chance.choice(list(shapes.places(body, "", schema))), chance)
    return json.dumps(body[""]).encode()


def climb(
    shapes: DocumentShapes,
    schema: Schema,
    found: list[ClimbRequest],
    ask: Callable[[ClimbRequest], ClimbRequest],
    *,
    seconds: float,
    seed: str,
) -> list[ClimbRequest]:
    """Returns the most expensive requests and steps from them within a time, the most expensive first."""
    chance, ends = random.Random(seed), time.monotonic() + seconds  # noqa: S311
    by_cost = sorted(found, key=lambda each: -each.cpu_seconds)
    while time.monotonic() < ends:
        answered = [each for each in by_cost if each.status < _REFUSED]
        pool = answered if answered and chance.random() < _VALID else by_cost
        origin = pool[min(int(chance.expovariate(1.0)), len(pool) - 1)]
        try:
            raw = _stepped(shapes, schema, origin.raw, chance)
        except (RecursionError, ValueError):
            continue  # it was no JSON, or is none any more
        if raw == origin.raw or len(raw) > MOST_BYTES:
            continue
        asked = ask(ClimbRequest(origin.name, raw, origin.steps + 1))
        by_cost = sorted([*by_cost, asked], key=lambda each: -each.cpu_seconds)[:20]
    return by_cost
