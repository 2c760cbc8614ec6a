"""Operations on benchmark suites, runs and results, and the end of a lease."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic_core import to_json

from service.audit.service import Read, ReadRequest, Transactions, Write
from service.benchmarks import export, regressions, repository, service
from service.benchmarks.errors import DigestMismatch, NotAsAsked, SuiteNotFound
from service.benchmarks.schemas import (
    BenchmarkComparison,
    BenchmarkRegressionList,
    BenchmarkResultPage,
    BenchmarkResultQuery,
    BenchmarkRun,
    BenchmarkRunPage,
    BenchmarkRunQuery,
    BenchmarkRunRequest,
    BenchmarkSuitePage,
    ComparisonQuery,
    ExportQuery,
    RegressionQuery,
    StoredBenchmarkResult,
)
from service.kit.http.pages import NEWEST_FIRST, newest_first
from service.kit.http.problems import FieldError, PayloadTooLarge
from service.kit.http.web import LOCATED, RawBody, api_router, build_route_class, from_state, json_response
from service.kit.security.principals import build_permission
from service.nodes.service import CLAIM, CallingNode, NodeQuota
from service.protocol.base import Uuid
from service.protocol.leases import LeaseCompletion, LeaseCompletionRequest
from service.protocol.results import MOST_RESULT_BYTES, BenchmarkResultReceipt, BenchmarkResultReport
from service.protocol.suites import BenchmarkSuite
from service.schemas.base import ResourceId

suites = api_router("/v1/benchmark-suites", tag="benchmark-suites")
runs = api_router("/v1/benchmark-runs", tag="benchmark-runs")
results = api_router("/v1/benchmark-results", tag="benchmark-results")
reporting = api_router(
    "/v1/benchmark-results",
    tag="benchmark-results",
    route_class=build_route_class(build_permission("benchmark-results", "report")),
)
leases = api_router("/v1/leases", tag="leases", route_class=build_route_class(CLAIM))

_TEXT = {"type": "string"}
_BYTES = {"type": "string", "format": "binary"}
EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": _TEXT}, "application/vnd.apache.parquet": {"schema": _BYTES}}}
}
_AT_A_TIME = 500
_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}

Suites = Annotated[Mapping[str, BenchmarkSuite], from_state("suites")]
RunPath = Annotated[ResourceId, Path(description="Id of the benchmark run.")]
ResultPath = Annotated[Uuid, Path(description="Id of the result, made by its node.")]
SuitePath = Annotated[ResourceId, Path(description="Id of the suite.")]
LeasePath = Annotated[ResourceId, Path(description="Id of the lease, which is that of its benchmark run.")]
ContentDigest = Annotated[
    str,
    Header(
        pattern=r"^sha-256=:[A-Za-z0-9+/]{43}=:$",
        max_length=55,
        description="SHA-256 of the bytes of the body, as in RFC 9530.",
    ),
]


def _checked(content_digest: ContentDigest, content: RawBody) -> bytes:
    if len(content) > MOST_RESULT_BYTES:
        raise PayloadTooLarge(f"A result has {MOST_RESULT_BYTES} bytes at most")
    expected = f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
    if expected != content_digest:
        detail = "is not the digest of the body"
        raise DigestMismatch("", FieldError("/header/Content-Digest", "DIFFERS", detail))
    return content


Content = Annotated[bytes, Depends(_checked)]
"""The bytes of a record, which have arrived as they were sent."""


@suites.get("", response_model=BenchmarkSuitePage)
def list_benchmark_suites(suites: Suites) -> Response:
    """Every suite that comes with the service."""
    items = [suite.model_dump(mode="json") for suite in suites.values()]
    return json_response({"items": items, "next_page_token": None})


@suites.get("/{id:name}", response_model=BenchmarkSuite)
def get_benchmark_suite(suites: Suites, id: SuitePath) -> Response:
    """A suite: what is measured, how long, and what the figures mean."""
    if id not in suites:
        raise SuiteNotFound
    return json_response(suites[id].model_dump(mode="json"))


@runs.get("", response_model=BenchmarkRunPage)
def list_benchmark_runs(read: Read, query: Annotated[BenchmarkRunQuery, Query()]) -> Response:
    """A page of the tenant's runs, the newest first."""
    page = read.page(query, NEWEST_FIRST, "benchmark-runs", query.state, query.node_id, query.suite_id)
    with read.session() as session:
        rows = repository.list_runs(
            session,
            read.tenant_id,
            conditions=service.build_run_conditions(query),
            after=page.after,
            limit=page.limit,
        )
        return json_response(page.to_response(service.runs_to_response(session, read.tenant_id, rows)))


@runs.post("", status_code=201, response_model=BenchmarkRun, responses=LOCATED)
def create_benchmark_run(write: Write, suites: Suites, body: BenchmarkRunRequest) -> Response:
    """Ask for a suite to be run on a node."""
    return write.run(body, lambda session: service.create_run(session, write.tenant_id, body, suites))


