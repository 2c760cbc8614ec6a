"""HTTP without the domain.

Requests are admitted before their body is read, bodies are validated from their bytes, answers are serialized
from their type, and errors are answered as problem details.
"""

from service.kit.http.web.answers import CSV, LOCATED, RenderedJson, csv_response, json_response
from service.kit.http.web.direct_routes import DirectRoutes
from service.kit.http.web.offloading import (
    BODY_BYTES,
    LARGE_BODY_BYTES,
    InlineSeconds,
    OffloadedInlineSearch,
    OffloadedLargeWork,
    OffloadedSearch,
    OffloadedVerification,
    OffloadedWork,
)
from service.kit.http.web.problem_answers import install_problem_handlers, problem_document, problem_response
from service.kit.http.web.requests import RawBody
from service.kit.http.web.routes import (
    JsonRoute,
    PublicRoute,
    ReadOnlyRoute,
    add_routes,
    api_router,
    build_route_class,
    from_state,
)

__all__ = [
    "BODY_BYTES",
    "CSV",
    "LARGE_BODY_BYTES",
    "LOCATED",
    "DirectRoutes",
    "InlineSeconds",
    "JsonRoute",
    "OffloadedInlineSearch",
    "OffloadedLargeWork",
    "OffloadedSearch",
    "OffloadedVerification",
    "OffloadedWork",
    "PublicRoute",
    "RawBody",
    "ReadOnlyRoute",
    "RenderedJson",
    "add_routes",
    "api_router",
    "build_route_class",
    "csv_response",
    "from_state",
    "install_problem_handlers",
    "json_response",
    "problem_document",
    "problem_response",
]
