"""The application: routes, errors, the snapshots that it keeps current, and the documentation."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import State

from service import __version__
from service.app.background.router import router as background_jobs
from service.app.background.service import JobDependencies, run_workers
from service.app.documentation.router import add_documentation
from service.app.guide import add_guide
from service.app.landing import add_landing
from service.app.memory import watch_memory
from service.app.metrics import collect_metrics, render_metrics
from service.app.readiness import RETRY, DatabaseProbe, Starting
from service.app.recorded import HELD
from service.app.settings import Settings
from service.app.telemetry import start_telemetry
from service.approvals import router as approvals
from service.approvals.delegations.router import router as delegations
from service.approvals.links import router as approval_links
from service.approvals.links.service import Links
from service.approvals.pages import router as approval_pages
from service.approvals.pages.quotes import QuotePages
from service.approvals.pages.service import ApprovalPages
from service.audit.router import router as audit_events
from service.audit.service import TransactionSource, Writes
from service.audit.verification import Verifier
from service.auth.event_endpoint import router as receiving_events
from service.auth.pages.router import signing_in, signing_out
from service.auth.router import keys, sessions, tenants
from service.auth.service import ApiKeys, LiveKeys, initialize_installation, record_identity
from service.auth.session_revocation import SessionRevocations
from service.auth.sessions import PageAuthenticator
from service.benchmarks import router as benchmarks
from service.benchmarks.service import list_missing_results
from service.budgets.actuals.router import of_quotes as quote_actuals
from service.budgets.actuals.router import router as actuals
from service.budgets.pages.router import router as budget_pages
from service.budgets.router import router as budgets
from service.budgets.service import APPLIERS, is_center_used
from service.calibrations import router as calibrations
from service.catalog.router import ROUTERS as CATALOG
from service.catalog.transactions import CatalogTransactions
from service.cost_centers.router import router as cost_centers
from service.estimates.router import router as estimates
from service.estimates.router import tariffs as tariff_bills
from service.estimates.service import ESTIMATES
from service.evidence.imports.router import router as evidence
from service.evidence.snapshot import get_store
from service.fleet import router as fleet_pages
from service.kit.database.engine import Database
from service.kit.database.failures import describe_failure, warn_of_failure
from service.kit.database.waiting import limit_waits
from service.kit.http.admission import Admission, Authenticator
from service.kit.http.context import RequestContext
from service.kit.http.long_work import build_queues
from service.kit.http.models import complete_models
from service.kit.http.operational import install_database_errors
from service.kit.http.outbound import OutboundClient
from service.kit.http.pages import PageTokens
from service.kit.http.problems import Stopping
from service.kit.http.request_queues import RequestQueues
from service.kit.http.web import DirectRoutes, add_routes, install_problem_handlers
from service.kit.memory import MemoryWatch, find_budget
from service.kit.security.keyring import Keyring
from service.kit.security.principals import build_permission
from service.nodes.credentials import NodeAuthenticator, NodeCredentials
from service.nodes.heartbeats import HeartbeatRegistry
from service.nodes.router import enrolment, leases, nodes, own, tokens
from service.nodes.service import EnrolmentService, IntakeQuota
from service.nodes.waiting import ClaimQueue
from service.plans.pages import router as plan_pages
from service.plans.router import fleets
from service.plans.router import router as plans
from service.policies.changes import router as policy_changes
from service.policies.router import router as policies
from service.protocol.suites import shipped_suites
from service.quotes.form import router as asking
from service.quotes.pages.router import router as candidate_pages
from service.quotes.router import router as quotes
from service.quotes.service import QuoteSnapshots
from service.webhooks.router import router as webhooks
from service.webhooks.service import Webhooks

if TYPE_CHECKING:
    from service.auth.login import SignIn
    from service.auth.security_events import SecurityEvents

_catalog = list(CATALOG.values())
_catalog.insert([*CATALOG].index("tariffs"), tariff_bills)  # its place in the API document
ROUTERS = (
    estimates,
    *_catalog,
    keys,
    tenants,
    sessions,
    tokens,
    enrolment,
    nodes,
    own,
    leases,
    background_jobs,
    audit_events,
    benchmarks.suites,
    benchmarks.runs,
    benchmarks.results,
    benchmarks.reporting,
    benchmarks.leases,
    calibrations.router,
    evidence,
    plans,
    fleets,
    quotes,
    approvals.quotes,
    approvals.approvals,
    policies,
    policy_changes.changes,
    policy_changes.settings,
    delegations,
    signing_in,
    receiving_events,
    signing_out,
    approval_pages.visited,
    approval_pages.quoted,
    budget_pages,
    fleet_pages.calibrations,
    fleet_pages.runs,
    fleet_pages.nodes,
    approval_pages.linked,
    plan_pages.forms,
    plan_pages.router,
    candidate_pages,
    asking.router,
    asking.script,
    asking.quoting,
    approval_links.router,
    approval_links.listing,
    approval_links.links,
    cost_centers,
    budgets,
    actuals,
    quote_actuals,
    webhooks,
)
log = logging.getLogger(__name__)

_READ_METRICS = build_permission("metrics", "read")
_POLL_SECONDS = 1.0
_NOTE_USE_SECONDS = 30.0
_WRITE_HEARTBEATS_SECONDS = 5.0
_LAST_WRITES_SECONDS = 1.0
"""Longest time that the last writes of a process wait for the database, after all requests have ended."""


def create_app(settings: Settings) -> FastAPI:
    """Builds the application; :func:`attach_database` gives it a database."""
    app = FastAPI(
        title="Ironlaw",
        version=__version__,
        lifespan=_run_lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # RequestContext opens the span of a request: most answers pass by FastAPI's own.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.memory = MemoryWatch(find_budget(settings.memory_limit_bytes))
    app.state.request_queues = RequestQueues()
    # The middleware that is added last runs first.
    app.add_middleware(DirectRoutes, routes=app.routes, handlers=app.exception_handlers)
    app.add_middleware(
        RequestContext,
        max_body_bytes=settings.max_body_bytes,
        hosts=settings.hosts,
        memory=app.state.memory,
        tls_only=settings.public_url.startswith("https:"),
    )
    install_problem_handlers(app)
    install_database_errors(app)
    # Routes are tried in this order.
    _add_health(app)
    for router in ROUTERS:
        add_routes(app, router)
    add_documentation(app)
    add_guide(app, settings.guide_dir)
    add_landing(app, settings)
    return app


def attach_database(app: FastAPI, database: Database, settings: Settings, keyring: Keyring) -> None:
    """Connects ``app`` to ``database``, whose schema must be current."""
    state = app.state
    writes = Writes(database, keyring, record_identity)
    initialize_installation(database, keyring, writes)
    tokens = PageTokens(keyring.derive_key("page tokens"))
    state.database = database
    state.snapshots = get_store(database)
    state.keys = ApiKeys.from_keyring(keyring)
    state.held_keys = LiveKeys(database, state.keys)
    state.has_tenant = state.held_keys.has_tenant
    state.transactions = TransactionSource(database, writes, tokens)
    state.catalog_transactions = replace(state.transactions, after_write=state.snapshots.refresh)
    state.auth_transactions = replace(state.transactions, after_write=state.held_keys.refresh)
    state.webhooks = Webhooks.from_keyring(keyring, OutboundClient(settings.networks), settings.public_url)
    state.means = JobDependencies(
        writes=writes, webhooks=state.webhooks, exports=settings.audit_exports, memory=state.memory
    )
    state.endings = SessionRevocations(keyring, state.held_keys.get_end)
    _attach_nodes(state, settings, keyring)
    state.admission = Admission(
        _build_authenticator(settings, state.held_keys, state.endings) if settings.mode == "tenant" else None,
        authenticate_node=state.authenticate_node,
        requests_per_minute=settings.requests_per_minute,
    )
    state.public_url = settings.public_url
    state.login = _build_login(settings, keyring)
    state.security_events = _build_security_events(settings, state.endings, state.held_keys, writes)
    state.visitors = PageAuthenticator(
        state.admission,
        keyring,
        is_open=settings.mode == "open",
        has_login=state.login is not None,
        is_secure=settings.public_url.startswith("https:"),
        has_tenant=state.has_tenant,
        endings=state.endings,
    )
    state.catalog = CatalogTransactions(
        database, writes, tokens, on_change=state.snapshots.refresh, most_rows=settings.rows_of_a_tenant
    )
    state.estimators = {name: estimate.estimator for name, estimate in ESTIMATES.items()}
    state.audit_verifier = Verifier(writes, HELD)
    state.probe = DatabaseProbe(database)
    state.work_queues = build_queues(settings.answer_seconds, state.memory)
    state.freezing = QuoteSnapshots(database, state.snapshots)
    state.links = Links(keyring, public_url=settings.public_url, has_tenant=state.has_tenant)
    state.change_appliers, state.is_center_used = APPLIERS, is_center_used
    state.approval_pages = ApprovalPages(state.transactions, state.links, state.snapshots)
    state.quote_pages = QuotePages(state.transactions, state.snapshots)
    state.draining = False
    state.background_threads = settings.background_threads


def _attach_nodes(state: State, settings: Settings, keyring: Keyring) -> None:
    database = state.database
    state.authenticate_node = NodeAuthenticator(
        database,
        writes=state.transactions.writes,
        credentials=NodeCredentials.from_keyring(keyring),
        has_tenant=state.has_tenant,
    )
    state.enrolments = EnrolmentService(keyring)
    state.heartbeats = HeartbeatRegistry(database)
    state.waiting = ClaimQueue(database)
    state.suites = shipped_suites()
    state.missing_results = list_missing_results
    state.node_quota = IntakeQuota(
        results=settings.node_results_per_day,
        result_bytes=settings.node_result_bytes_per_day,
        inventories=settings.node_inventories_per_day,
        inventory_bytes=settings.node_inventory_bytes_per_day,
    )


def _build_authenticator(settings: Settings, keys: LiveKeys, endings: SessionRevocations) -> Authenticator:
    issuer = settings.issuer
    if issuer is None:
        return keys.authenticate
    from service.auth.tokens import Authenticator  # noqa: PLC0415  # a tenth of a second to import

    return Authenticator(keys, issuer, endings)


def _build_security_events(
    settings: Settings, endings: SessionRevocations, keys: LiveKeys, writes: Writes
) -> "SecurityEvents | None":
    issuer = settings.issuer if settings.mode == "tenant" else None
    if issuer is None:
        return None
    from service.auth.oidc import TokenVerifier  # noqa: PLC0415  # a tenth of a second to import
    from service.auth.security_events import SecurityEvents  # noqa: PLC0415

    return SecurityEvents(TokenVerifier(issuer), endings, keys, writes)


def _build_login(settings: Settings, keyring: Keyring) -> "SignIn | None":
    client = settings.login_client
    if client is None:
        return None
    from service.auth.login import SignIn  # noqa: PLC0415  # a tenth of a second to import

    return SignIn(client, keyring)


@contextlib.asynccontextmanager
async def _run_lifespan(app: FastAPI) -> AsyncIterator[None]:
    await asyncio.to_thread(_refresh_snapshots, app)
    telemetry = start_telemetry(partial(collect_metrics, app))
    # A question of a tenant whose snapshot is not built yet does not wait for those of others.
    threading.Thread(target=_load_behind_readiness, args=(app,), name="loading", daemon=True).start()
    following = [
        asyncio.create_task(_repeat_every(_POLL_SECONDS, _refresh_snapshots, app)),
        asyncio.create_task(_repeat_every(_NOTE_USE_SECONDS, _record_key_use, app)),
        asyncio.create_task(_repeat_every(_WRITE_HEARTBEATS_SECONDS, _write_heartbeats, app)),
        asyncio.create_task(watch_memory(app.state)),
    ]
    async with run_workers(app.state.database, app.state.means, app.state.background_threads) as running:
        app.state.working = running
        yield
    app.state.waiting.close()
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    limit_waits(_LAST_WRITES_SECONDS)
    with contextlib.suppress(SQLAlchemyError):
        await asyncio.to_thread(_record_key_use, app)
        await asyncio.to_thread(app.state.heartbeats.write, 1)
    await asyncio.to_thread(telemetry.stop)


def _refresh_snapshots(app: FastAPI) -> None:
    """Loads the changes of other processes."""
    app.state.snapshots.refresh()
    app.state.held_keys.refresh()


def _load_behind_readiness(app: FastAPI) -> None:
    """Builds what a process does not wait for to be ready: validators, and the snapshots of tenants."""
    try:
        complete_models()
        app.state.snapshots.load_all()
    except Exception as error:  # noqa: BLE001  # questions build what is missing
        _log_failure("Building validators and the catalogs of tenants", error)


def _record_key_use(app: FastAPI) -> None:
    app.state.held_keys.record_key_use()


def _write_heartbeats(app: FastAPI) -> None:
    app.state.heartbeats.write()


async def _repeat_every(seconds: float, do: Callable[[FastAPI], None], app: FastAPI) -> None:
    """Repeats a function forever; a failed attempt is logged and tried again."""
    while True:
        await asyncio.sleep(seconds)
        try:
            await asyncio.to_thread(do, app)
        except Exception as error:  # noqa: BLE001  # it is tried again
            _log_failure(do.__name__, error)


def _log_failure(name: str, error: Exception) -> None:
    if failure := describe_failure(error):
        warn_of_failure(log, f"{name} failed", failure)
    else:
        log.error("%s failed", name, exc_info=error)


def _add_health(app: FastAPI) -> None:
    @app.get("/livez", status_code=204, include_in_schema=False)
    async def livez() -> None:
        """Answers if the process is alive."""

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> Response:
        """Answers 200 if the catalog is loaded, the database answers, and the process is not stopping.

        A process that is short of memory stays ready: small questions go on, and others would get its load.
        """
        state = app.state
        if state.draining:
            raise Stopping(headers=RETRY)
        if not state.snapshots.is_ready:
            raise Starting(headers=RETRY)
        problem = await state.probe.find_problem()
        if problem is not None:
            raise problem
        told = "ready, short of memory\n" if state.memory.is_short else "ready\n"
        return Response(told, media_type="text/plain")

    @app.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        """Returns metrics for Prometheus; the scope `metrics:read` must be granted by name."""
        await app.state.admission.admit(request.scope, _READ_METRICS)
        return Response(await asyncio.to_thread(render_metrics, app), media_type=CONTENT_TYPE_LATEST)
