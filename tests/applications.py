"""Applications as tests serve them: any host, requests without limit, a secret that every test knows."""

import json
import sys
from base64 import b64encode
from hashlib import sha256
from typing import Any
from uuid import uuid4

from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import delete, update

from service.app import application
from service.app.background.service import JobDependencies
from service.app.examples import EXAMPLE_IDS, EXAMPLES
from service.app.settings import Settings
from service.approvals import service as approvals
from service.approvals.links.schemas import ApprovalLinkRequest
from service.approvals.links.service import Links
from service.audit.service import WriteContext, Writes
from service.auth.schemas import ApiKeyRequest, TenantRequest
from service.auth.service import ApiKeys, KeyWrite, create_tenant
from service.benchmarks import service as benchmarks
from service.benchmarks.repository import insert_result
from service.calibrations import service as calibrations
from service.calibrations.sets import MeasuredSet
from service.catalog.tables import CatalogState
from service.catalog.transactions import CatalogTransactions
from service.evidence.snapshot import SnapshotStore, build_shipped_snapshot
from service.kit import logs
from service.kit.clock import now
from service.kit.database.engine import Database, Writer
from service.kit.http.outbound import OutboundClient
from service.kit.http.pages import PageTokens
from service.kit.jobs.kinds import CompletedJob, RunnableJobType
from service.kit.jobs.repository import enqueue_job
from service.kit.jobs.tables import JobRow
from service.kit.logs import configure_logs
from service.kit.security.keyring import Keyring
from service.kit.security.principals import LOCAL, NODE_SCOPES, SHIPPED_TENANT, Principal, PrincipalKind
from service.nodes.schemas import EnrolmentTokenRequest
from service.nodes.service import EnrolmentService
from service.planning.hardware.calibration import OperatorQuantity
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredFigure, MeasuredScope
from service.plans import stored as plans
from service.plans.service import prepare_pieces
from service.policies import service as policies
from service.policies.schemas import ApprovalPolicyRequest
from service.protocol.nodes import NodeEnrolmentRequest
from service.protocol.results import BenchmarkResultReport
from service.quotes import service as quotes
from service.quotes.snapshot import QuoteSubject, build_quote, project_questions
from service.schemas.estimates import UtilityBillRequest
from service.schemas.plans import PlanRequest
from service.webhooks.schemas import WebhookRequest
from service.webhooks.service import Webhooks, send_test_event
from service.webhooks.tables import DeliveryRow

KEYRING = Keyring(b"a secret of the tests, nowhere else")
MEANS = JobDependencies(
    writes=Writes(None, KEYRING), webhooks=Webhooks.from_keyring(KEYRING, OutboundClient())
)
"""What jobs need, of any database."""
OPEN = Settings(
    allowed_hosts="*",
    requests_per_minute=0,
    background_threads=0,
    answer_seconds=600,
    node_results_per_day=0,
    node_inventories_per_day=0,
)
TENANT = OPEN.model_copy(update={"mode": "tenant"})


def attach(app: FastAPI, database: Database, settings: Settings = OPEN) -> None:
    """Let ``app`` serve ``database``, in open mode unless ``settings`` say other."""
    application.attach_database(app, database, settings, KEYRING)
    know_shipped_rows(app.state.snapshots, database)


_SHIPPED: dict[tuple[int, str], Any] = {}
"""Stores that have read the shipped rows of a revision and digest."""


def know_shipped_rows(store: SnapshotStore, database: Database) -> None:
    """Let a store begin with what another has read of the same rows: most databases are copies of one."""
    with database.open_reader() as session:
        state = session.get(CatalogState, SHIPPED_TENANT)
        if state is None:
            return
    known = _SHIPPED.get((state.revision, state.shipped_digest))
    if known is None:
        known = _SHIPPED[state.revision, state.shipped_digest] = SnapshotStore(database)
        known.refresh()
    store._common = known._common
    store._revisions = {SHIPPED_TENANT: state.revision}