@runs.get("/{id:name}", response_model=BenchmarkRun)
def get_benchmark_run(read: Read, id: RunPath) -> Response:
    """A run with its progress and its figures."""
    with read.session() as session:
        return json_response(service.get_run(session, read.tenant_id, id))


@runs.post("/{id:name}:cancel", response_model=BenchmarkRun)
def cancel_benchmark_run(write: Write, id: RunPath) -> Response:
    """Let a run end: at once while it waits, or when its node hears of it."""
    return write.run(None, lambda session: service.cancel_run(session, write.tenant_id, id))


@runs.post("/{id:name}:validate", status_code=202, response_model=BenchmarkRun)
def validate_benchmark_run(write: Write, id: RunPath) -> Response:
    """Validate the results of a run again, with the peers and the catalog as they are now."""
    return write.run(None, lambda session: service.request_validation(session, write.tenant_id, id))


@results.get("", response_model=BenchmarkResultPage)
def list_benchmark_results(read: Read, query: Annotated[BenchmarkResultQuery, Query()]) -> Response:
    """A page of the tenant's results, the last received first."""
    order = newest_first("received_at")
    page = read.page(query, order, "benchmark-results", query.get_allowed_values(), query.verdict)
    with read.session() as session:
        found = service.list_results(session, read.tenant_id, query, after=page.after, limit=page.limit)
        return json_response(page.to_response(found))


@results.get(":compare", response_model=BenchmarkComparison, responses={404: {}})
def compare_benchmark_results(read: Read, query: Annotated[ComparisonQuery, Query()]) -> Response:
    """The runs of one benchmark on equal hardware beside a baseline: over time, and across nodes."""
    with read.session() as session:
        return json_response(service.compare_runs(session, read.tenant_id, query))


@results.get(":regressions", response_model=BenchmarkRegressionList)
def list_benchmark_regressions(read: Read, query: Annotated[RegressionQuery, Query()]) -> Response:
    """What has become worse: against earlier runs of a node, and against other nodes of equal hardware.

    A difference is real where the samples lie apart, in time and in cycles, as in comparisons.
    """
    with read.session() as session:
        return json_response(regressions.find_regressions(session, read.tenant_id, query))


@results.get(":export", response_class=Response, responses=EXPORTED)
def export_benchmark_results(read: Read, query: Annotated[ExportQuery, Query()]) -> Response:
    """Results as a table with a row each, the last received first, as CSV or Parquet."""
    write = {"csv": export.render_csv, "parquet": export.render_parquet}[query.format]
    name = f"benchmark-results.{query.format}"
    return StreamingResponse(
        write(_pages(read, query)),
        media_type=_MEDIA_TYPES[query.format],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _pages(read: ReadRequest, query: ExportQuery) -> Iterator[Sequence[dict[str, Any]]]:
    """Results some at a time, each in a transaction of its own: whoever reads slowly holds none."""
    after = None
    while True:
        with read.session() as session:
            found = service.list_results(session, read.tenant_id, query, after=after, limit=_AT_A_TIME)
        if found:
            yield found
        if len(found) < _AT_A_TIME:
            return
        after = (found[-1]["received_at"], found[-1]["id"])


@results.get("/{id:name}", response_model=StoredBenchmarkResult)
def get_benchmark_result(read: Read, id: ResultPath) -> Response:
    """A result with its raw samples, and what the service computed from them."""
    with read.session() as session:
        result, record = service.get_result(session, read.tenant_id, id)
    content = to_json(result)[:-1] + b',"record":' + record.encode() + b"}"
    return Response(content, media_type="application/json")


@reporting.put("/{id:name}", response_model=BenchmarkResultReceipt)
def report_benchmark_result(
    *,
    transactions: Transactions,
    quota: NodeQuota,
    node: CallingNode,
    id: ResultPath,
    content: Content,
    body: BenchmarkResultReport,
) -> Response:
    """Store a result as it is sent, once, however often it is sent; for the node that measured it.

    It is kept whatever became of its lease, and the receipt says so. The same id with other content is
    refused, and so is what is of no run that the node was granted, or more than a node may hand in a day.
    """
    if body.result_id != id:
        raise NotAsAsked("", FieldError("/result_id", "ANOTHER_RESULT", "is not the id of the address"))
    # Computed before the transaction: an embedded database has one writer.
    values = service.parse_result(node, body, content)
    with transactions.open_writer() as session:
        receipt = service.keep(session, node, body, values, quota)
    return json_response(receipt.model_dump(mode="json"))


@leases.post("/{id:name}:complete", response_model=LeaseCompletion)
def complete_lease(
    transactions: Transactions, node: CallingNode, id: LeasePath, body: LeaseCompletionRequest
) -> Response:
    """End a lease, for the node that holds it: only once every result that it names is stored."""
    with transactions.open_writer() as session:
        completed = service.complete_lease(session, node, id, body)
    return json_response(completed.model_dump(mode="json"))
