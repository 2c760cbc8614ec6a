"""Prometheus metrics: requests, and the state of the database, the jobs and the catalog."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial

from fastapi import FastAPI
from prometheus_client import REGISTRY, CollectorRegistry, Gauge, Info, generate_latest
from prometheus_client.metrics_core import Metric
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import QueuePool
from starlette.datastructures import State

from service import __version__
from service.app.background.audit import VERIFY
from service.approvals import repository as approvals
from service.approvals.tables import PENDING
from service.budgets.usage import list_committed_shares
from service.kit.clock import now
from service.kit.database.engine import Reader
from service.kit.database.failures import describe_failure, warn_of_failure
from service.kit.jobs import repository as jobs
from service.kit.security.principals import DEFAULT_TENANT
from service.nodes import repository as nodes
from service.nodes.heartbeats import SILENCE_ELSEWHERE
from service.planning import METHOD_VERSION
from service.planning.cost.exchange import ExchangeRates
from service.plans import repository as plans
from service.quotes import repository as quotes
from service.webhooks import repository as webhooks

_log = logging.getLogger(__name__)

_STORED = CollectorRegistry()
"""Gauges of what the database holds, which are left out while it cannot be read."""
_StoredGauge = partial(Gauge, registry=_STORED)

_BUILD = Info("ironlaw_build", "Versions of the service and of its formulas.")
_BUILD.info({"version": __version__, "method_version": METHOD_VERSION})
_JOBS = _StoredGauge("ironlaw_jobs", "Background jobs.", ["kind", "state"])
_OVERDUE = _StoredGauge(
    "ironlaw_jobs_overdue_seconds", "Seconds since the first job was due.", ["kind", "state"]
)
_NODES = _StoredGauge("ironlaw_nodes", "Nodes of every tenant.", ["device", "state"])
_LEASES = _StoredGauge("ironlaw_leases", "Leases of benchmark runs.", ["device", "state"])
_SILENT = _StoredGauge("ironlaw_nodes_silent", "Active nodes without a recent heartbeat.", ["device"])
_PLANS = _StoredGauge("ironlaw_plans", "Plans of every tenant.", ["state"])
_QUOTES = _StoredGauge("ironlaw_quotes", "Versions of quotes of every tenant.", ["state"])
_APPROVALS = _StoredGauge("ironlaw_approvals", "Approvals of every tenant.", ["state"])
_OLDEST = _StoredGauge("ironlaw_approvals_waiting_seconds", "Seconds that the first approval has waited.")
_ACTS = _StoredGauge(
    "ironlaw_approvals_overdue_seconds", "Seconds since an unsettled deadline passed.", ["state"]
)
_DELIVERIES = _StoredGauge("ironlaw_webhook_deliveries", "Events for webhooks of every tenant.", ["state"])
_UNSENT = _StoredGauge(
    "ironlaw_webhook_deliveries_overdue_seconds", "Seconds since the first delivery was due.", ["state"]
)
_WEBHOOKS = _StoredGauge("ironlaw_webhooks", "Webhooks by the reason why they are disabled.", ["disabled"])
_BUDGETS = _StoredGauge("ironlaw_budgets", "Current budgets, by the share committed.", ["committed"])
_SHARES = ((0.5, "under_half"), (0.8, "half_to_80_percent"), (1.0, "80_to_100_percent"))
_WAITING = Gauge("ironlaw_claims_waiting", "Claims of this process that wait for a lease.")
_CONNECTIONS = Gauge("ironlaw_database_connections_in_use", "Connections held by requests and jobs.")
_DATABASE_UP = Gauge("ironlaw_database_up", "1 if the rows of the database could be counted, else 0.")
_REVISION = Gauge("ironlaw_catalog_revision", "Revision of the catalog that estimates read.")
_AUDIT_FAULTS = _StoredGauge("ironlaw_audit_faults", "Faults that the last audit verification found.")
_AUDIT_GAPS = _StoredGauge("ironlaw_audit_gaps", "Gaps that the last audit verification left.")
_AUDIT_VERIFIED = _StoredGauge(
    "ironlaw_audit_verified_timestamp_seconds", "Time of the last audit verification; 0 if never."
)
_KEYS = Gauge("ironlaw_api_keys", "Live keys of every tenant.")


def render_metrics(app: FastAPI) -> bytes:
    """Renders all metrics as text; those of stored rows only if the database can be read."""
    return b"".join(map(generate_latest, _update_gauges(app)))


def collect_metrics(app: FastAPI) -> list[Metric]:
    """Returns what :func:`render_metrics` renders."""
    return [metric for registry in _update_gauges(app) for metric in registry.collect()]


def _update_gauges(app: FastAPI) -> list[CollectorRegistry]:
    """Brings the gauges up to date and returns the registries of those that are."""
    state = app.state
    _WAITING.set(len(state.waiting))
    pool = state.database.engine.pool
    _CONNECTIONS.set(pool.checkedout() if isinstance(pool, QueuePool) else 0)
    _REVISION.set(state.snapshots.get_current(DEFAULT_TENANT).revision)
    _KEYS.set(len(state.held_keys))
    try:
        _count_rows(state)
    except SQLAlchemyError as error:
        failure = describe_failure(error)
        if failure is None:
            raise
        warn_of_failure(_log, "stored rows are not counted", failure)
        _DATABASE_UP.set(0)
        return [REGISTRY]
    _DATABASE_UP.set(1)
    return [REGISTRY, _STORED]


def _count_rows(state: State) -> None:
    with state.database.open_reader() as session:
        _count_jobs(session)
        _count_nodes(session)
        _count_money(session, lambda tenant_id: state.snapshots.get_current(tenant_id).exchange_rates)
        _count_webhooks(session)
        _count_audit(session)


def _count_jobs(session: Reader) -> None:
    _JOBS.clear()
    _OVERDUE.clear()
    for count in jobs.count_jobs(session):
        _JOBS.labels(count.kind, count.state).set(count.jobs)
        _OVERDUE.labels(count.kind, count.state).set(count.overdue_seconds)


def _count_nodes(session: Reader) -> None:
    for gauge, counted in (
        (_NODES, nodes.count_nodes_by_state(session)),
        (_LEASES, nodes.count_leases(session)),
    ):
        gauge.clear()
        for device, standing, number in counted:
            gauge.labels(device, standing).set(number)
    _set_gauge(_SILENT, nodes.count_silent_nodes(session, SILENCE_ELSEWHERE.total_seconds()))


def _count_money(session: Reader, rates_of: Callable[[str], ExchangeRates]) -> None:
    _set_gauge(_PLANS, plans.count_plans(session))
    _set_gauge(_QUOTES, quotes.count_by_state(session))
    counted = approvals.count_by_state(session)
    _set_gauge(_APPROVALS, [(count.state, count.approvals) for count in counted])
    _set_gauge(_ACTS, [(count.state, count.overdue_seconds) for count in counted])
    _OLDEST.set(max((count.waiting_seconds for count in counted if count.state == PENDING), default=0.0))
    committed = list_committed_shares(session, now().date().isoformat(), rates_of)
    _set_gauge(_BUDGETS, Counter(map(_get_range_name, committed)).items())


def _get_range_name(share: float) -> str:
    return next((name for bound, name in _SHARES if share < bound), "all")


def _count_webhooks(session: Reader) -> None:
    counted = webhooks.count_deliveries(session)
    _set_gauge(_DELIVERIES, [(count.state, count.deliveries) for count in counted])
    _set_gauge(_UNSENT, [(count.state, count.overdue_seconds) for count in counted])
    _set_gauge(
        _WEBHOOKS, [(reason or "no", number) for reason, number in webhooks.count_webhooks_by_reason(session)]
    )


def _count_audit(session: Reader) -> None:
    last = jobs.get_last_done(session, VERIFY)
    _AUDIT_VERIFIED.set(last.finished_at.timestamp() if last and last.finished_at else 0.0)
    _AUDIT_FAULTS.set(last.result["faults"] if last else 0)
    _AUDIT_GAPS.set(last.result["gaps"] if last else 0)


def _set_gauge(gauge: Gauge, values: Iterable[tuple[str, float]]) -> None:
    gauge.clear()
    for label, value in values:
        gauge.labels(label).set(value)
