"""JSON bodies before validation: read in time, uncompressed, with a bounded number of values."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from starlette.types import Receive, Scope

from service.kit.http.problems import (
    ERROR_LIMIT,
    BadRequest,
    FieldError,
    PayloadTooLarge,
    RequestTimeout,
    Unprocessable,
    UnsupportedMediaType,
    build_pointer,
)

BODY_SECONDS = 30.0
"""Longest time that a body may take to arrive."""
IS_WHOLE = "is_whole"
"""Key in the state of a request: set once its body has arrived, so that reading it does not wait."""
MOST_VALUES = 100_000
"""Most members and elements of a body. A value of three bytes takes some hundred bytes once it is parsed."""
MOST_MEMBERS = 30_000
"""Most members of a body. Parsing one takes a microsecond, during which no other thread runs."""
WRONG_SHAPE = "The body does not have the shape of this operation"
JSON = b"application/json"
_CODED = {b"content-type": (), b"content-encoding": (b"identity",), b"transfer-encoding": (b"chunked",)}
_UTF_8 = (b"charset=utf-8", b'charset="utf-8"')


def _check_media_type(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses a body that is not declared exactly once as plain JSON."""
    given = [header for header in headers if header[0] in _CODED]
    if given == [(b"content-type", JSON)]:
        return
    if any(value.lower() not in _CODED[name] for name, value in given if name != b"content-type"):
        raise UnsupportedMediaType("The body must not be compressed", headers={"Accept-Encoding": "identity"})
    kinds = b", ".join(value for name, value in given if name == b"content-type")
    kind, *parameters = [part.strip() for part in kinds.lower().split(b";")]
    if kind != JSON or any(part.startswith(b"charset") and part not in _UTF_8 for part in parameters):
        raise UnsupportedMediaType


async def read_json(scope: Scope, receive: Receive) -> bytes:
    """Returns the body of a request whose content type is JSON."""
    _check_media_type(scope["headers"])
    return await read_body(scope, receive)


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """Returns the body of a request, or raises :class:`RequestTimeout`."""
    if scope["state"].get(IS_WHOLE):
        return await _collect_body(receive)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await _collect_body(receive)
    except TimeoutError:
        raise RequestTimeout(headers={"Connection": "close"}) from None


async def _collect_body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("The connection closed before the whole body arrived")
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


class BodyLimits(NamedTuple):
    """Most of a body that an operation takes.

    An error of a required member that is missing holds a copy of the whole object: twenty of them are dear.
    """

    values: int = MOST_VALUES
    """Most members and elements."""
    size_bytes: int | None = None
    """Most bytes, where that is less than the service takes."""


def check_limits(raw: bytes, limits: BodyLimits) -> None:
    """Refuses a body that is too large, or has too many members and elements.

    These are counted by the marks outside of strings.
    """
    if limits.size_bytes is not None and len(raw) > limits.size_bytes:
        raise PayloadTooLarge(f"The body has more than {limits.size_bytes} bytes")
    if _exceeds_limits(raw, limits.values) and _exceeds_value_limits(raw, limits.values):
        detail = f"The body has more than {limits.values} members and elements, or {MOST_MEMBERS} members"
        raise PayloadTooLarge(detail)


def _exceeds_limits(raw: bytes, most_values: int) -> bool:
    return _count_marks(raw) > most_values or raw.count(b":") > MOST_MEMBERS


def _count_marks(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


# A string that is not closed extends to the end of the body: a search that failed there would begin again at
# every quotation mark behind it.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_TEXTS_OF_A_VALUE = 2
"""Strings of one value: a member has a name and may have a string."""


def _exceeds_value_limits(raw: bytes, most_values: int) -> bool:
    """Returns true if the marks outside of strings exceed the limits.

    No more strings are scanned than values can have.
    """
    most_texts = _TEXTS_OF_A_VALUE * (most_values + 1)
    outside, texts = _TEXT.subn(b"", raw, count=most_texts + 1)
    return texts > most_texts or _exceeds_limits(outside, most_values)


class _Members(list[tuple[str, Any]]):
    """The members of an object in their original order, with duplicates."""


_MEMBERS = json.JSONDecoder(object_pairs_hook=_Members, parse_int=str, parse_float=str, parse_constant=str)


def _find_duplicates(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Yields the paths of members that occur twice in their object."""
    if isinstance(value, _Members):
        seen: set[str] = set()
        for name, inner in value:
            if name in seen:
                yield (*path, name)
            seen.add(name)
            yield from _find_duplicates(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _find_duplicates(inner, (*path, position))


def check_duplicates(raw: bytes) -> None:
    """Refuses a JSON body in which an object has a member twice, so that a stored document has one reading.

    Estimates skip this check and take the last member, as most JSON parsers do: it costs a tenth of their
    time.
    """
    found = islice(_find_duplicates(_MEMBERS.decode(raw.decode())), ERROR_LIMIT)
    detail = "the object has this member more than once"
    errors = [FieldError(build_pointer(path), "DUPLICATE", detail) for path in found]
    if errors:
        raise Unprocessable(WRONG_SHAPE, *errors)
