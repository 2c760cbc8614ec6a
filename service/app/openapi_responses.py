"""Responses of the API document: examples, headers, and the problems that many operations share."""

from collections.abc import Mapping
from typing import Any

from service.kit.http.problems import (
    CONTENT_TYPE,
    BadRequest,
    Conflict,
    Forbidden,
    HeadersTooLarge,
    HostNotAllowed,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    PreconditionRequired,
    Problem,
    RequestTimeout,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
    UriTooLong,
)

TEXT = {"type": "string", "maxLength": 2000}
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "Description of a problem (RFC 9457). It never repeats what was sent.",
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "errors"],
    "properties": {
        "type": {**TEXT, "description": "Address of the documentation of this problem."},
        "title": {**TEXT, "description": "Short description of the problem."},
        "status": {"type": "integer", "format": "int64", "description": "HTTP status."},
        "detail": {**TEXT, "description": "Description of this occurrence."},
        "instance": {**TEXT, "description": "Path of the request."},
        "code": {**TEXT, "description": "Stable name of the problem."},
        "request_id": {**TEXT, "description": "Id of the request, also in the header Request-Id."},
        "errors": {
            "type": "array",
            "maxItems": 20,
            "items": {"$ref": "#/components/schemas/FieldError"},
            "description": "Fields that are wrong.",
        },
    },
}
_FIELD_ERROR: dict[str, Any] = {
    "type": "object",
    "description": "One field that is wrong.",
    "required": ["pointer", "code", "detail"],
    "properties": {
        "pointer": {**TEXT, "description": "JSON Pointer (RFC 6901) into the request."},
        "code": {**TEXT, "description": "Stable name of the error."},
        "detail": {**TEXT, "description": "Description of the error."},
    },
}
_PROBLEMS = {
    problem.status: problem
    for problem in (
        BadRequest,
        Unauthorized,
        Forbidden,
        NotFound,
        RequestTimeout,
        Conflict,
        PreconditionFailed,
        PayloadTooLarge,
        UriTooLong,
        UnsupportedMediaType,
        HostNotAllowed,
        Unprocessable,
        PreconditionRequired,
        TooManyRequests,
        HeadersTooLarge,
        Problem,
        Unavailable,
    )
}
_ALWAYS = (401, 403, 408, 414, 421, 422, 429, 431, 500, 503)
_WITH_BODY = (400, 413, 415)
_IF_MATCHING = (412, 428)
_SUCCESSES = {
    "200": "The requested result.",
    "201": "The created resource.",
    "202": "The request is accepted; its work continues.",
    "204": "Success without content.",
}
_UNSAID = "Successful Response"
"""FastAPI's description of an answer that has none."""
_HEADERS = {
    "Request-Id": {
        "description": "Id of the request, for the service's log.",
        "required": True,
        "schema": {"type": "string", "maxLength": 16},
    },
    "WWW-Authenticate": {
        "description": "Kind of credentials required, and the error of those sent (RFC 6750).",
        "schema": {"type": "string", "maxLength": 200},
    },
    "RateLimit-Policy": {
        "description": "Number of requests that a caller may make in a window, and its length in seconds.",
        "schema": {"type": "string", "maxLength": 200},
    },
    "RateLimit": {
        "description": "Number of requests left, and seconds until the window ends.",
        "schema": {"type": "string", "maxLength": 200},
    },
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 86_400},
    },
}
_MORE_HEADERS = {
    401: ["WWW-Authenticate"],
    403: ["WWW-Authenticate"],
    409: ["Retry-After"],
    429: ["Retry-After"],
    503: ["Retry-After"],
}


_FLEET = "/v1/plans:fleet"


def is_question(path: str) -> bool:
    """Returns true if an operation answers from a snapshot. All but that of fleets store nothing."""
    return path.startswith("/v1/estimates") or path in ("/v1/tariffs:bill", _FLEET)


def _list_statuses(path: str, method: str, operation: dict[str, Any]) -> set[int]:
    stated = {int(status) for status in operation["responses"] if status.isdigit()}
    statuses = set(_ALWAYS) | (stated & _PROBLEMS.keys())
    if "requestBody" in operation:
        statuses |= set(_WITH_BODY)
    if "{id}" in path:
        statuses.add(404)
    names = {parameter["name"] for parameter in operation.get("parameters", ())}
    if "page_token" in names or (method == "get" and "{id}" not in path):
        statuses.add(400)  # a page token of another list
    if method != "get" and (path == _FLEET or not is_question(path)):
        statuses.add(409)
    if "if-match" in names:
        statuses |= set(_IF_MATCHING)
    return statuses


def _build_problem_response(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    content = {CONTENT_TYPE: {"schema": schema}}
    return {"description": _PROBLEMS[status].title, "headers": _build_headers(status), "content": content}


def _build_headers(status: int) -> dict[str, Any]:
    names = ["Request-Id", "RateLimit-Policy", "RateLimit", *_MORE_HEADERS.get(status, [])]
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _get_problem_name(status: int) -> str:
    problem = _PROBLEMS[status]
    return "InternalError" if problem is Problem else problem.__name__


def build_common_components() -> dict[str, dict[str, Any]]:
    """Returns the components that answers of operations refer to, by their section of the document."""
    return {
        "schemas": {"Problem": _PROBLEM, "FieldError": _FIELD_ERROR},
        "headers": _HEADERS,
        "responses": {_get_problem_name(status): _build_problem_response(status) for status in _PROBLEMS},
    }


def complete_responses(
    path: str, method: str, operation: dict[str, Any], answers: Mapping[str, object]
) -> None:
    """Adds problems to the responses of an operation, and headers and examples to its successes."""
    responses = operation["responses"]
    for status in _list_statuses(path, method, operation):
        responses[str(status)] = {"$ref": f"#/components/responses/{_get_problem_name(status)}"}
    operation["responses"] = dict(sorted(responses.items()))
    for status, response in responses.items():
        if "$ref" in response:
            continue
        response["headers"] = {**response.get("headers", {}), **_build_headers(int(status))}
        if status in _SUCCESSES:
            if response["description"] == _UNSAID:
                response["description"] = _SUCCESSES[status]
            name = operation["operationId"]
            for kind, content in response.get("content", {}).items():
                if kind == "application/json":
                    content["example"] = answers.get(f"{name} {status}", answers.get(name))
