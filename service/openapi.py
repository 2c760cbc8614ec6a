"""The OpenAPI document: FastAPI's, with one error shape, exact integers, descriptions and examples."""

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic_core import to_jsonable_python

from service import __version__
from service.catalog.models import schemas as models
from service.catalog.tariffs import schemas as tariffs
from service.estimates.endpoints import REVISION_PARAMETER
from service.evidence.imports import schemas as evidence
from service.examples import EXAMPLE_IDS, EXAMPLES, answers
from service.kit.bodies import MOST_VALUES
from service.kit.problems import (
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
from service.kit.web import JsonRoute
from service.questions import answers as answer_shapes
from service.questions import (
    base,
    bill_answers,
    cost_answers,
    disaggregated,
    energy_answers,
    fleet_plans,
    passes,
    plan_answers,
    run_answers,
    serving_answers,
    tariff_bills,
)
from service.questions import frontier as frontier_shapes
from service.questions import what_if as what_if_shapes

_DESCRIPTION = f"""Does it fit, how fast will it go, what will it cost, what will the utility bill be.

A body has at most {MOST_VALUES:,} members and elements. A member that an object has twice is refused in what
is stored; of an estimate the last one counts."""
_TEXT = {"type": "string", "maxLength": 2000}
PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
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
    ("token-prices", "What providers charge for tokens, for comparison."),
    ("tariffs", "What electricity is charged by: dated charges on a local clock."),
    ("exchange-rates", "What currencies were worth in others, by day."),
    ("grids", "Carbon intensity and water of electricity grids."),
    ("sites", "Buildings."),
    ("enrolment-tokens", "What lets a GPU host in, once."),
    ("nodes", "GPU hosts that run benchmarks, and what they say about themselves."),
    ("leases", "The right of a node to run one suite."),
    ("benchmark-suites", "What nodes can measure."),
    ("benchmark-runs", "Suites, each run once on one node."),
    ("benchmark-results", "What was measured, with its raw samples; computed again, compared, exported."),
    ("calibrations", "What devices were measured to reach, and what each figure rests on."),
    ("evidence", "What was measured elsewhere: files of other programs that move the tenant's estimates."),
    ("plans", "The best configuration for some work, under constraints and by a goal."),
    ("api-keys", "Keys with which programs call the service."),
    ("tenants", "Whose data is whose; for the operator of the service."),
    ("background-jobs", "What the service does by itself."),
    ("audit-events", "The record of every stored write."),
)
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
    "200": "What was asked for.",
    "201": "What was created.",
    "202": "It will be done.",
    "204": "It is gone.",
}
_UNSAID = "Successful Response"
"""FastAPI's description of an answer that has none."""
_SECURITY_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, a token of the configured issuer, or the credential of a node. "
        "In open mode nothing is asked for but of nodes.",
    }
}
_HEADERS = {
    "Request-Id": {
        "description": "Id of the request, for the service's log.",
        "required": True,
        "schema": {"type": "string", "maxLength": 16},
    },
    "WWW-Authenticate": {
        "description": "The kind of credentials asked for, and what is wrong with those sent (RFC 6750).",
        "schema": {"type": "string", "maxLength": 200},
    },
    "RateLimit-Policy": {
        "description": "How many requests a caller may make in a window of so many seconds.",
        "schema": {"type": "string", "maxLength": 200},
    },
    "RateLimit": {
        "description": "How many are left, and seconds until the window ends.",
        "schema": {"type": "string", "maxLength": 200},
    },
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 60},
    },
}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


def _statuses(path: str, method: str, operation: dict[str, Any]) -> set[int]:
    stated = {int(status) for status in operation["responses"] if status.isdigit()}
    statuses = set(_ALWAYS) | (stated & _PROBLEMS.keys())
    if "requestBody" in operation:
        statuses |= set(_WITH_BODY)
    if "{id}" in path:
        statuses.add(404)
    elif method == "get":
        statuses.add(400)  # a page token of another list
    if method != "get" and not _asks(path):
        statuses.add(409)
    if any(parameter["name"] == "if-match" for parameter in operation.get("parameters", ())):
        statuses |= set(_IF_MATCHING)
    return statuses


