"""Refusals of the service, and calls without an answer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import httpx

if TYPE_CHECKING:
    from .types import FieldError


class IronlawError(Exception):
    """Any failure of a call."""


class ServiceUnreachable(IronlawError):
    """The service gave no answer; the cause is the error of httpx."""


class WaitTimeout(IronlawError):
    """The time of a wait ended before the state did."""

    def __init__(self, state: str) -> None:
        super().__init__(f"the state is still {state}")
        self.state = state


class InvalidSignature(IronlawError):
    """A webhook message is not signed by the secret, or is too old."""


class Problem(IronlawError):
    """A refusal of the service, as its problem details (RFC 9457) say."""

    statuses: ClassVar[frozenset[int]] = frozenset()

    def __init__(self, status: int, details: Mapping[str, Any], retry_after_seconds: float | None) -> None:
        self.status = status
        self.code: str = details.get("code", "UNKNOWN")
        """Stable name of the problem."""
        self.detail: str = details.get("detail", "")
        self.errors: list[FieldError] = details.get("errors", [])
        """Fields that are wrong, each with its JSON Pointer."""
        self.request_id: str = details.get("request_id", "")
        """Id of the request, by which the log of the service is searched."""
        self.retry_after_seconds = retry_after_seconds
        fields = (f"\n  {error['pointer']}: {error['detail']}" for error in self.errors)
        super().__init__(f"{status} {self.code}: {self.detail}{''.join(fields)}")


class InvalidRequest(Problem):
    """The request or one of its fields is wrong."""

    statuses = frozenset({400, 413, 414, 415, 422, 431})


class Unauthenticated(Problem):
    """The credentials are missing or not valid."""

    statuses = frozenset({401})


class Forbidden(Problem):
    """The credentials do not allow this."""

    statuses = frozenset({403})


class NotFound(Problem):
    """The resource does not exist."""

    statuses = frozenset({404})


class Conflict(Problem):
    """The state of the resource does not allow this."""

    statuses = frozenset({409})


class VersionConflict(Problem):
    """The resource has changed since its ETag was read."""

    statuses = frozenset({412})


class RateLimited(Problem):
    """The caller made too many requests."""

    statuses = frozenset({429})


class ServiceUnavailable(Problem):
    """The service, or a proxy before it, cannot answer right now."""

    statuses = frozenset({502, 503, 504})


def to_problem(response: httpx.Response) -> Problem:
    """Returns the problem that a response without success describes."""
    details: Any = None
    with contextlib.suppress(ValueError):
        details = response.json()
    if not isinstance(details, dict):
        details = {"code": "UNKNOWN", "detail": response.reason_phrase}
    kinds = (kind for kind in Problem.__subclasses__() if response.status_code in kind.statuses)
    return next(kinds, Problem)(response.status_code, details, read_retry_after(response))


def read_retry_after(response: httpx.Response) -> float | None:
    """Returns the seconds of `Retry-After`, if the header says a number."""
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None
