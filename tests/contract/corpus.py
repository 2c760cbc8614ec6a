"""Hostile requests to every operation, made from the document and its examples.

Each says which statuses refuse it and, where a field is at fault, how its pointer begins.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.applications import content_digest
from tests.contract.credentials import sent
from tests.contract.test_document import OPERATIONS, SCHEMAS

MARK = "correct-horse-battery-staple"
"""Part of what is sent; it never comes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One request and what refuses it."""

    name: str
    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    chunk_bytes: int = 0
    """Sent without a length, in chunks of this size, where not 0."""
    statuses: tuple[int, ...] = (422,)
    pointer: str | None = None
    echoes_path: bool = False
    address: str = "127.0.0.1"
    """Of who sends it."""


JSON = (b"content-type", b"application/json")
ANY = (b"if-match", b"*")
_DIGITS = b"9" * 30
_LONG = b'"' + MARK.encode() * 10_000 + b'"'
_NAN = (b"NaN", b"Infinity", b"-Infinity", b"1e999")
NUMBERS = (*_NAN, b"true", b'"12"', b'"NaN"', b"[]", b"{}", b"-1", b"1" + b"0" * 60, _LONG)
INTEGERS = (*NUMBERS, _DIGITS, b"-" + _DIGITS, b"0.5", b"12.0", b"1e3", b"9007199254740993")
STRINGS = (b"1", b"false", b"[]", b"{}", b'"\\u0000%b"' % MARK.encode(), b'"\\u001b"', b'"\\n"', _LONG, *_NAN)
BOOLEANS = (b"0", b"1", b'"true"', b'"on"', b"[]", *_NAN)
CONTAINERS = (b"1", b'"%b"' % MARK.encode(), b"true", *_NAN)
UNREADABLE = (
    b'"\\ud800"',
    b'"\\udfff\\ud800"',
    b"9" * 5000,
    b"[" * 900 + b"]" * 900,
    b"tru",
    b"01",
    b".5",
    b"+1",
)

RAW = {
    "nothing": b"",
    "half an object": b"{",
    "two values": b"{} {}",
    "no UTF-8": b'{"\xff": 1}',
    "UTF-16": "{}".encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "NUL": b"\x00",
    "surrogates as UTF-8": b'{"a": "\xed\xa0\x80"}',
    "a line break in a string": b'{"a": "\n"}',
    "single quotes": b"{'a': 1}",
    "a comment": b"{} // none",
    "a trailing comma": b'{"a": 1,}',
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 30_000,
    "a huge integer": b'{"a": ' + b"9" * 1_000_000 + b"}",
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
}
WHOLE = {
    "null": b"null",
    "a list": b"[]",
    "text": b'"%b"' % MARK.encode(),
    "a number": b"1",
    "NaN": b"NaN",
    "an unknown member": b'{"%b": 1}' % (b"x" * 100_000),
    "a nameless member": b'{"": 1}',
    "a NUL member": b'{"\\u0000": 1}',
    "a huge exponent": b'{"a": 1e99999999999999999999}',
    "many digits": b'{"a": 0.' + b"9" * 1_000_000 + b"}",
    "a long list of itself": b'{"requests": [' + b"{}," * 30_000 + b"{}]}",
    "ten thousand unknown members": b"{" + b",".join(b'"%x":1' % i for i in range(10_000)) + b"}",
    "eight megabytes of text": b'{"a": "' + b"x" * (8 * 2**20 - 9) + b'"}',
}
LARGE = {
    "a million brackets": b"[" * 1_000_000,
    "more than eight megabytes": b" " * (8 * 2**20 + 1),
    "a million elements": b'{"requests": [' + b"1," * 1_000_000 + b"1]}",
    "a million lists": b'{"config": [' + b"[]," * 1_000_000 + b"[]]}",
    "a million members": b"{" + b",".join(b'"%x":1' % i for i in range(800_000)) + b"}",
}
LONG_BYTES = 2**16
"""Bodies from this size on are refused by what reads the body, which many operations share."""
LONG_SHARES = 6
"""Of how many operations that read their bodies alike one is sent each long body."""
MEMBER_SHARES = 3
"""Of how many members that follow each other one is sent each wrong value."""
LIMITED = frozenset({"report_benchmark_result"})
"""Operations that take less of a body than the service does."""
MEDIA = {
    "no type": [],
    "an empty type": [(b"content-type", b"")],
    "text": [(b"content-type", b"text/plain")],
    "a form": [(b"content-type", b"application/x-www-form-urlencoded")],
    "parts": [(b"content-type", b"multipart/form-data; boundary=x")],
    "another JSON": [(b"content-type", b"application/problem+json")],
    "a longer name": [(b"content-type", b"application/jsonx")],
    "two types in one": [(b"content-type", b"application/json, text/plain")],
    "two types": [JSON, (b"content-type", b"text/plain")],
    "UTF-16": [(b"content-type", b"application/json; charset=utf-16")],
    "Latin-1": [(b"content-type", b"application/json;charset=ISO-8859-1")],
    "no text at all": [(b"content-type", b"\xff\xfe\x00")],
    "gzip": [JSON, (b"content-encoding", b"gzip")],
    "twice packed": [JSON, (b"content-encoding", b"identity"), (b"content-encoding", b"br")],
    "a packed transfer": [JSON, (b"transfer-encoding", b"gzip, chunked")],
}
QUERIES = {
    b"%b=1" % MARK.encode(): "/query/" + MARK,
    b"%00=1": "/query/\x00",
    b"%ff%fe": "/query/",
    b"=": "/query/",
    b"__proto__=1": "/query/__proto__",
    b"a/b~c=1": "/query/a~1b~0c",
    b"page_size[]=1": "/query/page_size[]",
    b"&".join(b"x%d=1" % i for i in range(1000)): "/query/x0",
}
PATHS = (
    b"%00",
    b"%ff",
    b"%ed%a0%80",
    b"..",
    b"%2e%2e",
    b"a%2fb",
    b"a/",
    b"a%0d%0aX:1",
    b"a" * 101,
    b"A",
    b"-a",
    b"%20",
)
PATHS += (
    b"%E2%80%AE",
    b"a%00",
    b"a;b",
    b"a" * 10_000,
    b"a*",
    b"'%20OR%201=1--",
    b"%25%32%65",
    b"..%5c..%5cx",
)
MATCHES = (
    b'"0"',
    b'"99999999999999999999"',
    b"W/*",
    b"1",
    b'"',
    b'""',
    b"\xff",
    b'"1',
    b"x" * 201,
    b'"-1"',
    b"**",
)
KEYS = (b"\xff", b"a b", b"a\tb", b"\xc3\xa9", b"x" * 256, b"x" * 10_000)
REVISIONS = (
    b"-1",
    b"1.0",
    b"NaN",
    b"1e3",
    b"0x1",
    b"9" * 16,
    b"9" * 5000,
    b"\xb2",
    b"1 2",
    b"",
    b"true",
    b"1_0",
)
WRONG = {
    "integer": (
        b"1_000",
        b"%201",
        b"nan",
        b"inf",
        b"",
        b"-1",
        b"1e3",
        b"1.0",
        b"9" * 30,
        b"9" * 5000,
        b"true",
        b"%D9%A5",
    ),
    "number": (
        b"1_000",
        b"%201",
        b"nan",
        b"-inf",
        b"",
        b"-1",
        b"1e999",
        b"0x1p3",
        b"1e31",
        b"%D9%A5",
        b"+1",
        b"1.",
    ),
    "string": (b"%00", b"a" * 1001, b"%ff%0a"),
    "boolean": (b"1", b"on", b"yes", b"", b"TRUE", b"True", b"%00", b"null", b"a" * 1001),
}


SIGNED = {"kg_co2e_per_kwh"}
"""Lists of numbers that may be below zero."""
MOST_ALIKE = 4
"""Items of a list that are looked at, beside the last: those of a series are alike."""
MOST_UNREADABLE = 3
"""Places of a document at which what is no JSON is tried."""
PUBLISHED = {("config",), ("urdb",)}
"""Members that hold a file of another format."""


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    return SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def places(value: Any, path: tuple = ()):
    """Every place of a document; what a published file of another format holds is its own affair."""
    yield path, value
    if path[-1:] not in PUBLISHED:
        inner = value.items() if isinstance(value, dict) else ()
        if isinstance(value, list):
            last = len(value) - 1
            inner = ((place, part) for place, part in enumerate(value) if place < MOST_ALIKE or place == last)
        for key, part in inner:
            yield from places(part, (*path, key))


HERE = b'"@here@"'


def marked(document: Any, path: tuple) -> bytes:
    """The document with a mark at a place of it."""
    if not path:
        return HERE
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = json.loads(HERE)
    return json.dumps(copy).encode()


def wrong_values(value: Any) -> tuple[bytes, ...]:
    match value:
        case bool():
            return BOOLEANS
        case int():
            return INTEGERS
        case float():
            return NUMBERS
        case str():
            return STRINGS
        case {"distribution": _}:
            return tuple(raw for raw in CONTAINERS if raw != b"1")  # a length may be a number
        case _:
            return CONTAINERS


class Operation:
    """One operation of the document."""

    def __init__(self, name: str, row: str) -> None:
        self.name = name
        self.method, path, self.document = OPERATIONS[name]
        self.path = path
        self.target = path.replace("{id}", row).encode()
        self.parameters = self.document.get("parameters", [])
        self.takes_body = "requestBody" in self.document
        self.headers = [ANY] if self._has("If-Match") else []
        if self.takes_body:
            content = self.document["requestBody"]["content"]["application/json"]
            self.example = next(iter(content["examples"].values()))["value"]
        if self._has("Content-Digest"):
            self.headers.append((b"content-digest", content_digest(sent(self.example)).encode()))

    def _has(self, header: str) -> bool:
        return any(parameter["name"] == header for parameter in self.parameters)

    def _hostile(self, name: str, **given: Any) -> Hostile:
        defaults = {"method": self.method.upper(), "target": self.target, "headers": self.headers}
        if self.takes_body:
            defaults |= {"headers": [JSON, *self.headers], "body": sent(self.example)}
        return Hostile(name=name, **{**defaults, **given})

    def all(self, number: int):
        """Every hostile request to an operation, the ``number``-th of those that read bodies alike."""
        for query, pointer in QUERIES.items():
            yield self._hostile(f"?{query[:20]!r}", target=self.target + b"?" + query, pointer=pointer)
        yield from self.looked_up()
        yield from self._headers("Idempotency-Key", KEYS, (422,))
        yield from self._headers("Catalog-Revision", REVISIONS, (400,))
        if self.takes_body:
            long = (each for each in self._bodies() if len(each.body) >= LONG_BYTES)
            # The first of them is sent all.
            yield from (
                each for place, each in enumerate(long) if not number or (place - number) % LONG_SHARES == 0
            )
            yield from (each for each in self._bodies() if len(each.body) < LONG_BYTES)
            yield from self._members(MEMBER_SHARES if number else 1)

    def looked_up(self):
        """Those whose path, query or validator a database is asked for."""
        yield from self._queries()
        yield from self._paths()
        # A shipped row is refused whatever its version; of other nouns there is none.
        yield from self._headers("If-Match", MATCHES, (404, 409, 412, 422))

    def _queries(self):
        for parameter in self.parameters:
            if parameter["in"] != "query":
                continue
            schema = resolved(parameter["schema"])
            name, pointer = parameter["name"].encode(), f"/query/{parameter['name']}"
            listed = schema.get("type") == "array"
            kind = resolved(schema["items"]) if listed else schema
            values = [name + b"=" + value for value in WRONG[kind["type"]]]
            times = 51 if listed else 2
            values.append(b"&".join([name + b"=" + str(schema.get("default") or "a").encode()] * times))
            needed = b"".join(
                other["name"].encode() + b"=a&"
                for other in self.parameters
                if other["in"] == "query" and other["required"] and other is not parameter
            )
            for query in values:
                target = self.target + b"?" + needed + query
                yield self._hostile(f"?{query[:30]!r}", target=target, pointer=pointer)

    def _paths(self):
        if "{id}" in self.path:
            for part in PATHS:
                target = self.path.encode().replace(b"{id}", part)
                yield self._hostile(
                    f"path {part[:20]!r}", target=target, statuses=(404, 405, 422), echoes_path=True
                )
        for target in (self.target + b"/", b"/" + self.target, self.target + b"%00"):
            yield self._hostile(f"path {target!r}", target=target, statuses=(404, 405, 422), echoes_path=True)

    def _headers(self, header: str, values: tuple[bytes, ...], statuses: tuple[int, ...]):
        if self._has(header):
            others = [pair for pair in self._hostile("").headers if pair != ANY]
            for value in values:
                given = [*others, (header.lower().encode(), value)]
                yield self._hostile(f"{header} {value[:20]!r}", headers=given, statuses=statuses)

    def _bodies(self):
        for name, headers in MEDIA.items():
            yield self._hostile(f"media {name}", headers=[*headers, *self.headers], statuses=(415,))
        too_large, at = ((413,), None) if self.name in LIMITED else ((), "")
        for name, body in RAW.items():
            yield self._hostile(name, body=body, statuses=(400, *too_large), pointer=at)
            yield self._hostile(
                f"{name}, in chunks", body=body, chunk_bytes=2**16, statuses=(400, *too_large)
            )
        for name, body in WHOLE.items():
            yield self._hostile(name, body=body, statuses=(422, *too_large), pointer=at)
        for name, body in LARGE.items():
            yield self._hostile(name, body=body, statuses=(413,))
            yield self._hostile(f"{name}, in chunks", body=body, chunk_bytes=2**16, statuses=(413,))

    def _members(self, shares: int):
        for number, (path, value) in enumerate(places(self.example)):
            pointer = "".join(f"/{part}" for part in path)
            here = marked(self.example, path)
            for raw in wrong_values(value)[number % shares :: shares]:
                if raw == b"-1" and path[-2:-1] and path[-2] in SIGNED:
                    continue
                body = here.replace(HERE, raw)
                yield self._hostile(f"{pointer} {raw[:20]!r}", body=body, pointer=pointer)
            # Whoever reads JSON stops there, wherever that is.
            for raw in UNREADABLE if number < MOST_UNREADABLE else ():
                body = here.replace(HERE, raw)
                yield self._hostile(f"{pointer} {raw[:20]!r}", body=body, statuses=(400,), pointer="")
            if isinstance(value, dict) and path[-1:] not in PUBLISHED:
                body = marked(self.example, (*path, "zz")).replace(HERE, b"1")
                yield self._hostile(f"{pointer}/zz", body=body, pointer=f"{pointer}/zz")
                if "409" in self.document["responses"]:
                    yield self._twice(path, value, pointer)

    def _twice(self, path: tuple, value: dict, pointer: str) -> Hostile:
        name = next(iter(value))
        inner = json.dumps({name: value[name]})[1:-1]
        twice = json.dumps(value)[:-1].encode() + b"," + inner.encode() + b"}"
        body = marked(self.example, path).replace(HERE, twice)
        return self._hostile(f"{pointer}/{name} twice", body=body, pointer=f"{pointer}/{name}")
