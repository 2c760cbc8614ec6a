"""The OpenAPI document: FastAPI's, with one error shape, exact integers, descriptions and examples."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic_core import to_jsonable_python

from service import __version__
from service.app.examples import EXAMPLE_IDS, EXAMPLES, build_answers
from service.app.examples.webhooks import MESSAGES
from service.app.openapi_responses import TEXT, build_common_components, complete_responses, is_question
from service.app.openapi_shapes import (
    describe_members,
    open_answer_shapes,
    shorten_names,
    tidy_schema,
    use_named_shapes,
)
from service.catalog.registry import RESOURCES
from service.estimates.endpoints import REVISION_PARAMETER
from service.kit.http.bodies import MOST_MEMBERS, MOST_VALUES
from service.kit.http.web import JsonRoute
from service.webhooks.messages import build_message_router

_DESCRIPTION = f"""Does it fit, how fast will it go, what will it cost, what will the utility bill be.

A body has at most {MOST_VALUES:,} members and elements, {MOST_MEMBERS:,} of them members. A member that an
object has twice is refused in what is stored; of an estimate the last one counts.

A question that takes long waits for its turn, and no longer than a few seconds: 503 `BUSY` says that too many
wait, 503 `OUT_OF_TIME` that the answer was not ready.

Answers of version 1 may come to have more members, and their enumerations more values: a client passes over
what it does not know. Members that are sent and not known are refused."""
_TAGS = (
    ("estimates", "The four questions: does it fit, how fast, what does it cost, what is the utility bill."),
    *((resource.path, resource.description) for resource in RESOURCES.values()),
    ("enrolment-tokens", "What lets a GPU host in, once."),
    ("nodes", "GPU hosts that run benchmarks, and what they say about themselves."),
    ("leases", "The right of a node to run one suite."),
    ("benchmark-suites", "What nodes can measure."),
    ("benchmark-runs", "Suites, each run once on one node."),
    ("benchmark-results", "What was measured, with its raw samples; computed again, compared, exported."),
    ("calibrations", "What devices were measured to reach, and what each figure rests on."),
    ("evidence", "What was measured elsewhere: files of other programs that move the tenant's estimates."),
    ("plans", "The best configuration for some work, under constraints and by a goal."),
    ("quotes", "Estimates and rows of plans, frozen with their prices so that somebody can sign them."),
    ("approvals", "What is to be approved, by whom, and what they decided."),
    ("approval-links", "Addresses by which people without credentials decide once."),
    ("approval-policies", "Who has to approve which quotes."),
    (
        "policy-changes",
        "Changes of policies and budgets that let more pass: approved, rejected, or over in time.",
    ),
    ("approval-settings", "How long such changes wait."),
    ("approval-delegations", "For a time somebody decides in an approver's place."),
    ("cost-centers", "Who pays."),
    ("budgets", "What cost centres may spend, what approvals have committed of it and what was spent."),
    ("actuals", "What was billed, beside what was quoted."),
    ("webhooks", "Who is told of what happens, and whether it arrived."),
    ("api-keys", "Keys with which programs call the service."),
    ("sessions", "People who have signed in with a browser."),
    ("tenants", "Whose data is whose; for the operator of the service."),
    ("background-jobs", "What the service does by itself."),
    ("audit-events", "The record of every stored write."),
)
_SECURITY_SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, a token of the configured issuer, or the credential of a node. "
        "In open mode nothing is asked for but of nodes.",
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
    """Parameters that mean the same wherever they are, each taken out of the operations."""
    shared: dict[str, Any] = {}
    for _, _, operation in _list_operations(document):
        for place, parameter in enumerate(operation.get("parameters", ())):
            name = parameter["name"]
            if name in _SHARED and shared.setdefault(name, parameter) == parameter:
                operation["parameters"][place] = {"$ref": f"#/components/parameters/{name}"}
    return shared


_MESSAGE_HEADERS = {
    "webhook-id": "Id of the event, the same at every attempt.",
    "webhook-timestamp": "When this attempt was made, in Unix seconds.",
    "webhook-signature": "Signatures of id, time and body, separated by spaces (Standard Webhooks 1.0).",
}
_RECEIVED = {
    "204": {"description": "The message is taken, as any status from 200 to 299 says."},
    "410": {"description": "The receiver is gone: the webhook is disabled."},
    "429": {"description": "The receiver wants to be left alone, for as long as `Retry-After` says."},
}


def _complete_messages(messages: dict[str, Any]) -> None:
    """What receivers are sent, and what their answers mean."""
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
    """The whole document."""
    written = get_openapi(
        title="Ironlaw",
        version=__version__,
        summary="Capacity planning for machine learning.",
        description=_DESCRIPTION,
        routes=app.routes,
        tags=[{"name": name, "description": text} for name, text in _TAGS],
        separate_input_output_schemas=False,
        servers=[{"url": "/", "description": "This service."}],
        webhooks=build_message_router().routes,
    )
    document: dict[str, Any] = json.loads(shorten_names(json.dumps(written)))
    components = document["components"]
    components["securitySchemes"] = _SECURITY_SCHEMES
    routes = [route for route in app.routes if isinstance(route, JsonRoute)]
    needed = {route.name: route.permission.scope for route in routes if not route.is_public}
    for unused in ("HTTPValidationError", "ValidationError", "JsonValue"):
        components["schemas"].pop(unused, None)
    describe_members(components["schemas"])
    tidy_schema(document["paths"])
    _complete_messages(document["webhooks"])
    tidy_schema(components)
    use_named_shapes(document)
    open_answer_shapes(document)
    for part, shared in build_common_components().items():
        components[part] = components.get(part, {}) | shared
    answered = to_jsonable_python(build_answers())
    for path, method, operation in _list_operations(document):
        complete_responses(path, method, operation, answered)
        _complete_parameters(path, operation)
        scope = needed.get(operation["operationId"])
        operation["security"] = [{"bearer": [scope]}] if scope else []
        if is_question(path):
            operation["parameters"] = [REVISION_PARAMETER]
        if scope:
            operation["description"] += f" Needs the scope `{scope}`."
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            content["example"] = EXAMPLES[operation["operationId"]]
    components["parameters"] = _share_parameters(document)
    return document
