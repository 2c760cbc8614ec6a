"""Operations on benchmark suites, runs and results, and on the completion of leases."""

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
from service.kit.http.bodies import BodyLimits
from service.kit.http.pages import NEWEST_FIRST, newest_first
from service.kit.http.problems import FieldError
from service.kit.http.web import LOCATED, RawBody, api_router, build_route_class, from_state, json_response
from service.kit.security.principals import build_permission
from service.nodes.service import CLAIM, CallingNode, NodeQuota
from service.protocol.base import Uuid
from service.protocol.leases import LeaseCompletion, LeaseCompletionRequest
from service.protocol.results import (
    MOST_RESULT_BYTES,
    MOST_RESULT_VALUES,
    BenchmarkResultReceipt,
    BenchmarkResultReport,
)
from service.protocol.suites import BenchmarkSuite
from service.schemas.base import ResourceId

suites = api_router("/v1/benchmark-suites", tag="benchmark-suites")
runs = api_router("/v1/benchmark-runs", tag="benchmark-runs")
results = api_router("/v1/benchmark-results", tag="benchmark-results")
reporting = api_router(
    "/v1/benchmark-results",
    tag="benchmark-results",
    route_class=build_route_class(
        build_permission("benchmark-results", "report"), BodyLimits(MOST_RESULT_VALUES, MOST_RESULT_BYTES)
    ),
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
    expected = f"sha-256=:{b64encode(sha256(content).digest()).decode()}:"
    if expected != content_digest:
        detail = "does not match the body"
        raise DigestMismatch("", FieldError("/header/Content-Digest", "DIFFERS", detail))
    return content


Content = Annotated[bytes, Depends(_checked)]
"""The bytes of a record, checked against their digest."""


@suites.get("", summary="List benchmark suites", response_model=BenchmarkSuitePage)
def list_benchmark_suites(suites: Suites) -> Response:
    """Lists every suite that comes with the service."""
    items = [suite.model_dump(mode="json") for suite in suites.values()]
    return json_response({"items": items, "next_page_token": None})


@suites.get("/{id:name}", summary="Get a benchmark suite", response_model=BenchmarkSuite)
def get_benchmark_suite(suites: Suites, id: SuitePath) -> Response:
    """Returns a suite: its benchmarks, their duration, and the meaning of their figures."""
    if id not in suites:
        raise SuiteNotFound
    return json_response(suites[id].model_dump(mode="json"))


@runs.get("", summary="List benchmark runs", response_model=BenchmarkRunPage)
def list_benchmark_runs(read: Read, query: Annotated[BenchmarkRunQuery, Query()]) -> Response:
    """Lists the tenant's benchmark runs, the newest first."""
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


@runs.post(
    "", summary="Request a benchmark run", status_code=201, response_model=BenchmarkRun, responses=LOCATED
)
def create_benchmark_run(write: Write, suites: Suites, body: BenchmarkRunRequest) -> Response:
    """Requests a run of a suite on a node."""
    return write.run(body, lambda session: service.create_run(session, write.tenant_id, body, suites))


@runs.get("/{id:name}", summary="Get a benchmark run with its figures", response_model=BenchmarkRun)
def get_benchmark_run(read: Read, id: RunPath) -> Response:
    """Returns a benchmark run with its progress and its figures."""
    with read.session() as session:
        return json_response(service.get_run(session, read.tenant_id, id))


@runs.post("/{id:name}:cancel", summary="Cancel a benchmark run", response_model=BenchmarkRun)
def cancel_benchmark_run(write: Write, id: RunPath) -> Response:
    """Cancels a benchmark run. A waiting run ends at once, any other when its node learns of it."""
    return write.run(None, lambda session: service.cancel_run(session, write.tenant_id, id))


@runs.post(
    "/{id:name}:validate",
    summary="Validate the results of a run again",
    status_code=202,
    response_model=BenchmarkRun,
)
def validate_benchmark_run(write: Write, id: RunPath) -> Response:
    """Validates the results of a run again, with the present peers and the present catalog."""
    return write.run(None, lambda session: service.request_validation(session, write.tenant_id, id))


@results.get("", summary="List benchmark results", response_model=BenchmarkResultPage)
def list_benchmark_results(read: Read, query: Annotated[BenchmarkResultQuery, Query()]) -> Response:
    """Lists the tenant's results, the last received first."""
    order = newest_first("received_at")
    page = read.page(query, order, "benchmark-results", query.get_allowed_values(), query.verdict)
    with read.session() as session:
        found = service.list_results(session, read.tenant_id, query, after=page.after, limit=page.limit)
        return json_response(page.to_response(found))


@results.get(
    ":compare",
    summary="Compare results over time and across nodes",
    response_model=BenchmarkComparison,
    responses={404: {}},
)
def compare_benchmark_results(read: Read, query: Annotated[ComparisonQuery, Query()]) -> Response:
    """Compares the runs of one benchmark on equal hardware with a baseline, over time and across nodes."""
    with read.session() as session:
        return json_response(service.compare_runs(session, read.tenant_id, query))


@results.get(":regressions", summary="List regressions of benchmarks", response_model=BenchmarkRegressionList)
def list_benchmark_regressions(read: Read, query: Annotated[RegressionQuery, Query()]) -> Response:
    """Lists regressions: against earlier runs of a node, and against other nodes of equal hardware.

    A difference counts if the samples lie apart, in time and in cycles, as in comparisons.
    """
    with read.session() as session:
        return json_response(regressions.find_regressions(session, read.tenant_id, query))


@results.get(
    ":export", summary="Export results as CSV or Parquet", response_class=Response, responses=EXPORTED
)
def export_benchmark_results(read: Read, query: Annotated[ExportQuery, Query()]) -> Response:
    """Exports results as CSV or Parquet with one row each, the last received first."""
    write = {"csv": export.render_csv, "parquet": export.render_parquet}[query.format]
    name = f"benchmark-results.{query.format}"
    return StreamingResponse(
        write(_pages(read, query)),
        media_type=_MEDIA_TYPES[query.format],
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _pages(read: ReadRequest, query: ExportQuery) -> Iterator[Sequence[dict[str, Any]]]:
    """Yields results in batches, each read in a transaction of its own; a slow reader holds none."""
    after = None
    while True:
        with read.session() as session:
            found = service.list_results(session, read.tenant_id, query, after=after, limit=_AT_A_TIME)
        if found:
            yield found
        if len(found) < _AT_A_TIME:
            return
        after = (found[-1]["received_at"], found[-1]["id"])


@results.get("/{id:name}", summary="Get a result with its raw samples", response_model=StoredBenchmarkResult)
def get_benchmark_result(read: Read, id: ResultPath) -> Response:
    """Returns a result with its raw samples, and the figures that the service computed from them."""
    with read.session() as session:
        result, record = service.get_result(session, read.tenant_id, id)
    content = to_json(result)[:-1] + b',"record":' + record.encode() + b"}"
    return Response(content, media_type="application/json")


@reporting.put(
    "/{id:name}", summary="Report a result of the calling node", response_model=BenchmarkResultReceipt
)
def report_benchmark_result(
    *,
    transactions: Transactions,
    quota: NodeQuota,
    node: CallingNode,
    id: ResultPath,
    content: Content,
    body: BenchmarkResultReport,
) -> Response:
    """Stores a result as it is sent, once, however often it is sent. Only for the node that measured it.

    The result is stored even if its lease has ended, and the receipt says so. The same id with other content
    is refused, as is a result of a run that the node was not granted, and more than a node may send in a day.
    A result has at most 22,000 members and elements, and 1 MiB.
    """
    if body.result_id != id:
        raise NotAsAsked("", FieldError("/result_id", "ANOTHER_RESULT", "differs from the id in the address"))
    # Computed before the transaction: an embedded database has one writer.
    values = service.parse_result(node, body, content)
    with transactions.open_writer() as session:
        receipt = service.keep(session, node, body, values, quota)
    return json_response(receipt.model_dump(mode="json"))


@leases.post("/{id:name}:complete", summary="Complete a lease", response_model=LeaseCompletion)
def complete_lease(
    transactions: Transactions, node: CallingNode, id: LeasePath, body: LeaseCompletionRequest
) -> Response:
    """Completes a lease once every result that it names is stored. Only for the node that holds it."""
    with transactions.open_writer() as session:
        completed = service.complete_lease(session, node, id, body)
    return json_response(completed.model_dump(mode="json"))
