"""The OpenAPI document: FastAPI's, with one error shape, exact integers and examples."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service import __version__
from service.estimates.endpoints import REVISION_PARAMETER
from service.examples import EXAMPLES
from service.kit.problems import (
    CONTENT_TYPE,
    BadRequest,
    Conflict,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    PreconditionRequired,
    Problem,
    Unavailable,
    Unprocessable,
    UnsupportedMediaType,
)

_TEXT = {"type": "string", "maxLength": 2000}
PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "What went wrong (RFC 9457). It never repeats what was sent.",
    "required": ["type", "title", "status", "detail", "instance", "code", "request_id", "errors"],
    "properties": {
        "type": {**_TEXT, "description": "Address of the documentation of this problem."},
        "title": {**_TEXT, "description": "The problem in a few words."},
        "status": {"type": "integer", "format": "int64", "description": "HTTP status."},
        "detail": {**_TEXT, "description": "What went wrong this time."},
        "instance": {**_TEXT, "description": "Path of the request."},
        "code": {**_TEXT, "description": "Stable name of the problem."},
        "request_id": {**_TEXT, "description": "Id of the request, also in the header Request-Id."},
        "errors": {
            "type": "array",
            "maxItems": 20,
            "items": {"$ref": "#/components/schemas/FieldError"},
            "description": "Fields at fault.",
        },
    },
}
FIELD_ERROR_SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "FieldError",
    "description": "One field at fault.",
    "required": ["pointer", "code", "detail"],
    "properties": {
        "pointer": {**_TEXT, "description": "JSON Pointer (RFC 6901) into the request."},
        "code": {**_TEXT, "description": "Stable name of the fault."},
        "detail": {**_TEXT, "description": "What is wrong with the field."},
    },
}
_TAGS = (
    ("estimates", "The four questions: does it fit, how fast, what does it cost, what is the utility bill."),
    ("models", "Architectures with a name."),
    ("accelerators", "Accelerators as sold."),
    ("links", "Links between accelerators and between nodes."),
    ("offers", "Dated prices."),
    ("grids", "Carbon intensity and water of electricity grids."),
    ("sites", "Buildings."),
)
_PROBLEMS = {
    problem.status: problem
    for problem in (
        BadRequest,
        NotFound,
        Conflict,
        PreconditionFailed,
        PayloadTooLarge,
        UnsupportedMediaType,
        Unprocessable,
        PreconditionRequired,
        Problem,
        Unavailable,
    )
}
_ALWAYS = (422, 500)
_WITH_BODY = (400, 413, 415)
_BY_METHOD = {"post": (409,), "patch": (404, 409, 412, 428), "delete": (404, 409, 412, 428), "get": ()}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def _statuses(path: str, method: str, operation: dict[str, Any]) -> set[int]:
    statuses = set(_ALWAYS)
    if "requestBody" in operation:
        statuses |= set(_WITH_BODY)
    if path.startswith("/v1/estimates"):
        return statuses | {400, 503}
    if "{id}" in path:
        statuses.add(404)
    elif method == "get":
        statuses.add(400)  # a page token of another list
    return statuses | set(_BY_METHOD[method])


def _problem_response(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": _PROBLEMS[status].title, "content": {CONTENT_TYPE: {"schema": schema}}}


def _exact_integers(node: object) -> None:
    """FastAPI writes the bounds of integers as floats."""
    if isinstance(node, dict):
        if node.get("type") == "integer":
            for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
                if isinstance(node.get(bound), float):
                    node[bound] = int(node[bound])
        for value in node.values():
            _exact_integers(value)
    elif isinstance(node, list):
        for value in node:
            _exact_integers(value)


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    document = get_openapi(
        title="Ironlaw",
        version=__version__,
        summary="Capacity planning for machine learning.",
        description="Does it fit, how fast will it go, what will it cost, what will the utility bill be.",
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS],
        servers=[{"url": "/", "description": "This service."}],
    )
    schemas = document["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"], schemas["FieldError"] = PROBLEM_SCHEMA, FIELD_ERROR_SCHEMA
    for path, method, operation in _operations(document):
        for status in sorted(_statuses(path, method, operation)):
            operation["responses"][str(status)] = _problem_response(status)
        if path.startswith("/v1/estimates"):
            operation["parameters"] = [REVISION_PARAMETER]
        _add_examples(operation)
    _exact_integers(document)
    return document


def _add_examples(operation: dict[str, Any]) -> None:
    example = EXAMPLES.get(operation["operationId"])
    if example is not None:
        operation["requestBody"]["content"]["application/json"]["example"] = example
