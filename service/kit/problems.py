"""Errors as RFC 9457 problem details. An error is a class: code, title and status in one place."""

import html
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

CONTENT_TYPE = "application/problem+json"


class FieldError(NamedTuple):
    """One field at fault: a JSON Pointer into the request, a stable code and what is wrong."""

    pointer: str
    code: str
    detail: str


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


class NotFound(Problem):
    """There is nothing at this address."""

    status, code, title = 404, "NOT_FOUND", "There is nothing at this address"


class MethodNotAllowed(Problem):
    """The address exists, the method does not."""

    status, code, title = 405, "METHOD_NOT_ALLOWED", "The address does not take this method"


class Conflict(Problem):
    """The resource is in a state that does not allow this."""

    status, code, title = 409, "CONFLICT", "The state of the resource does not allow this"


class PreconditionFailed(Problem):
    """The resource has changed since it was read."""

    status, code, title = 412, "PRECONDITION_FAILED", "The resource has changed since it was read"


class PayloadTooLarge(Problem):
    """The body is larger than the service takes."""

    status, code, title = 413, "PAYLOAD_TOO_LARGE", "The body is too large"


class UnsupportedMediaType(Problem):
    """The body is not JSON."""

    status, code, title = 415, "UNSUPPORTED_MEDIA_TYPE", "The body must be application/json"


class Unprocessable(Problem):
    """The body is readable, but a field of it is wrong."""

    status, code, title = 422, "UNPROCESSABLE", "A field of the request is wrong"


class PreconditionRequired(Problem):
    """The write needs an If-Match header."""

    status, code, title = 428, "PRECONDITION_REQUIRED", "The write needs an If-Match header"


class Unavailable(Problem):
    """The service cannot answer right now."""

    status, code, title = 503, "UNAVAILABLE", "The service cannot answer right now"


def all_problems() -> list[type[Problem]]:
    """Every kind of problem, by status and code."""
    found = {Problem}
    waiting = [Problem]
    while waiting:
        kinds = waiting.pop().__subclasses__()
        found.update(kinds)
        waiting.extend(kinds)
    return sorted(found, key=lambda problem: (problem.status, problem.code))


def anchor(problem: Problem | type[Problem]) -> str:
    """Address of a problem's documentation."""
    return f"/docs/problems#{problem.code.lower().replace('_', '-')}"


def problems_page() -> str:
    """Every problem as a page of HTML."""
    rows = "".join(
        f'<tr id="{anchor(problem).partition("#")[2]}"><td>{problem.status}</td>'
        f"<td><code>{problem.code}</code></td><td>{html.escape(problem.title)}.</td>"
        f"<td>{html.escape(problem.__doc__ or '')}</td></tr>"
        for problem in all_problems()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Problems</title>'
        "<h1>Problems</h1><table><tr><th>Status</th><th>Code</th><th>Title</th><th>Meaning</th></tr>"
        f"{rows}</table></html>"
    )
