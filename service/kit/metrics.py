"""Prometheus metrics of requests by operation, of long work and of deliveries."""

from functools import cache
from http import HTTPStatus

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REQUESTS = Counter("ironlaw_requests", "Requests answered.", ["operation", "status"])
REQUEST_SECONDS = Histogram("ironlaw_request_seconds", "Time to answer.", ["operation"], buckets=_SECONDS)
REQUESTS_IN_PROGRESS = Gauge("ironlaw_requests_in_progress", "Requests being answered.")
REQUESTS_REFUSED = Counter("ironlaw_requests_refused", "Requests answered with 429 or 5xx.", ["code"])
REQUESTS_WAITING = Gauge("ironlaw_requests_waiting", "Small requests that wait for a turn.", ["queue"])

LONG_WORK_RUNNING = Gauge("ironlaw_long_work_running", "Long work being done by this process.", ["queue"])
LONG_WORK_WAITING = Gauge("ironlaw_long_work_waiting", "Long work that waits for a thread.", ["queue"])
LONG_WORK_REFUSED = Counter("ironlaw_long_work_refused", "Long work without an answer.", ["queue", "reason"])

MEMORY_LIMIT_BYTES = Gauge("ironlaw_memory_limit_bytes", "Memory that this process may use; 0 for no limit.")
MEMORY_USED_BYTES = Gauge("ironlaw_memory_used_bytes", "Memory in use that counts against the limit.")
MEMORY_PRESSURE = Gauge("ironlaw_memory_pressure", "1 while memory is short and long work is refused.")
MEMORY_REFUSED = Counter("ironlaw_memory_refused", "Requests refused because memory is short.", ["kind"])
for _kind in ("body", "long_work"):
    MEMORY_REFUSED.labels(_kind)

DELIVERY_ATTEMPTS = Counter("ironlaw_webhook_attempts", "Attempts to deliver an event.", ["outcome"])
for _outcome in ("delivered", "refused", "unreachable"):
    DELIVERY_ATTEMPTS.labels(_outcome)


@cache
def _get_metrics(operation: str, status_class: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(operation, f"{status_class}xx"), REQUEST_SECONDS.labels(operation)


def count_request(operation: str, status: int, seconds: float) -> None:
    """Counts one answered request."""
    requests, times = _get_metrics(operation, status // 100)
    requests.inc()
    times.observe(seconds)


def count_refusal(status: int, code: str) -> None:
    """Counts a problem that was answered, if its status is 429 or 5xx."""
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        REQUESTS_REFUSED.labels(code).inc()
