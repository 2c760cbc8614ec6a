"""What Prometheus reads: counts of requests, and how the database, the jobs and the catalog stand."""

from fastapi import FastAPI
from prometheus_client import Gauge, Info, generate_latest
from sqlalchemy.pool import QueuePool

from service import __version__
from service.kit.jobs import repository as jobs
from service.kit.subjects import DEFAULT_TENANT
from service.nodes import repository as nodes
from service.planning import METHOD_VERSION
from service.plans import repository as plans

_BUILD = Info("ironlaw_build", "Versions of the service and of its formulas.")
_BUILD.info({"version": __version__, "method_version": METHOD_VERSION})
_JOBS = Gauge("ironlaw_jobs", "Background jobs.", ["kind", "state"])
_OVERDUE = Gauge("ironlaw_jobs_overdue_seconds", "How long the first job has been due.", ["kind", "state"])
_NODES = Gauge("ironlaw_nodes", "Nodes of every tenant.", ["device", "state"])
_LEASES = Gauge("ironlaw_leases", "Leases of benchmark runs.", ["device", "state"])
_PLANS = Gauge("ironlaw_plans", "Plans of every tenant.", ["state"])
_WAITING = Gauge("ironlaw_claims_waiting", "Claims of this process that wait for something to run.")
_CONNECTIONS = Gauge("ironlaw_database_connections_in_use", "Connections that requests and jobs hold.")
_REVISION = Gauge("ironlaw_catalog_revision", "Revision of the catalog that estimates read.")
_KEYS = Gauge("ironlaw_api_keys", "Live keys of every tenant.")


def scrape(app: FastAPI) -> bytes:
    """All metrics as text."""
    state = app.state
    with state.database.reading() as session:
        counts = jobs.counts(session)
        nodes_counted, leases_counted = nodes.node_counts(session), nodes.lease_counts(session)
        plans_counted = plans.counts(session)
    _JOBS.clear()
    _OVERDUE.clear()
    for count in counts:
        _JOBS.labels(count.kind, count.state).set(count.jobs)
        _OVERDUE.labels(count.kind, count.state).set(count.overdue_seconds)
    for gauge, counted in ((_NODES, nodes_counted), (_LEASES, leases_counted)):
        gauge.clear()
        for device, standing, number in counted:
            gauge.labels(device, standing).set(number)
    _PLANS.clear()
    for standing, number in plans_counted:
        _PLANS.labels(standing).set(number)
    _WAITING.set(len(state.nodes.waiting))
    pool = state.database.engine.pool
    _CONNECTIONS.set(pool.checkedout() if isinstance(pool, QueuePool) else 0)
    _REVISION.set(state.snapshots.current(DEFAULT_TENANT).revision)
    _KEYS.set(len(state.held_keys))
    return generate_latest()
