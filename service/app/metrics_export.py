"""Export of the metrics of Prometheus by OTLP, under their own names."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from service import __version__
from service.kit.database.failures import warn_of_error

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricExporter

log = logging.getLogger(__name__)


@dataclass
class MetricsExport:
    """Sends the metrics of the process at regular times, and once more at the end."""

    exporter: "MetricExporter"
    resource: Resource
    collect: Callable[[], Iterable[Family]]
    interval_seconds: float
    _began: int = field(default_factory=time.time_ns)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Starts the thread."""
        self._thread = threading.Thread(target=self._run, name="metrics export", daemon=True)
        self._thread.start()

    def shutdown(self) -> None:
        """Sends the metrics a last time."""
        self._stopping.set()
        self._thread.join()
        self.exporter.shutdown()

    def _run(self) -> None:
        while not self._stopping.wait(self.interval_seconds):
            self._export()
        self._export()

    def _export(self) -> None:
        try:
            families = self.collect()
        except Exception as error:  # noqa: BLE001  # the thread goes on, and counters need no database
            warn_of_error(log, "gauges are not brought up to date", error)
            families = REGISTRY.collect()
        self.exporter.export(build_metrics_data(families, self.resource, self._began, time.time_ns()))


def build_metrics_data(families: Iterable[Family], resource: Resource, began: int, at: int) -> MetricsData:
    """Returns metrics of Prometheus as those of OpenTelemetry; counts began at ``began``."""
    metrics = [
        Metric(_get_name(family), family.documentation, family.unit, _build_data(family, began, at))
        for family in families
    ]
    scope = ScopeMetrics(InstrumentationScope("ironlaw", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _get_name(family: Family) -> str:
    return f"{family.name}_info" if family.type == "info" else family.name


def _build_data(family: Family, began: int, at: int) -> Sum | Gauge | Histogram:
    if family.type == "histogram":
        points = list(_build_histogram_points(family, began, at))
        return Histogram(points, AggregationTemporality.CUMULATIVE)
    is_counter = family.type == "counter"
    numbers = [
        NumberDataPoint(sample.labels, began if is_counter else 0, at, sample.value)
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]
    return (
        Sum(numbers, AggregationTemporality.CUMULATIVE, is_monotonic=True) if is_counter else Gauge(numbers)
    )


def _build_histogram_points(family: Family, began: int, at: int) -> Iterator[HistogramDataPoint]:
    """Yields one histogram for each combination of labels.

    Prometheus counts what is at or below each bound, OpenTelemetry what is between two.
    """
    groups: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in family.samples:
        labels = tuple((name, value) for name, value in sample.labels.items() if name != "le")
        groups.setdefault(labels, []).append(sample)
    for labels, samples in groups.items():
        totals = {sample.name.removeprefix(family.name): sample.value for sample in samples}
        buckets = [sample for sample in samples if "le" in sample.labels]
        counts = [int(bucket.value) for bucket in buckets]
        yield HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=began,
            time_unix_nano=at,
            count=int(totals["_count"]),
            sum=totals["_sum"],
            bucket_counts=[count - before for before, count in zip([0, *counts], counts, strict=False)],
            explicit_bounds=[float(bucket.labels["le"]) for bucket in buckets[:-1]],
            min=None,  # type: ignore[arg-type]  # Prometheus knows neither, and the exporter leaves them out
            max=None,  # type: ignore[arg-type]
        )
