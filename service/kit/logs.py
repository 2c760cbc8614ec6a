"""Structured logs: one JSON object a line, with the ids of the request that they belong to.

Neither bodies nor query strings nor headers are ever logged.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog
from pydantic_core import to_json
from structlog.typing import EventDict, Processor

request_ids: ContextVar[dict[str, Any] | None] = ContextVar("request_ids", default=None)
"""State of the request being served: its id, and its subject once that is known."""


_write_request: Callable[[EventDict], object] = dict


def log_request(state: Mapping[str, Any], **outcome: object) -> None:
    """Writes the one log line of a request, past structlog, which takes twice as long to build it."""
    subject = state.get("subject")
    line: EventDict = {
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "level": "info",
        "event": "request",
        "request_id": state["request_id"],
        **outcome,
    }
    if subject is not None:
        line["tenant_id"], line["subject_id"] = subject.tenant_id, subject.id
    if "trace_id" in state:
        line["trace_id"] = state["trace_id"]
    _write_request(line)


def _add_request(logger: object, name: str, event: EventDict) -> EventDict:
    del logger, name
    state = request_ids.get()
    if state is not None:
        event["request_id"] = state["request_id"]
        subject = state.get("subject")
        if subject is not None:
            event["tenant_id"], event["subject_id"] = subject.tenant_id, subject.id
        if "trace_id" in state:
            event["trace_id"] = state["trace_id"]
    return event


def _add_timestamp(logger: object, name: str, event: EventDict) -> EventDict:
    del logger, name
    event["at"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    return event


def _as_json(logger: object, name: str, event: EventDict) -> bytes:
    del logger, name
    return to_json(event, serialize_unknown=True)


def _as_text(logger: object, name: str, event: bytes) -> str:
    del logger, name
    return event.decode()


_COMMON: list[Processor] = [_add_request, _add_timestamp, structlog.stdlib.add_log_level]
_JSON: list[Processor] = [structlog.processors.format_exc_info, _as_json]
# The other formatters show local variables, which may hold a secret.
_PLAIN: list[Processor] = [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]


class _LineWriter:
    """Writes lines to a stream, those of one turn of the event loop together.

    Each system call gives up the interpreter, which the loop then waits for behind threads that compute.
    """

    def __init__(self, stream: TextIO) -> None:
        self._write, self._flush_stream = stream.buffer.write, stream.buffer.flush
        self._flushed_by: asyncio.AbstractEventLoop | None = None
        """Loop in whose next turn the stream is flushed."""

    def __call__(self, line: EventDict) -> None:
        """Writes a line."""
        self._write(to_json(line, serialize_unknown=True) + b"\n")
        loop = asyncio.get_running_loop()
        if self._flushed_by is not loop:
            self._flushed_by = loop
            loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushed_by = None
        self._flush_stream()


def _build_text_writer() -> Callable[[EventDict], object]:
    log = structlog.get_logger()
    return lambda line: log.info(line.pop("event"), **line)


def configure_logs(*, as_json: bool, stream: TextIO) -> None:
    """Sends every log of the process to ``stream``; those of libraries from warnings upwards."""
    text: Any = [*_JSON, _as_text] if as_json else _PLAIN
    structlog.configure(
        processors=[*_COMMON, *(_JSON if as_json else _PLAIN)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=(
            structlog.BytesLoggerFactory(stream.buffer) if as_json else structlog.WriteLoggerFactory(stream)
        ),
        cache_logger_on_first_use=True,
    )
    global _write_request  # noqa: PLW0603  # one process has one log
    _write_request = _LineWriter(stream) if as_json else _build_text_writer()
    handler = logging.StreamHandler(stream)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_COMMON, structlog.stdlib.add_logger_name],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *text],
    )
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("service").setLevel(logging.INFO)