def _problem_response(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": _PROBLEMS[status].title, "content": {CONTENT_TYPE: {"schema": schema}}}


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def _tidy(node: object) -> None:
    """Mend what FastAPI and pydantic write and generators stumble over."""
    if isinstance(node, dict):
        if isinstance(node.get("title"), str):  # a name in title case beside the name itself
            del node["title"]
        if isinstance(node.get("default"), dict):  # no language has a literal of a class
            del node["default"]
        kind = node.get("type")
        if kind in ("integer", "number"):
            node.setdefault("format", "int64" if kind == "integer" else "double")
        if kind == "integer":
            node.update({bound: int(node[bound]) for bound in _BOUNDS if bound in node})
        for value in node.values():
            _tidy(value)
    elif isinstance(node, list):
        for value in node:
            _tidy(value)


_LONG = re.compile(r"service__[a-z_]+__([A-Z]\w+)")


def _short(name: re.Match[str]) -> str:
    """The name of a shape that two rooms have; what nodes say of themselves is called so."""
    return f"Node{name[1]}" if name[0].startswith("service__protocol__") else name[1]


def _member_docs(*modules: ModuleType) -> dict[str, dict[str, str]]:
    """What stands behind the members of the classes of modules; pydantic reads it of its own models only.

    A module comes behind those whose classes its own extend.
    """
    documented: dict[str, dict[str, str]] = {}
    for node in chain.from_iterable(ast.parse(inspect.getsource(module)).body for module in modules):
        if isinstance(node, ast.ClassDef):
            docs = documented[node.name] = {}
            for parent in node.bases:
                docs |= documented.get(ast.unparse(parent), {})
            for member, text in pairwise(node.body):
                match member, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(ast.Constant(str(doc))):
                        docs[name] = inspect.cleandoc(doc)
    return documented


def _describe(schemas: dict[str, Any]) -> None:
    parts = (base, run_answers, serving_answers, passes, disaggregated, energy_answers)
    shapes = (answer_shapes, cost_answers, bill_answers, tariff_bills, frontier_shapes, what_if_shapes)
    documented = _member_docs(*parts, *shapes, plan_answers, fleet_plans, models, tariffs, evidence)
    for name in documented.keys() & schemas.keys():
        for member, text in documented[name].items():
            schemas[name]["properties"][member]["description"] = text


def _asks(path: str) -> bool:
    """Whether an operation answers from a snapshot, and stores nothing."""
    return path.startswith("/v1/estimates") or path in ("/v1/tariffs:bill", "/v1/plans:fleet")


def _complete_parameters(path: str, operation: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        if parameter["in"] == "path":
            parameter["example"] = EXAMPLE_IDS[path.split("/")[2]]
        elif parameter["in"] == "header":
            name = parameter["name"] = parameter["name"].title()
            parameter["example"] = _EXAMPLE_HEADERS[name]
            schema.pop("default", None)
            if name == "If-Match":
                parameter["required"] = True
                schema["pattern"] = r'^(\*|"(shipped-)?[0-9]{1,19}")$'
        elif schema.get("type") == "number":
            # Clients send the defaults that they know, and rows without the figure would not pass.
            del schema["default"]


_EXAMPLE_HEADERS = {
    "If-Match": '"1"',
    "If-None-Match": '"1"',
    "Idempotency-Key": "2026-11-21-h100-offer",
    "Content-Digest": "sha-256=:pZGm1Av0IEBKARczz7exkNYsZb8LzaMrV7J32a2fFG4=:",
}
_MORE_HEADERS = {
    "401": ["WWW-Authenticate"],
    "403": ["WWW-Authenticate"],
    "429": ["Retry-After"],
    "503": ["Retry-After"],
}


def _complete_responses(operation: dict[str, Any], answers: Mapping[str, object]) -> None:
    name = operation["operationId"]
    for status, response in operation["responses"].items():
        names = ["Request-Id", "RateLimit-Policy", "RateLimit", *_MORE_HEADERS.get(status, [])]
        headers = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
        response["headers"] = {**response.get("headers", {}), **headers}
        if status in _SUCCESSES:
            if response["description"] == _UNSAID:
                response["description"] = _SUCCESSES[status]
            for kind, content in response.get("content", {}).items():
                if kind == "application/json":
                    content["example"] = answers.get(f"{name} {status}", answers.get(name))


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    described = get_openapi(
        title="Ironlaw",
        version=__version__,
        summary="Capacity planning for machine learning.",
        description=_DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS],
        separate_input_output_schemas=False,
        servers=[{"url": "/", "description": "This service."}],
    )
    document: dict[str, Any] = json.loads(_LONG.sub(_short, json.dumps(described)))
    components = document["components"]
    components["securitySchemes"] = _SECURITY_SCHEMES
    routes = [route for route in app.routes if isinstance(route, JsonRoute)]
    needed = {route.name: route.permission.scope for route in routes if not route.is_public}
    for unused in ("HTTPValidationError", "ValidationError", "JsonValue"):
        components["schemas"].pop(unused, None)
    _describe(components["schemas"])
    _tidy(document["paths"])
    _tidy(components)
    components["schemas"] |= {"Problem": PROBLEM_SCHEMA, "FieldError": FIELD_ERROR_SCHEMA}
    components["headers"] = _HEADERS
    answered = to_jsonable_python(answers())
    for path, method, operation in _operations(document):
        for status in _statuses(path, method, operation):
            operation["responses"][str(status)] = _problem_response(status)
        operation["responses"] = dict(sorted(operation["responses"].items()))
        _complete_parameters(path, operation)
        scope = needed.get(operation["operationId"])
        operation["security"] = [{"bearer": [scope]}] if scope else []
        _complete_responses(operation, answered)
        if _asks(path):
            operation["parameters"] = [REVISION_PARAMETER]
        if scope:
            operation["description"] += f" Needs the scope `{scope}`."
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            content["example"] = EXAMPLES[operation["operationId"]]
    return document
