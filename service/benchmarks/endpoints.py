"""Operations on benchmark suites, runs and results, and the end of a lease."""

from typing import Annotated, Any

from fastapi import Query, Response

from service.audit.service import Caller, WriteCall
from service.benchmarks.face import Content, Face, LeasePath, ResultPath, RunPath, SuitePath
from service.benchmarks.schemas import (
    BenchmarkComparison,
    BenchmarkResultPage,
    BenchmarkResultQuery,
    BenchmarkRun,
    BenchmarkRunInput,
    BenchmarkRunPage,
    BenchmarkRunQuery,
    ComparisonQuery,
    ExportQuery,
    RegressionList,
    RegressionQuery,
    StoredBenchmarkResult,
    SuitePage,
)
from service.kit.http.web import LOCATED, api_router, route_needing
from service.kit.security.subjects import permission
from service.nodes.service import CLAIM, AskingNode
from service.protocol.leases import Completed, Completion
from service.protocol.results import Receipt, Result
from service.protocol.suites import Suite

suites = api_router("/v1/benchmark-suites", tag="benchmark-suites")
runs = api_router("/v1/benchmark-runs", tag="benchmark-runs")
results = api_router("/v1/benchmark-results", tag="benchmark-results")
reporting = api_router(
    "/v1/benchmark-results",
    tag="benchmark-results",
    route_class=route_needing(permission("benchmark-results", "report")),
)
leases = api_router("/v1/leases", tag="leases", route_class=route_needing(CLAIM))

_TEXT = {"type": "string"}
_BYTES = {"type": "string", "format": "binary"}
EXPORTED: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": _TEXT}, "application/vnd.apache.parquet": {"schema": _BYTES}}}
}


@suites.get("", response_model=SuitePage)
def list_benchmark_suites(face: Face) -> Response:
    """Every suite that comes with the service."""
    return face.list_suites()


@suites.get("/{id:name}", response_model=Suite)
def get_benchmark_suite(face: Face, id: SuitePath) -> Response:
    """A suite: what is measured, how long, and what the figures mean."""
    return face.get_suite(id)


@runs.get("", response_model=BenchmarkRunPage)
def list_benchmark_runs(face: Face, caller: Caller, query: Annotated[BenchmarkRunQuery, Query()]) -> Response:
    """A page of the tenant's runs, the newest first."""
    return face.list_runs(caller.tenant_id, query)


@runs.post("", status_code=201, response_model=BenchmarkRun, responses=LOCATED)
def create_benchmark_run(face: Face, call: WriteCall, body: BenchmarkRunInput) -> Response:
    """Ask for a suite to be run on a node."""
    return face.create_run(call, body)


@runs.get("/{id:name}", response_model=BenchmarkRun)
def get_benchmark_run(face: Face, caller: Caller, id: RunPath) -> Response:
    """A run with its progress and its figures."""
    return face.get_run(caller.tenant_id, id)


@runs.post("/{id:name}:cancel", response_model=BenchmarkRun)
def cancel_benchmark_run(face: Face, call: WriteCall, id: RunPath) -> Response:
    """Let a run end: at once while it waits, or when its node hears of it."""
    return face.cancel_run(call, id)


@runs.post("/{id:name}:validate", status_code=202, response_model=BenchmarkRun)
def validate_benchmark_run(face: Face, call: WriteCall, id: RunPath) -> Response:
    """Validate the results of a run again, with the peers and the catalog as they are now."""
    return face.validate_run(call, id)


@results.get("", response_model=BenchmarkResultPage)
def list_benchmark_results(
    face: Face, caller: Caller, query: Annotated[BenchmarkResultQuery, Query()]
) -> Response:
    """A page of the tenant's results, the last received first."""
    return face.list_results(caller.tenant_id, query)


@results.get(":compare", response_model=BenchmarkComparison, responses={404: {}})
def compare_benchmark_results(
    face: Face, caller: Caller, query: Annotated[ComparisonQuery, Query()]
) -> Response:
    """The runs of one benchmark on equal hardware beside a baseline: over time, and across nodes."""
    return face.compare(caller.tenant_id, query)


@results.get(":regressions", response_model=RegressionList)
def list_benchmark_regressions(
    face: Face, caller: Caller, query: Annotated[RegressionQuery, Query()]
) -> Response:
    """What has become worse: against earlier runs of a node, and against other nodes of equal hardware.

    A difference is real where the samples lie apart, in time and in cycles, as in comparisons.
    """
    return face.regressions(caller.tenant_id, query)


@results.get(":export", response_class=Response, responses=EXPORTED)
def export_benchmark_results(face: Face, caller: Caller, query: Annotated[ExportQuery, Query()]) -> Response:
    """Results as a table with a row each, the last received first, as CSV or Parquet."""
    return face.export(caller.tenant_id, query)


@results.get("/{id:name}", response_model=StoredBenchmarkResult)
def get_benchmark_result(face: Face, caller: Caller, id: ResultPath) -> Response:
    """A result with its raw samples, and what the service computed from them."""
    return face.get_result(caller.tenant_id, id)


@reporting.put("/{id:name}", response_model=Receipt)
def report_benchmark_result(
    face: Face, node: AskingNode, id: ResultPath, content: Content, body: Result
) -> Response:
    """Store a result as it is sent, once, however often it is sent; for the node that measured it.

    It is kept whatever became of its lease, and the receipt says so. The same id with other content is
    refused, and so is what is of no run that the node was granted, or more than a node may hand in a day.
    """
    return face.report(node, id, content, body)


@leases.post("/{id:name}:complete", response_model=Completed)
def complete_lease(face: Face, node: AskingNode, id: LeasePath, body: Completion) -> Response:
    """End a lease, for the node that holds it: only once every result that it names is stored."""
    return face.complete(node, id, body)
