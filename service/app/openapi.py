"""The OpenAPI document: FastAPI's, with one error shape, exact integers, descriptions and examples."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic_core import to_jsonable_python

from service import __version__
from service.app.examples import EXAMPLE_IDS, NAMED_EXAMPLES, build_answers
from service.app.examples.webhooks import MESSAGES
from service.app.openapi_descriptions import describe_models
from service.app.openapi_order import order_members
from service.app.openapi_responses import TEXT, build_common_components, complete_responses, is_question
from service.app.openapi_shapes import (
    describe_members,
    open_answer_shapes,
    shorten_names,
    tidy_schema,
    use_named_shapes,
)
from service.app.openapi_tags import TAGS
from service.estimates.router import REVISION_PARAMETER
from service.kit.http.bodies import MOST_MEMBERS, MOST_VALUES
from service.kit.http.web import JsonRoute
from service.webhooks.messages import build_message_router

_DESCRIPTION = f"""Estimates the memory, throughput, cost and utility bill of machine learning workloads.

A body has at most {MOST_VALUES:,} members and elements, {MOST_MEMBERS:,} of them members. An operation that
stores something refuses an object with a duplicate member; in an estimate the last one counts.

A long question is queued, for a few seconds at most: 503 `BUSY` means that the queue is full, and 503
`OUT_OF_TIME` that the answer was not ready in time.

Later releases of version 1 may add members to answers and values to enumerations; clients must ignore those
that they do not know. Unknown members of a request are refused."""
_SECURITY_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, a token of the configured issuer, or the credential of a node. "
        "In open mode only nodes need credentials.",
    }
}


def _list_operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


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
_SHARED = ("validate_only", "page_size", "page_token", "Idempotency-Key", "If-Match", "If-None-Match")


def _share_parameters(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the parameters that several operations share, each replaced by a reference."""
    shared: dict[str, Any] = {}
    for _, _, operation in _list_operations(document):
        for place, parameter in enumerate(operation.get("parameters", ())):
            name = parameter["name"]
            if name in _SHARED and shared.setdefault(name, parameter) == parameter:
                operation["parameters"][place] = {"$ref": f"#/components/parameters/{name}"}
    return shared


_MESSAGE_HEADERS = {
    "webhook-id": "Id of the event, the same at every attempt.",
    "webhook-timestamp": "Time of this attempt, in Unix seconds.",
    "webhook-signature": "Signatures of id, time and body, separated by spaces (Standard Webhooks 1.0).",
}
_RECEIVED = {
    "204": {"description": "The message is accepted, as with any status from 200 to 299."},
    "410": {"description": "The receiver is gone. The service disables the webhook."},
    "429": {"description": "Deliveries pause for the time of `Retry-After`."},
}


def _describe_callbacks(document: dict[str, Any]) -> None:
    """Moves messages to the operation that asks for them, with headers, examples and responses.

    Generators write a client for each operation of the section `webhooks`, which only receivers offer.
    """
    messages = document.pop("webhooks")
    subscription = document["paths"]["/v1/webhooks"]["post"]
    subscription["callbacks"] = {name: {"{$request.body#/url}": item} for name, item in messages.items()}
    for name, item in messages.items():
        operation = item["post"]
        operation["security"] = []
        operation["parameters"] = [
            {"name": header, "in": "header", "required": True, "description": text, "schema": TEXT}
            for header, text in _MESSAGE_HEADERS.items()
        ]
        operation["requestBody"]["content"]["application/json"]["example"] = MESSAGES[name]
        operation["responses"] = _RECEIVED


def build_openapi_document(app: FastAPI) -> dict[str, Any]:
    """Returns the API document."""
    written = get_openapi(
        title="Ironlaw",
        version=__version__,
        summary="Capacity planning for machine learning.",
        description=_DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in TAGS],
        separate_input_output_schemas=False,
        servers=[{"url": "/", "description": "This service."}],
        webhooks=build_message_router().routes,
    )
    describe_models(written["components"]["schemas"])
    document: dict[str, Any] = json.loads(shorten_names(json.dumps(written)))
    components = document["components"]
    components["securitySchemes"] = _SECURITY_SCHEMES
    routes = [route for route in app.routes if isinstance(route, JsonRoute)]
    needed = {route.name: route.permission.scope for route in routes if not route.is_public}
    for unused in ("HTTPValidationError", "ValidationError", "JsonValue"):
        components["schemas"].pop(unused, None)
    describe_members(components["schemas"])
    tidy_schema(document["paths"])
    _describe_callbacks(document)
    tidy_schema(components)
    use_named_shapes(document)
    open_answer_shapes(document)
    order_members(components["schemas"])
    for part, shared in build_common_components().items():
        components[part] = components.get(part, {}) | shared
    answered = to_jsonable_python(build_answers())
    for path, method, operation in _list_operations(document):
        complete_responses(path, method, operation, answered)
        _complete_parameters(path, operation)
        scope = needed.get(operation["operationId"])
        operation["security"] = [{"bearer": [scope]}] if scope else []
        if is_question(path):
            operation["parameters"] = [*operation.get("parameters", ()), REVISION_PARAMETER]
        if scope:
            operation["description"] += f" Needs the scope `{scope}`."
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            content["examples"] = NAMED_EXAMPLES[operation["operationId"]]
    components["parameters"] = _share_parameters(document)
    return document
