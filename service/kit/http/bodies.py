"""JSON bodies before they have a shape: read in time, plain, of a bounded number of values."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

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
"""How long a body may take to arrive."""
IS_WHOLE = "is_whole"
"""In the state of a request: its body has arrived, and reading it waits for nothing."""
MOST_VALUES = 100_000
"""Most members and elements of a body. One of three bytes takes some hundred when it is read."""
MOST_MEMBERS = 30_000
"""Most members of a body. Reading one takes a microsecond, in which no other thread runs."""
WRONG_SHAPE = "The body does not have the shape of this operation"
JSON = b"application/json"
_CODED = {b"content-type": (), b"content-encoding": (b"identity",), b"transfer-encoding": (b"chunked",)}
_UTF_8 = (b"charset=utf-8", b'charset="utf-8"')


def _check_media_type(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a body that does not say, once, that it is plain JSON."""
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
    """The body of a request that says it is JSON."""
    _check_media_type(scope["headers"])
    return await read_body(scope, receive)


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The body of a request, if it arrives in time."""
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
            raise BadRequest("The body ended before it was whole")
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


def check_values(raw: bytes) -> None:
    """Refuse a body of too many members and elements, by counting what begins one outside of texts."""
    if _exceeds_limits(raw) and _exceeds_value_limits(raw):
        detail = f"The body has more than {MOST_VALUES} members and elements, or {MOST_MEMBERS} members"
        raise PayloadTooLarge(detail)


def _exceeds_limits(raw: bytes) -> bool:
    return _count_marks(raw) > MOST_VALUES or raw.count(b":") > MOST_MEMBERS


def _count_marks(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


# A text that does not end is taken to the end of the body: a search that fails there would begin again at
# every quotation mark behind it.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_TEXTS_OF_A_VALUE = 2
"""A member has a name and may have a text."""


def _exceeds_value_limits(raw: bytes) -> bool:
    """Whether there are too many outside of texts; no more texts are looked at than values can have."""
    most = _TEXTS_OF_A_VALUE * (MOST_VALUES + 1)
    outside, texts = _TEXT.subn(b"", raw, count=most + 1)
    return texts > most or _exceeds_limits(outside)


class _Members(list[tuple[str, Any]]):
    """The members of an object as they came."""


_MEMBERS = json.JSONDecoder(object_pairs_hook=_Members, parse_int=str, parse_float=str, parse_constant=str)


def _find_duplicates(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Paths of members that their object has twice."""
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
    """Refuse a body, known to be JSON, in which an object has a member twice: what is stored has one reading.

    An estimate takes the last one, as most readers of JSON do; looking would cost a tenth of its time.
    """
    found = islice(_find_duplicates(_MEMBERS.decode(raw.decode())), ERROR_LIMIT)
    detail = "the object has this member twice"
    errors = [FieldError(build_pointer(path), "DUPLICATE", detail) for path in found]
    if errors:
        raise Unprocessable(WRONG_SHAPE, *errors)