def catalog_transactions(database: Database) -> CatalogTransactions:
    """The catalog of ``database``, whose writes nobody follows."""
    tokens = PageTokens(KEYRING.derive_key("page tokens"))
    return CatalogTransactions(database, Writes(database, KEYRING), tokens, on_change=lambda: None)


def quiet_logs() -> None:
    """Logs as JSON, without a line for each request."""
    configure_logs(as_json=True, stream=sys.stderr)
    logs._write_request = dict


class Number(BaseModel):
    """Arguments of a job."""

    number: int


def ask_job(database: Database, *, tenant: str = "default", state: str = "waiting") -> str:
    """A job that nobody does, in a state; its id."""
    kind = RunnableJobType(name="tests.count", arguments=Number, run=lambda _: CompletedJob())
    with database.open_writer() as session:
        effect = uuid4().hex
        job_id = enqueue_job(session, kind, Number(number=7), tenant_id=tenant, effect_key=effect)
        session.execute(update(JobRow).where(JobRow.id == job_id).values(state=state))
    return job_id


def store_result(database: Database) -> str:
    """A result that counts, of a node of the default tenant; its id."""
    record = BenchmarkResultReport.model_validate_json(json.dumps(EXAMPLES["report_benchmark_result"]))
    node = Principal(PrincipalKind.NODE, record.node_id, LOCAL.tenant_id, NODE_SCOPES)
    values = benchmarks.parse_result(node, record, record.to_json())
    found = {name: value for name, value in values.items() if value is not None}
    with database.open_writer() as session:
        insert_result(session, {**found, "lease": "current", "received_at": now()})
    return record.result_id


def store_calibration(database: Database) -> str:
    """A calibration of the default tenant; its id."""
    figure = MeasuredFigure(2.88e12, 2.9e12, 2.91e12, 1, 3.35e12, "measured by hbm.copy")
    drawn = DeviceCalibration(
        id="",
        scope=MeasuredScope("cuda", EXAMPLE_IDS["nodes"], "h100-sxm", "hopper", 700.0, 575),
        operators={(OperatorQuantity.BANDWIDTH, None): figure},
    )
    with database.open_writer() as session:
        return calibrations.store_imported(
            session, LOCAL.tenant_id, MeasuredSet(drawn), {"import_id": "example"}
        )


def store_plan(database: Database) -> str:
    """A plan of the default tenant whose search runs; its id."""
    question = PlanRequest.model_validate_json(json.dumps(EXAMPLES["create_plan"]))
    with database.open_writer() as session:
        made = plans.create_plan(session, LOCAL.tenant_id, prepare_pieces(question, build_shipped_snapshot()))
    return made.resource.rpartition("/")[2]


def store_quote(database: Database, asker: str = "token:bob@example.com") -> dict[str, Any]:
    """A quote of the default tenant that somebody has asked for."""
    body = EXAMPLES["create_quote"]
    question = UtilityBillRequest.model_validate_json(json.dumps(body["request"]))
    asked = QuoteSubject(
        operation="utility-bill",
        name=body["name"],
        requests=project_questions("utility_bill", question),
        owns_devices=False,
        cost_center_id=None,
        note=None,
    )
    frozen = build_quote(asked, build_shipped_snapshot(), lambda sources: [{} for _ in sources])
    with database.open_writer() as session:
        made = quotes.create_quote(session, LOCAL.tenant_id, frozen, asker, days=30)
    assert made.body
    return dict(made.body)


def store_approval(database: Database, approver: str = "token:erin@example.com") -> dict[str, Any]:
    """An approval of the default tenant that waits for ``approver``."""
    quote = store_quote(database)
    asker = Principal(PrincipalKind.TOKEN, "bob@example.com", LOCAL.tenant_id, frozenset())
    with database.open_writer() as session:
        _store_policy(session, approver)
        snapshot = build_shipped_snapshot()
        asked = approvals.submit_quote(session, asker, quote["id"], quote["content_digest"], snapshot)
    assert asked.body
    return dict(asked.body)


