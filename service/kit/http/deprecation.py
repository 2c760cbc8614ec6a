"""Deprecation of operations: marked at the endpoint, told in the document and by headers of every answer."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from typing import NamedTuple, TypeVar

from starlette.types import Message, Send

_MEMBER = "deprecation"
_Endpoint = TypeVar("_Endpoint", bound=Callable[..., object])


class Deprecation(NamedTuple):
    """The days from which an operation is deprecated and gone, and the page that names what replaces it."""

    since: date
    sunset: date
    page: str

    def build_headers(self) -> list[tuple[bytes, bytes]]:
        """Returns `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the link to the page."""
        since, sunset = (datetime.combine(day, time(), UTC) for day in (self.since, self.sunset))
        return [
            (b"deprecation", f"@{int(since.timestamp())}".encode()),
            (b"sunset", format_datetime(sunset, usegmt=True).encode()),
            (b"link", f'<{self.page}>; rel="deprecation"; type="text/html"'.encode()),
        ]


def deprecate(since: date, *, sunset: date, page: str) -> Callable[[_Endpoint], _Endpoint]:
    """Marks an endpoint as deprecated; the decorator of its route stands above."""
    if sunset <= since:
        raise ValueError("an operation is deprecated before it is gone")

    def mark(endpoint: _Endpoint) -> _Endpoint:
        setattr(endpoint, _MEMBER, Deprecation(since, sunset, page))
        return endpoint

    return mark


def get_deprecation(endpoint: object) -> Deprecation | None:
    """Returns the deprecation of an endpoint, or None."""
    found: Deprecation | None = getattr(endpoint, _MEMBER, None)
    return found


def send_with_headers(send: Send, headers: list[tuple[bytes, bytes]]) -> Send:
    """Returns a function that sends the messages of an answer with more headers."""

    async def send_message(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return send_message
