"""Errors as RFC 9457 problem details. An error is a class: code, title and status in one place."""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, NamedTuple

CONTENT_TYPE = "application/problem+json"
ERROR_LIMIT = 20
"""Most field errors that a problem lists."""

_NAME_LIMIT = 100


class FieldError(NamedTuple):
    """One invalid field: a JSON Pointer into the request, a stable code and a description of the error."""

    pointer: str
    code: str
    detail: str


def build_pointer(path: Iterable[object]) -> str:
    """Builds a JSON Pointer (RFC 6901); overlong names are cut."""
    parts = (str(part)[:_NAME_LIMIT].replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)


class Problem(Exception):  # the field's word for it
    """Base of every error that a caller can see. ``detail`` never repeats what the caller sent."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "INTERNAL_ERROR"
    title: ClassVar[str] = "Something went wrong on our side"

    def __init__(
        self,
        detail: str = "",
        *errors: FieldError,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = errors
        self.headers = dict(headers or {})


class BadRequest(Problem):
    """The request cannot be read."""

    status, code, title = 400, "BAD_REQUEST", "The request cannot be read"


class Unauthorized(Problem):
    """The operation needs credentials: an API key or a token of the configured issuer."""

    status, code, title = 401, "CREDENTIALS_REQUIRED", "The operation needs valid credentials"


class Forbidden(Problem):
    """The credentials do not grant the scope that the operation needs."""

    status, code, title = 403, "SCOPE_REQUIRED", "The credentials do not allow this"


class OriginNotAllowed(Problem):
    """A page of another site tried to write from a browser."""

    status, code, title = 403, "ORIGIN_NOT_ALLOWED", "Pages of other sites may not write here"


class NotFound(Problem):
    """No resource has this address."""

    status, code, title = 404, "NOT_FOUND", "There is nothing at this address"


class MethodNotAllowed(Problem):
    """The address exists but does not support this method."""

    status, code, title = 405, "METHOD_NOT_ALLOWED", "The address does not support this method"


class RequestTimeout(Problem):
    """The request did not arrive in time."""

    status, code, title = 408, "REQUEST_TIMEOUT", "The request did not arrive in time"


class Conflict(Problem):
    """The resource is in a state that does not allow this."""

    status, code, title = 409, "CONFLICT", "The state of the resource does not allow this"


class PreconditionFailed(Problem):
    """The resource has changed since it was read."""

    status, code, title = 412, "PRECONDITION_FAILED", "The resource has changed since it was read"


class PayloadTooLarge(Problem):
    """The body is larger than the service accepts."""

    status, code, title = 413, "PAYLOAD_TOO_LARGE", "The body is too large"


class UriTooLong(Problem):
    """The address is longer than the service accepts."""

    status, code, title = 414, "URI_TOO_LONG", "The address is too long"


class UnsupportedMediaType(Problem):
    """The body is not JSON."""

    status, code, title = 415, "UNSUPPORTED_MEDIA_TYPE", "The body must be application/json"


class HostNotAllowed(Problem):
    """The Host header names a host that the operator has not allowed."""

    status, code, title = 421, "HOST_NOT_ALLOWED", "The service does not answer for this host"


class Unprocessable(Problem):
    """The body is readable, but one of its fields is invalid."""

    status, code, title = 422, "UNPROCESSABLE", "A field of the request is invalid"


class PreconditionRequired(Problem):
    """The write needs an If-Match header."""

    status, code, title = 428, "PRECONDITION_REQUIRED", "The write needs an If-Match header"


class TooManyRequests(Problem):
    """The caller has exceeded its number of requests in this minute."""

    status, code, title = 429, "TOO_MANY_REQUESTS", "There were too many requests"


class HeadersTooLarge(Problem):
    """The headers are more or longer than the service accepts."""

    status, code, title = 431, "HEADERS_TOO_LARGE", "The headers are too many or too long"


class Unavailable(Problem):
    """The service cannot answer right now."""

    status, code, title = 503, "UNAVAILABLE", "The service cannot answer right now"


class TooBusy(Unavailable):
    """Too many requests of this tenant, or of all tenants, wait for an answer. Try again later."""

    code, title = "BUSY", "Too many requests wait for an answer"


class OutOfTime(Unavailable):
    """The answer took longer than the service allows. Try again when it is less busy, or ask for less."""

    code, title = "OUT_OF_TIME", "The answer was not ready in time"


BUSY_RETRY: Final = {"Retry-After": "1"}
"""Headers of a refusal because much is asked at once."""


class MemoryPressure(Unavailable):
    """The process is near its limit of memory. Long work and large bodies are refused until it is not."""

    code, title = "MEMORY_PRESSURE", "The service is short of memory"


class Stopping(Unavailable):
    """The process has been told to stop. Another one answers, or this one once it has started again."""

    code, title = "STOPPING", "The service is stopping"


def list_problems() -> list[type[Problem]]:
    """Returns every class of problem, by status and code."""
    found = {Problem}
    waiting = [Problem]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        found.update(kinds)
        waiting.extend(kinds)
    return sorted(found, key=lambda problem: (problem.status, problem.code))


def build_anchor(problem: Problem | type[Problem]) -> str:
    """Returns the address of a problem's documentation."""
    return f"/docs/problems#{problem.code.lower().replace('_', '-')}"