def _store_policy(session: Writer, approver: str) -> str:
    policy = json.loads(json.dumps(EXAMPLES["create_approval_policy"]))
    policy["steps"][0]["approvers"].append(approver)
    policy["id"] = uuid4().hex
    body = ApprovalPolicyRequest.model_validate_json(json.dumps(policy))
    policies.create_policy(session, LOCAL, body)
    return body.id


def store_policy_change(database: Database, approver: str = "token:erin@example.com") -> str:
    """A change of a policy of the default tenant that waits for ``approver``; its id."""
    store_approval(database, approver)
    with database.open_writer() as session:
        changed = _store_policy(session, approver)
        return policies.delete_policy(session, LOCAL, changed, "*").resource.rpartition("/")[2]


def store_link(database: Database) -> str:
    """A link of an approval of the default tenant; its id."""
    approval_id = store_approval(database)["id"]
    rules = Links(KEYRING, public_url="https://plan.example.com", has_tenant=lambda _: True)
    body = ApprovalLinkRequest.model_validate_json(json.dumps(EXAMPLES["link_approval"]))
    with database.open_writer() as session:
        return rules.create(session, LOCAL, approval_id, body).resource.rpartition("/")[2]


def store_webhook(database: Database) -> str:
    """A webhook of the default tenant with the delivery of the examples; its id."""
    body = WebhookRequest.model_validate_json(json.dumps(EXAMPLES["create_webhook"]))
    (delivery_id,) = EXAMPLES["replay_webhook"]["delivery_ids"]
    with database.open_writer() as session:
        webhook_id = MEANS.webhooks.create(session, LOCAL, body).resource.rpartition("/")[2]
        session.execute(delete(DeliveryRow).where(DeliveryRow.id == delivery_id))  # of another webhook
        delivered = send_test_event(session, LOCAL, webhook_id)
        assert delivered.body
        own = DeliveryRow.id == delivered.body["id"]
        session.execute(update(DeliveryRow).where(own).values(id=delivery_id))
    return webhook_id


class Callers:
    """Makes tenants and keys of an application in tenant mode."""

    def __init__(self, app: FastAPI, database: Database) -> None:
        self._app = app
        self._database = database
        self._writes = Writes(database, KEYRING)
        self._keys = ApiKeys.from_keyring(KEYRING)

    def _write(self, operation: str, do: KeyWrite) -> Any:
        call = WriteContext(LOCAL._replace(id="test"), operation, "", "test")
        answer = json.loads(bytes(self._writes.run(call, None, do).body))
        self._app.state.held_keys.refresh()
        return answer

    def tenant(self, tenant_id: str) -> str:
        body = TenantRequest(id=tenant_id, name=tenant_id)
        self._write("create_tenant", lambda session: create_tenant(session, body))
        return tenant_id

    def node(self, *, tenant: str = "default") -> str:
        """The credential of a node that has just enrolled."""
        enrolments, sent = EnrolmentService(KEYRING), {"installation_id": uuid4().hex, "device": "cpu"}
        creator = LOCAL._replace(tenant_id=tenant)
        made = self._write(
            "create_enrolment_token",
            lambda session: enrolments.create_token(session, creator, EnrolmentTokenRequest()),
        )
        body = NodeEnrolmentRequest.model_validate({**sent, "token": made["token"], "worker_version": "1"})
        with self._database.open_writer() as session:
            return enrolments.enrol_node(session, body, lambda _: True)[1]

    def key(self, *scopes: str, tenant: str = "default") -> str:
        asked = {"name": "test", "tenant_id": tenant, "scopes": scopes}
        body = ApiKeyRequest.model_validate_json(json.dumps(asked))
        made = self._write("create_api_key", lambda session: self._keys.create(session, LOCAL, body))
        secret: str = made["secret"]
        return secret


def bearing(credential: str) -> dict[str, str]:
    """The headers of a caller with a credential."""
    return {"Authorization": f"Bearer {credential}"}


def content_digest(content: bytes) -> str:
    """The digest of a body, as in RFC 9530."""
    return f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
