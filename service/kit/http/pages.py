"""Keyset pages: an opaque, signed token holds the key of the row after which the next page begins."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from service.kit.http.problems import BadRequest, FieldError

PAGE_SIZE_LIMIT = 500
_SIGNATURE_BYTES = 16

NextPageToken = Annotated[
    str | None,
    Field(max_length=1000, description="Value of `page_token` for the next page; null on the last page."),
]


WHOLE = r"-?(0|[1-9][0-9]{0,30})"
NUMBER = WHOLE + r"(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?"


def build_number_validator(pattern: str) -> BeforeValidator:
    """Builds a validator that refuses texts that Python reads as a number and JSON does not.

    Examples are 1_000, a leading space and Arabic digits.
    """
    whole = re.compile(pattern)

    def check_text(text: object) -> object:
        if isinstance(text, str) and not whole.fullmatch(text):
            raise PydanticCustomError("number_parsing", "must be a number as JSON writes it")
        return text

    return BeforeValidator(check_text)


class PageQuery(BaseModel):
    """Query parameters of a list."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    page_size: Annotated[
        int, Field(ge=1, le=2**31 - 1, json_schema_extra={"format": "int64"}), build_number_validator(WHOLE)
    ] = 50
    """Rows per page; at most 500 are returned."""
    page_token: Annotated[str, Field(max_length=1000, pattern=r"^[A-Za-z0-9_-]*$")] = ""
    """`next_page_token` of the previous page, with the same filters and order."""

    @property
    def limit(self) -> int:
        """Most rows that the page returns."""
        return min(self.page_size, PAGE_SIZE_LIMIT)


Cursor = TypeVar("Cursor")


@dataclass(frozen=True, slots=True)
class Order(Generic[Cursor]):
    """The members that order a list. ``key`` parses their values; ``first`` precedes every row."""

    members: tuple[str, ...]
    key: Callable[..., Cursor]
    first: Cursor


def newest_first(time: str) -> Order[tuple[datetime, str] | None]:
    """Returns the order by the member ``time``, latest first, and by id where times are equal."""
    return Order((time, "id"), lambda at, row_id: (datetime.fromisoformat(at), row_id), None)


BY_ID = Order(("id",), str, "")
NEWEST_FIRST = newest_first("created_at")


@dataclass(frozen=True, slots=True)
class Page(Generic[Cursor]):
    """A page to be filled with the rows behind the key ``after``."""

    after: Cursor
    limit: int
    """Rows to query: one more than the page shows, which tells if another page follows."""
    to_response: Callable[[Sequence[Mapping[str, Any]]], dict[str, Any]]
    """Builds the page from the rows that were found."""


class PageTokens:
    """Signs and reads page tokens with one secret. A token is valid only for its own filters."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _compute_signature(self, payload: bytes) -> bytes:
        return hmac.new(self._secret, payload, hashlib.sha256).digest()[:_SIGNATURE_BYTES]

    def encode(self, key: list[str], filters: str) -> str:
        """Returns a token for the page behind ``key``."""
        digest = hashlib.sha256(filters.encode()).hexdigest()[:16]
        payload = json.dumps([digest, *key], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._compute_signature(payload) + payload).decode().rstrip("=")

    def build_page(
        self, rows: Sequence[Mapping[str, Any]], limit: int, filters: str, *members: str
    ) -> dict[str, Any]:
        """Returns the first ``limit`` rows and, if there are more, a token of the last row's ``members``."""
        token = None
        if len(rows) > limit:
            token = self.encode([_as_text(rows[limit - 1][member]) for member in members], filters)
        return {"items": rows[:limit], "next_page_token": token}

    def begin(self, query: PageQuery, order: Order[Cursor], *filters: object) -> Page[Cursor]:
        """Returns the page that ``query`` asks for; ``filters`` name the list and whatever selects rows."""
        canonical = json.dumps(filters)
        after = order.key(*self.decode(query.page_token, canonical)) if query.page_token else order.first

        def to_response(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
            return self.build_page(rows, query.limit, canonical, *order.members)

        return Page(after, query.limit + 1, to_response)

    def decode(self, token: str, filters: str) -> list[str]:
        """Returns the key behind which the page begins; refuses a token of other filters or a forged one."""
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except ValueError:
            raise _build_token_refusal() from None
        signature, payload = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._compute_signature(payload)):
            raise _build_token_refusal()
        digest, *key = json.loads(payload)
        if digest != hashlib.sha256(filters.encode()).hexdigest()[:16]:
            raise _build_token_refusal()
        return [str(part) for part in key]


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _build_token_refusal() -> BadRequest:
    error = FieldError("/query/page_token", "PAGE_TOKEN", "the token is of another list or other filters")
    return BadRequest("The page token does not belong to this list", error)
