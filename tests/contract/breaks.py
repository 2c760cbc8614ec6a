"""Breaks between two API documents, as a client of the older one would meet them.

`make contract` compares the document with that of the last release. Names of shapes are not compared: they
are not on the wire.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service.app.openapi_shapes import relax_pattern

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ROOT / "docs" / "releases"
_NARROWING = {
    "maximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
    "exclusiveMaximum": min,
    "minimum": max,
    "minLength": max,
    "minItems": max,
    "exclusiveMinimum": max,
}
"""Bounds of requests, with the one of two that allows less."""
_CHARACTERS = re.compile(r"(\[(?!\^)(?:\\.|[^\]\\])+\])")
"""A set of characters in a pattern, but none of those that are not allowed."""

ANNOUNCED = frozenset(
    {
        "Benchmark (answered).work has other alternatives",
        "ModelLayer (answered) has other alternatives",
        "POST /v1/plans:fleet answers with other statuses",
        "SimpleLayer (answered) has other alternatives",
    }
)
"""Breaks that the changelog tells of: kinds of work (decision 94) and of layers (decision 109) are added, and
a fleet that takes long is stored (decision 112)."""


def read_last_release() -> dict[str, Any]:
    """Returns the document of the newest release."""
    newest = max(RELEASES.glob("openapi-*.json.gz"), key=lambda path: _read_version(path.name))
    document: dict[str, Any] = json.loads(gzip.decompress(newest.read_bytes()))
    return document


def _get_pattern(schema: dict[str, Any]) -> str | None:
    """Returns a pattern without a count that the longest text repeats: both allow the same texts."""
    pattern = schema.get("pattern")
    return None if pattern is None else relax_pattern(pattern, schema.get("maxLength"))


def _allows_as_much(old: str | None, new: str | None) -> bool:
    """Returns true if patterns differ at most in sets of characters, to which the new one adds some."""
    if old is None or new is None:
        return old == new
    before, after = _CHARACTERS.split(old), _CHARACTERS.split(new)
    return len(before) == len(after) and all(
        one == other or (one[:1] == other[:1] == "[" and _list_characters(one) <= _list_characters(other))
        for one, other in zip(before, after, strict=True)
    )


def _list_characters(written: str) -> set[str]:
    return set(re.findall(written, "".join(map(chr, range(128)))))


def _read_version(name: str) -> list[int]:
    return [int(part) for part in name.removeprefix("openapi-").removesuffix(".json.gz").split(".")]


def find_breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Returns what a client of the old document cannot send any more, or would not read."""
    return sorted(set(_Comparison(old, new).list_breaks()))


