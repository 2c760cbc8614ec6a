"""Spans of a process that exports its traces; without an exporter there is nothing to open.

Spans carry neither bodies nor addresses nor messages of errors, which may repeat what was sent.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

TRACEPARENT = "traceparent"
"""Name of the member of W3C Trace Context that is received, stored and sent."""
TRACEPARENT_CHARACTERS = 55

NO_SPAN: "Final[AbstractContextManager[Span | None]]" = nullcontext()

_tracer: "Tracer | None" = None


class SpanRole(Enum):
    """Relation of a span to what is outside of the process, by the name of its kind in OpenTelemetry."""

    SERVER = "SERVER"
    CLIENT = "CLIENT"
    CONSUMER = "CONSUMER"
    INTERNAL = "INTERNAL"


def set_tracer(tracer: "Tracer | None") -> None:
    """Sets the tracer of the process; with None, spans are no longer opened."""
    global _tracer  # noqa: PLW0603  # one process has one tracer
    _tracer = tracer


def is_tracing() -> bool:
    """Returns true if the process exports traces."""
    return _tracer is not None


def open_span(
    name: str,
    *,
    role: SpanRole = SpanRole.INTERNAL,
    parent: str | None = None,
    **attributes: str | int,
) -> AbstractContextManager["Span | None"]:
    """Opens a span below ``parent``, a ``traceparent``, or below the current span.

    Names of attributes have two underscores for a dot.
    """
    if _tracer is None:
        return NO_SPAN
    return _open_span(_tracer, name, role, parent, attributes)


def open_inner_span(name: str, **attributes: str) -> AbstractContextManager["Span | None"]:
    """Opens a span below the current one; outside of a trace there is none to open."""
    if _tracer is None or get_traceparent() is None:
        return NO_SPAN
    return _open_span(_tracer, name, SpanRole.INTERNAL, None, attributes)


@contextmanager
def _open_span(
    tracer: "Tracer", name: str, role: SpanRole, parent: str | None, attributes: Mapping[str, str | int]
) -> "Iterator[Span]":
    from opentelemetry.trace import SpanKind  # noqa: PLC0415  # only where traces are exported
    from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415
        TraceContextTextMapPropagator,
    )

    context = TraceContextTextMapPropagator().extract({TRACEPARENT: parent}) if parent else None
    with tracer.start_as_current_span(
        name,
        context,
        SpanKind[role.value],
        {key.replace("__", "."): value for key, value in attributes.items()},
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", type(error).__qualname__)
            raise


def get_traceparent() -> str | None:
    """Returns the ``traceparent`` of the current span, None outside of a trace."""
    if _tracer is None:
        return None
    from opentelemetry.trace import get_current_span  # noqa: PLC0415

    context = get_current_span().get_span_context()
    if not context.is_valid:
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def mark_failed(span: "Span", reason: str) -> None:
    """Marks a span as failed for a reason of few kinds, such as a code."""
    from opentelemetry.trace import StatusCode  # noqa: PLC0415

    span.set_attribute("error.type", reason)
    span.set_status(StatusCode.ERROR)
