"""Export of traces and metrics by OTLP, set by the environment variables of OpenTelemetry."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric

from service import __version__
from service.kit.tracing import set_tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    from service.app.metrics_export import MetricsExport

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_PROTOCOL = "http/protobuf"
_INTERVAL_MILLISECONDS = 60_000
_STOP_SECONDS = 3.0
"""Longest time for the last spans and metrics to leave; supervisors kill ten seconds after asking."""


def _is_on(signal: str) -> bool:
    """Returns true if a signal, `TRACES` or `METRICS`, is to be exported."""
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    return (
        bool(os.environ.get(_ENDPOINT) or os.environ.get(own))
        and os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
        and os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp") == "otlp"
    )


def check_telemetry() -> bool:
    """Returns true if something is to be exported; raises OSError if it cannot be."""
    if not (_is_on("TRACES") or _is_on("METRICS")):
        return False
    if find_spec("opentelemetry.sdk") is None:
        raise OSError(f"{_ENDPOINT} needs the telemetry extra: pip install 'ironlaw[server,telemetry]'")
    given = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or _PROTOCOL
    if given != _PROTOCOL:
        raise OSError(f"OTEL_EXPORTER_OTLP_PROTOCOL must be {_PROTOCOL}, not {given}")
    return True


def start_telemetry(collect: Callable[[], Iterable[Metric]] = REGISTRY.collect) -> "Telemetry":
    """Starts the export that the environment asks for, of the metrics that ``collect`` returns.

    Without an endpoint nothing is imported and nothing runs.
    """
    if not check_telemetry():
        return Telemetry()
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # a quarter of a second to import

    about = {"service.name": os.environ.get("OTEL_SERVICE_NAME") or "ironlaw"}
    resource = Resource.create({**about, "service.version": __version__})
    return Telemetry(
        _start_tracing(resource) if _is_on("TRACES") else None,
        _start_metrics(resource, collect) if _is_on("METRICS") else None,
    )


def _start_tracing(resource: "Resource") -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer(provider.get_tracer("ironlaw", __version__))
    return provider


def _start_metrics(resource: "Resource", collect: Callable[[], Iterable[Metric]]) -> "MetricsExport":
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415

    from service.app.metrics_export import MetricsExport  # noqa: PLC0415

    milliseconds = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") or _INTERVAL_MILLISECONDS)
    export = MetricsExport(OTLPMetricExporter(), resource, collect, milliseconds / 1000)
    export.start()
    return export


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The running export of a process, of which each part may be off."""

    tracing: "TracerProvider | None" = None
    metrics: "MetricsExport | None" = None

    def stop(self) -> None:
        """Sends what is left, as far as the collector takes it in time."""
        set_tracer(None)
        parts: list[Any] = [part for part in (self.tracing, self.metrics) if part is not None]
        leaving = [threading.Thread(target=part.shutdown, daemon=True) for part in parts]
        for thread in leaving:
            thread.start()
        ends_at = time.monotonic() + _STOP_SECONDS
        for thread in leaving:
            thread.join(max(0.0, ends_at - time.monotonic()))