class _Comparison:
    def __init__(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        self._old, self._new = old, new
        self._seen: set[tuple[bool, str, str]] = set()

    def list_breaks(self) -> Iterator[str]:
        for path, item in self._old["paths"].items():
            for method, operation in item.items():
                where = f"{method.upper()} {path}"
                now = self._new["paths"].get(path, {}).get(method)
                if now is None:
                    yield f"{where} is gone"
                else:
                    yield from self._compare_operation(where, operation, now)
        messages = _list_messages(self._new)
        for name, message in _list_messages(self._old).items():
            if name not in messages:
                yield f"message {name} is gone"
            else:
                yield from self._compare_content(name, message, messages[name], sent=False)

    def _compare_operation(self, where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
        if old["operationId"] != new["operationId"]:
            yield f"{where} is called {new['operationId']}"
        if not _list_scopes(new) <= _list_scopes(old):
            yield f"{where} needs other scopes"
        yield from self._compare_parameters(where, old, new)
        if "requestBody" in old and "requestBody" not in new:
            yield f"{where} takes no body"
        if "requestBody" in new:
            if new["requestBody"].get("required") and not old.get("requestBody", {}).get("required"):
                yield f"{where} requires a body"
            if "requestBody" in old:
                yield from self._compare_content(
                    f"{where} request", old["requestBody"], new["requestBody"], sent=True
                )
        yield from self._compare_responses(where, old["responses"], new["responses"])

    def _compare_responses(self, where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
        successes = {status for status in old if status.startswith("2")}
        if successes != {status for status in new if status.startswith("2")}:
            yield f"{where} answers with other statuses"
        for status in sorted(successes & new.keys()):
            place = f"{where} {status}"
            before, after = _follow(self._old, old[status]), _follow(self._new, new[status])
            yield from (f"{place} header {name} is gone" for name in _list_gone(before, after, "headers"))
            yield from self._compare_content(place, before, after, sent=False)

    def _compare_parameters(self, where: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
        before, after = _list_parameters(self._old, old), _list_parameters(self._new, new)
        for key, parameter in after.items():
            if parameter.get("required") and not before.get(key, {}).get("required"):
                yield f"{where} requires the parameter {key[1]}"
        for key, parameter in before.items():
            if key not in after:
                yield f"{where} has no parameter {key[1]}"
            else:
                place = f"{where} parameter {key[1]}"
                yield from self._compare(place, parameter["schema"], after[key]["schema"], sent=True)

    def _compare_content(
        self, where: str, old: dict[str, Any], new: dict[str, Any], *, sent: bool
    ) -> Iterator[str]:
        for kind, content in old.get("content", {}).items():
            now = new.get("content", {}).get(kind)
            if now is None:
                yield f"{where} has no {kind}"
            else:
                yield from self._compare(where, content["schema"], now["schema"], sent=sent)

    def _compare(self, where: str, old: dict[str, Any], new: dict[str, Any], *, sent: bool) -> Iterator[str]:
        """Yields the breaks between two schemas; two that refer to shapes are compared once."""
        pair = (sent, old.get("$ref", ""), new.get("$ref", ""))
        if pair[1] and pair[2]:
            if pair in self._seen:
                return
            self._seen.add(pair)
            where = pair[1].rpartition("/")[2] + (" (sent)" if sent else " (answered)")
        old, new = _follow(self._old, old), _follow(self._new, new)
        yield from self._compare_values(where, old, new, sent=sent)
        yield from self._compare_members(where, old, new, sent=sent)
        if "items" in old and "items" in new:
            yield from self._compare(f"{where}[]", old["items"], new["items"], sent=sent)
        values = [each.get("additionalProperties") for each in (old, new)]
        if all(isinstance(each, dict) for each in values):
            yield from self._compare(f"{where}.*", values[0], values[1], sent=sent)  # type: ignore[arg-type]
        yield from self._compare_alternatives(where, old, new, sent=sent)

    @staticmethod
    def _compare_values(where: str, old: dict[str, Any], new: dict[str, Any], *, sent: bool) -> Iterator[str]:
        for key in ("type", "format", "const"):
            if old.get(key) != new.get(key):
                yield f"{where} has the {key} {new.get(key)} instead of {old.get(key)}"
        before, after = set(old.get("enum", ())), set(new.get("enum", ()))
        if sent and after and not (before and before <= after):
            yield f"{where} takes only {sorted(after, key=str)}"
        if not sent:
            if before and not after:
                yield f"{where} may have any value"
            return
        if "pattern" in new and not _allows_as_much(_get_pattern(old), _get_pattern(new)):
            yield f"{where} has another pattern"
        for key, narrower in _NARROWING.items():
            if key in new and (key not in old or narrower(old[key], new[key]) != old[key]):
                yield f"{where} has the {key} {new[key]} instead of {old.get(key)}"

    def _compare_members(
        self, where: str, old: dict[str, Any], new: dict[str, Any], *, sent: bool
    ) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        required = set(old.get("required", ())), set(new.get("required", ()))
        yield from (f"{where}.{name} is gone" for name in before if name not in after)
        if sent:
            yield from (f"{where}.{name} is required" for name in required[1] - required[0])
            if old.get("additionalProperties") is not False and new.get("additionalProperties") is False:
                yield f"{where} takes no other members"
        else:
            yield from (
                f"{where}.{name} may be absent" for name in required[0] - required[1] if name in after
            )
        for name in before.keys() & after.keys():
            yield from self._compare(f"{where}.{name}", before[name], after[name], sent=sent)

    def _compare_alternatives(
        self, where: str, old: dict[str, Any], new: dict[str, Any], *, sent: bool
    ) -> Iterator[str]:
        before, after = self._list_alternatives(self._old, old), self._list_alternatives(self._new, new)
        if sent and after and (not before or before.keys() - after.keys()):
            yield f"{where} takes fewer alternatives"
        if not sent and before and (not after or after.keys() - before.keys()):
            yield f"{where} has other alternatives"
        for key in before.keys() & after.keys():
            yield from self._compare(f"{where}({key})", before[key], after[key], sent=sent)

    @staticmethod
    def _list_alternatives(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Returns alternatives by type and the constants of their members; those of one kind in order.

        Constants of members that may be absent count where no other tells alternatives apart.
        """
        found: dict[str, dict[str, Any]] = {}
        for each in schema.get("oneOf", schema.get("anyOf", ())):
            shape = _follow(document, each)
            members, required = shape.get("properties", {}).items(), shape.get("required", ())
            constants = {name: value["const"] for name, value in members if "const" in value}
            told = {name: constants[name] for name in constants if name in required} or constants
            kind = f"{shape.get('type')} {json.dumps(told, sort_keys=True)}"
            alike = sum(key.startswith(f"{kind} ") for key in found)
            found[f"{kind} {alike}"] = each
        return found


def _follow(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        place: Any = document
        for part in node["$ref"].split("/")[1:]:
            place = place[part]
        node = place
    return node


def _list_messages(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the bodies of messages by type, from the section `webhooks` or from callbacks."""
    found = {name: item["post"]["requestBody"] for name, item in document.get("webhooks", {}).items()}
    for path in document["paths"].values():
        for operation in path.values():
            for name, callback in operation.get("callbacks", {}).items():
                (item,) = callback.values()
                found[name] = item["post"]["requestBody"]
    return found


def _list_parameters(
    document: dict[str, Any], operation: dict[str, Any]
) -> dict[tuple[str, str], dict[str, Any]]:
    followed = [_follow(document, each) for each in operation.get("parameters", ())]
    return {(each["in"], each["name"].lower()): each for each in followed}


def _list_gone(old: dict[str, Any], new: dict[str, Any], part: str) -> list[str]:
    return [name for name in old.get(part, {}) if name not in new.get(part, {})]


def _list_scopes(operation: dict[str, Any]) -> set[str]:
    return {scope for way in operation.get("security", ()) for scopes in way.values() for scope in scopes}


def main() -> None:
    """Print the breaks; one that is not announced is a failure."""
    found = find_breaks(read_last_release(), json.loads((ROOT / "docs" / "openapi.json").read_text()))
    for each in found:
        print(f"{each} (announced)" if each in ANNOUNCED else each)
    print("no break" if found == [] else f"{len(found)} since the last release")
    sys.exit(bool(set(found) - ANNOUNCED))


if __name__ == "__main__":
    main()
