"""Benchmark runs and results over HTTP: transactions, pages and streams."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from service.audit.service import Call, Writes
from service.benchmarks import export, regressions, repository, service
from service.benchmarks.errors import DigestMismatch, NotAsAsked, SuiteNotFound
from service.benchmarks.schemas import (
    BenchmarkResultQuery,
    BenchmarkRunInput,
    BenchmarkRunQuery,
    ComparisonQuery,
    ExportQuery,
    RegressionQuery,
)
from service.kit.database.engine import Database
from service.kit.http.pages import PageTokens
from service.kit.http.problems import FieldError, PayloadTooLarge
from service.kit.http.web import RawBody, json_response
from service.kit.security.subjects import Subject
from service.nodes.service import Quota
from service.protocol.base import Uuid
from service.protocol.leases import Completion
from service.protocol.results import MOST_RESULT_BYTES, Result
from service.protocol.suites import Suite
from service.schemas.base import ResourceId

ContentDigest = Annotated[
    str,
    Header(
        pattern=r"^sha-256=:[A-Za-z0-9+/]{43}=:$",
        max_length=55,
        description="SHA-256 of the bytes of the body, as in RFC 9530.",
    ),
]
_AT_A_TIME = 500
_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


class BenchmarksFace:
    """Reads and writes of the runs and results of one database, as responses."""

    def __init__(
        self,
        database: Database,
        *,
        writes: Writes,
        tokens: PageTokens,
        suites: Mapping[str, Suite],
        quota: Quota,
    ) -> None:
        self._database = database
        self._writes = writes
        self._tokens = tokens
        self._suites = suites
        self._quota = quota

    def list_suites(self) -> Response:
        """Every suite."""
        items = [suite.model_dump(mode="json") for suite in self._suites.values()]
        return json_response({"items": items, "next_page_token": None})

    def get_suite(self, suite_id: str) -> Response:
        """One suite."""
        suite = self._suites.get(suite_id)
        if suite is None:
            raise SuiteNotFound
        return json_response(suite.model_dump(mode="json"))

    def create_run(self, call: Call, body: BenchmarkRunInput) -> Response:
        """A new run."""
        sent, tenant_id = body.model_dump(mode="json"), call.subject.tenant_id
        return self._writes.run(
            call, sent, lambda session: service.ask(session, tenant_id, body, self._suites)
        )

    def cancel_run(self, call: Call, run_id: str) -> Response:
        """A run that is told to end."""
        tenant_id = call.subject.tenant_id
        return self._writes.run(call, None, lambda session: service.cancel(session, tenant_id, run_id))

    def validate_run(self, call: Call, run_id: str) -> Response:
        """A run that is validated once more."""
        tenant_id = call.subject.tenant_id
        return self._writes.run(
            call, None, lambda session: service.validate_again(session, tenant_id, run_id)
        )

    def list_runs(self, tenant_id: str, query: BenchmarkRunQuery) -> Response:
        """A page of runs."""
        filters = json.dumps(["benchmark-runs", tenant_id, query.state, query.node_id, query.suite_id])
        with self._database.reading() as session:
            rows = repository.runs(
                session,
                tenant_id,
                conditions=service.run_conditions(query),
                after=self._after(query.page_token, filters),
                limit=query.limit + 1,
            )
            shown = service.shown_runs(session, tenant_id, rows)
        return json_response(self._tokens.page(shown, query.limit, filters, "created_at", "id"))

    def get_run(self, tenant_id: str, run_id: str) -> Response:
        """One run with its figures."""
        with self._database.reading() as session:
            return json_response(service.whole_run(session, tenant_id, run_id))

    def report(self, node: Subject, result_id: str, content: bytes, result: Result) -> Response:
        """The receipt of a result, once its transaction is committed."""
        if result.result_id != result_id:
            detail = "is not the id of the address"
            raise NotAsAsked("", FieldError("/result_id", "ANOTHER_RESULT", detail))
        # Computed before the transaction: an embedded database has one writer.
        values = service.read(node, result, content)
        with self._database.writing() as session:
            receipt = service.keep(session, node, result, values, self._quota)
        return json_response(receipt.model_dump(mode="json"))

    def complete(self, node: Subject, lease_id: str, completion: Completion) -> Response:
        """What became of a run whose node is done with it."""
        with self._database.writing() as session:
            completed = service.complete(session, node, lease_id, completion)
        return json_response(completed.model_dump(mode="json"))

    def list_results(self, tenant_id: str, query: BenchmarkResultQuery) -> Response:
        """A page of results."""
        filters = json.dumps(["benchmark-results", tenant_id, query.allowed(), query.verdict])
        with self._database.reading() as session:
            after = self._after(query.page_token, filters)
            shown = service.listed_results(session, tenant_id, query, after=after, limit=query.limit + 1)
        return json_response(self._tokens.page(shown, query.limit, filters, "received_at", "id"))

    def get_result(self, tenant_id: str, result_id: str) -> Response:
        """One result, its record as it was sent."""
        with self._database.reading() as session:
            shown, record = service.whole_result(session, tenant_id, result_id)
        content = to_json(shown)[:-1] + b',"record":' + record.encode() + b"}"
        return Response(content, media_type="application/json")

    def compare(self, tenant_id: str, query: ComparisonQuery) -> Response:
        """Runs beside a baseline."""
        with self._database.reading() as session:
            return json_response(service.compare(session, tenant_id, query))

    def regressions(self, tenant_id: str, query: RegressionQuery) -> Response:
        """What has become worse."""
        with self._database.reading() as session:
            return json_response(regressions.found(session, tenant_id, query))

    def export(self, tenant_id: str, query: ExportQuery) -> Response:
        """Results as a table, streamed."""
        write = {"csv": export.as_csv, "parquet": export.as_parquet}[query.format]
        name = f"benchmark-results.{query.format}"
        return StreamingResponse(
            write(self._pages(tenant_id, query)),
            media_type=_MEDIA_TYPES[query.format],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )

    def _pages(self, tenant_id: str, query: ExportQuery) -> Iterator[Sequence[dict[str, Any]]]:
        """Results some at a time, each in a transaction of its own: whoever reads slowly holds none."""
        after = None
        while True:
            with self._database.reading() as session:
                shown = service.listed_results(session, tenant_id, query, after=after, limit=_AT_A_TIME)
            if shown:
                yield shown
            if len(shown) < _AT_A_TIME:
                return
            after = (shown[-1]["received_at"], shown[-1]["id"])

    def _after(self, token: str, filters: str) -> repository.After | None:
        if not token:
            return None
        time, row_id = self._tokens.decode(token, filters)
        return datetime.fromisoformat(time), row_id


def _checked(content_digest: ContentDigest, content: RawBody) -> bytes:
    if len(content) > MOST_RESULT_BYTES:
        raise PayloadTooLarge(f"A result has {MOST_RESULT_BYTES} bytes at most")
    expected = f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
    if expected != content_digest:
        detail = "is not the digest of the body"
        raise DigestMismatch("", FieldError("/header/Content-Digest", "DIFFERS", detail))
    return content


def _face(request: Request) -> BenchmarksFace:
    face: BenchmarksFace = request.app.state.benchmarks
    return face


Face = Annotated[BenchmarksFace, Depends(_face)]
Content = Annotated[bytes, Depends(_checked)]
"""The bytes of a record, which have arrived as they were sent."""
RunPath = Annotated[ResourceId, Path(description="Id of the benchmark run.")]
ResultPath = Annotated[Uuid, Path(description="Id of the result, made by its node.")]
SuitePath = Annotated[ResourceId, Path(description="Id of the suite.")]
LeasePath = Annotated[ResourceId, Path(description="Id of the lease, which is that of its benchmark run.")]
