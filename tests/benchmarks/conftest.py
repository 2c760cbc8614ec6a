"""A fleet over HTTP: nodes and an operator that are known by name, and suites of the tests."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from service.audit.tables import AuditEventRow
from service.benchmarks.validation.jobs import build_validation_kind
from service.benchmarks.validation.tables import BenchmarkValidationRow
from service.kit.database.engine import Database
from service.kit.http.admission import Admission, build_unauthorized
from service.kit.security.principals import LOCAL, Principal
from service.nodes.service import IntakeQuota
from service.nodes.tables import LeaseRow, NodeInventoryRow
from service.protocol.leases import BenchmarkLease
from service.protocol.nodes import NodeHost, NodeInventory
from service.protocol.results import BenchmarkResultReport
from tests.applications import MEANS, attach, bearing, content_digest
from tests.benchmarks.records import INVENTORY_SHA256, SUITE, record
from tests.clocks import START
from tests.conftest import Client
from tests.nodes import fleet
from tests.working import do_all

QUOTA = IntakeQuota(results=1000, result_bytes=2**30, inventories=0, inventory_bytes=0)
HOST = NodeHost(
    operating_system="Linux",
    kernel="6.12",
    architecture="x86_64",
    cpu_count=2,
    cpu_model="Xeon of the tests",
)


def refusal(answer: Any) -> tuple[int, str, list[str]]:
    """Status, code and pointers of a problem."""
    problem = answer.json()
    return answer.status_code, problem["code"], [error["pointer"] for error in problem["errors"]]


class Fleet:
    """Calls an application as an operator, or as one of the nodes."""

    def __init__(self, app: FastAPI, database: Database) -> None:
        self.app, self.database = app, database
        self.subjects: dict[str, Principal] = {"operator": LOCAL, "other": LOCAL._replace(tenant_id="other")}
        app.state.admission = Admission(self._authenticate, requests_per_minute=0)
        app.state.suites, app.state.node_quota = {SUITE.id: SUITE}, QUOTA
        self._client = Client(app)

    async def _authenticate(self, credential: str) -> Principal:
        if credential not in self.subjects:
            raise build_unauthorized()
        return self.subjects[credential]

    def call(
        self,
        method: str,
        url: str,
        *,
        by: str = "operator",
        headers: dict[str, str] | None = None,
        **options: Any,
    ) -> httpx.Response:
        """Call an operation as somebody."""
        return self._client.request(method, url, headers={**bearing(by), **(headers or {})}, **options)

    def get(self, url: str, by: str = "operator", **params: Any) -> Any:
        """What an operator reads."""
        answer = self.call("GET", url, by=by, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def node(self, name: str, *, tenant: str = "default", cpu_model: str = "Xeon of the tests") -> str:
        """A node that has enrolled and said what it is made of."""
        self.subjects[name] = fleet.add_node(self.database, name, tenant=tenant)
        host = HOST.model_copy(update={"cpu_model": cpu_model})
        with self.database.open_writer() as session:
            session.add(
                NodeInventoryRow(
                    tenant_id=tenant,
                    node_id=name,
                    content_sha256=INVENTORY_SHA256,
                    inventory=NodeInventory(device="cpu", host=host).model_dump(mode="json"),
                    created_at=START,
                )
            )
        return name

    def run(self, by: str = "operator", **members: Any) -> str:
        """The id of a new run."""
        made = self.call("POST", "/v1/benchmark-runs", by=by, json={"suite_id": SUITE.id, **members})
        assert made.status_code == 201, made.text
        run_id: str = made.json()["id"]
        return run_id

    def claim(self, node: str) -> BenchmarkLease:
        """The lease that a node gets."""
        lease: BenchmarkLease | None = fleet.claim(self.database, self.subjects[node])
        assert lease is not None
        return lease

    def lose(self, lease: BenchmarkLease) -> None:
        """Let a lease end with nobody saying how."""
        with self.database.open_writer() as session:
            session.execute(update(LeaseRow).where(LeaseRow.id == lease.id).values(due_at=START))

    def measured(
        self, number: int, node: str, lease: BenchmarkLease, **members: Any
    ) -> BenchmarkResultReport:
        """A record that a node made under a lease."""
        held = {
            "run_id": lease.id,
            "fencing_token": lease.fencing_token,
            "attempt": lease.attempt,
            "nonce": lease.nonce,
            "seed": lease.seed,
        }
        return record(number, node_id=node, **{**held, **members})

    def put(
        self, node: str, result: BenchmarkResultReport, *, content: bytes | None = None, **headers: str
    ) -> httpx.Response:
        """Report a result."""
        content = content or result.to_json()
        given = {"content-type": "application/json", "content-digest": content_digest(content), **headers}
        url = f"/v1/benchmark-results/{result.result_id}"
        return self.call("PUT", url, by=node, content=content, headers=given)

    def reported(
        self, number: int, node: str, lease: BenchmarkLease, **members: Any
    ) -> BenchmarkResultReport:
        """A record that was measured and reported."""
        result = self.measured(number, node, lease, **members)
        answer = self.put(node, result)
        assert answer.status_code == 200, answer.text
        return result

    def complete(
        self,
        node: str,
        lease: BenchmarkLease,
        *results: BenchmarkResultReport,
        outcome: str = "completed",
        **members: Any,
    ) -> httpx.Response:
        """End a lease."""
        named = [
            {"result_id": one.result_id, "content_sha256": sha256(one.to_json()).hexdigest()}
            for one in results
        ]
        body = {"fencing_token": lease.fencing_token, "outcome": outcome, "results": named, **members}
        return self.call("POST", f"/v1/leases/{lease.id}:complete", by=node, json=body)

    def measured_run(self, numbers: range, node: str, **members: Any) -> str:
        """The id of a run that a node completed, with a repeat for each number."""
        run_id = self.run(node_id=node)
        lease = self.claim(node)
        results = [
            self.reported(number, node, lease, repeat=repeat, **members)
            for repeat, number in enumerate(numbers, start=1)
        ]
        assert self.complete(node, lease, *results).json() == {"state": "completed"}
        return run_id

    def validate(self) -> int:
        """Do what validation was asked for; how many runs that were."""
        return do_all(self.database, build_validation_kind(MEANS.writes))

    def validations(self) -> dict[str, BenchmarkValidationRow]:
        """What validation says, by the id of the result."""
        with self.database.open_reader() as session:
            return {row.result_id: row for row in session.scalars(select(BenchmarkValidationRow))}

    def results(self, by: str = "operator", **filters: Any) -> list[dict[str, Any]]:
        """Results as callers see them, the last received first."""
        items: list[dict[str, Any]] = self.get("/v1/benchmark-results", by=by, **filters)["items"]
        return items

    def audited(self, operation: str) -> list[str]:
        """What an operation changed, by the chain of the tenant."""
        with self.database.open_reader() as session:
            events = session.scalars(select(AuditEventRow).where(AuditEventRow.operation == operation))
            return [event.resource for event in events]

    def close(self) -> None:
        """End the application."""
        self._client.close()


@pytest.fixture
def nodes(app: FastAPI, database: Database) -> Iterator[Fleet]:
    """A fleet without a node yet."""
    attach(app, database)
    made = Fleet(app, database)
    yield made
    made.close()
