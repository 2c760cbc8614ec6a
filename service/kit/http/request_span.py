"""The span of a request: its route, caller and status, and nothing that it carries."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from starlette.types import Scope

from service.kit.tracing import NO_SPAN, TRACEPARENT, SpanRole, is_tracing, mark_failed, open_span

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_TRACEPARENT = TRACEPARENT.encode()
_SERVER_ERRORS = range(500, 600)


def open_request_span(scope: Scope) -> AbstractContextManager["Span | None"]:
    """Opens the span of a request, in the trace of its caller if it names one."""
    if not is_tracing():
        return NO_SPAN
    given = [value.decode("latin-1") for name, value in scope["headers"] if name == _TRACEPARENT]
    return open_span(
        scope["method"],
        role=SpanRole.SERVER,
        parent=given[0] if len(given) == 1 else None,
        http__request__method=scope["method"],
        ironlaw__request_id=scope["state"]["request_id"],
    )


def note_trace(span: "Span", scope: Scope) -> None:
    """Notes the trace of a request for its log lines."""
    scope["state"]["trace_id"] = f"{span.get_span_context().trace_id:032x}"


def describe_answer(span: "Span", scope: Scope, status: int) -> None:
    """Names the span after its route, whose path has no ids, and adds who called and what was answered."""
    route = scope.get("route")
    if route is not None:
        span.update_name(f"{scope['method']} {route.path_format}")
        span.set_attribute("http.route", route.path_format)
    subject = scope["state"].get("subject")
    if subject is not None:
        span.set_attribute("ironlaw.tenant_id", subject.tenant_id)
    if status:
        span.set_attribute("http.response.status_code", status)
    if status in _SERVER_ERRORS:
        mark_failed(span, str(status))
