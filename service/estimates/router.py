"""Operations on estimates and bills of tariffs. None of them touches the database."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from fastapi import Request, Response
from pydantic import TypeAdapter

from service.estimates import (
    comparison,
    cost,
    focus,
    frontier,
    memory,
    power_cap,
    shift,
    site_comparison,
    summary,
    tariff_bill,
    throughput,
    utility_bill,
)
from service.estimates.service import ESTIMATES, NoSoundEstimate, answer_question
from service.evidence.snapshot import REVISION_DIGITS, get_requested_snapshot
from service.kit.http.cancellation import check_cancelled
from service.kit.http.long_work import DeferredAnswer
from service.kit.http.problems import FieldError
from service.kit.http.web import (
    BODY_BYTES,
    CSV,
    OffloadedWork,
    ReadOnlyRoute,
    RenderedJson,
    api_router,
    csv_response,
)
from service.planning.tariff.allowance import Allowance
from service.resolve.catalog import CatalogView
from service.resolve.length import is_long, is_search
from service.schemas.answers import (
    MemoryEstimate,
    MemoryEstimateList,
    ThroughputEstimate,
    ThroughputEstimateList,
)
from service.schemas.base import StrictModel
from service.schemas.bill_answers import UtilityBill, UtilityBillList
from service.schemas.cost_answers import CostComparisonEstimate, CostEstimate, CostEstimateList
from service.schemas.estimates import (
    CostComparisonRequest,
    CostEstimateBatchRequest,
    CostEstimateRequest,
    CostExportRequest,
    MemoryEstimateBatchRequest,
    MemoryEstimateRequest,
    RunEstimateRequest,
    ThroughputEstimateBatchRequest,
    ThroughputEstimateRequest,
    UtilityBillBatchRequest,
    UtilityBillExportRequest,
    UtilityBillRequest,
)
from service.schemas.frontier import ThroughputFrontier, ThroughputFrontierRequest
from service.schemas.summary import SummaryEstimate, SummaryRequest
from service.schemas.tariff_bills import TariffBill, TariffBillRequest
from service.schemas.what_if import (
    PowerCapEstimate,
    PowerCapEstimateRequest,
    SiteComparisonEstimate,
    SiteComparisonRequest,
    StartShiftEstimate,
    StartShiftEstimateRequest,
)

REVISION_PARAMETER = {
    "name": "Catalog-Revision",
    "in": "header",
    "required": False,
    "description": "Revision that a write answered with; the estimate sees that write.",
    "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 10**REVISION_DIGITS - 1},
}

router = api_router("/v1/estimates", tag="estimates", route_class=ReadOnlyRoute)
tariffs = api_router("/v1/tariffs", tag="tariffs", route_class=ReadOnlyRoute)

_ANSWERS: Mapping[str, Any] = {
    "memory": MemoryEstimate,
    "throughput": ThroughputEstimate,
    "cost": CostEstimate,
    "utility-bill": UtilityBill,
}


@cache
def _build_writer(operation: str) -> Callable[[Any], bytes]:
    adapter: TypeAdapter[Any] = TypeAdapter(_ANSWERS[operation])
    return adapter.serializer.to_json


async def _answer_question(
    estimator: Callable[[Any, CatalogView], Any],
    question: MemoryEstimateRequest | RunEstimateRequest,
    request: Request,
) -> Any:  # noqa: ANN401
    """Answers one of the four questions: at once, or in a thread where it takes long."""
    snapshot = await get_requested_snapshot(request)
    asked = partial(answer_question, estimator, question, snapshot)
    if is_long(question, request.scope["state"][BODY_BYTES], snapshot):
        return DeferredAnswer(asked, is_search(question))
    return asked()


async def _answer_later(
    estimator: Callable[[Any, CatalogView], Any],
    question: StrictModel,
    request: Request,
    *,
    is_search: bool = False,
) -> Any:  # noqa: ANN401
    """Answers in a thread a question that always counts as long."""
    snapshot = await get_requested_snapshot(request)
    return DeferredAnswer(partial(answer_question, estimator, question, snapshot), is_search)


async def _answer_batch(operation: str, questions: Sequence[StrictModel], request: Request) -> Any:  # noqa: ANN401
    """Answers questions in order from one snapshot; a question without an answer fails the batch."""
    snapshot = await get_requested_snapshot(request)
    return DeferredAnswer(partial(_write_answers, operation, questions, snapshot), is_search=True)


def _write_answers(operation: str, questions: Sequence[StrictModel], snapshot: CatalogView) -> RenderedJson:
    """Writes each answer as soon as it is known: as objects, a batch takes many times the memory."""
    estimator, write = ESTIMATES[operation].estimator, _build_writer(operation)
    results: list[bytes] = []
    allowed = Allowance()
    for position, question in enumerate(questions):
        check_cancelled()
        results.append(
            write(answer_question(estimator, question, snapshot, f"/requests/{position}", allowed))
        )
    return RenderedJson(b'{"results":[' + b",".join(results) + b"]}")


@router.post("/summary", summary="Estimate fit, speed, price and bill from a few members")
async def estimate_summary(question: SummaryRequest, request: Request) -> SummaryEstimate:
    """Estimates fit, users, speed, price and bill of a model on hardware, from a few members."""
    found: SummaryEstimate = await _answer_later(summary.estimate_summary, question, request)
    return found


@router.post("/memory", summary="Estimate the memory of a workload")
async def estimate_memory(question: MemoryEstimateRequest, request: Request) -> MemoryEstimate:
    """Estimates the memory of the fullest device by component, and whether it fits."""
    found: MemoryEstimate = await _answer_question(memory.estimate_memory, question, request)
    return found


@router.post("/memory:batch", summary="Estimate the memory of several workloads")
async def estimate_memory_batch(batch: MemoryEstimateBatchRequest, request: Request) -> MemoryEstimateList:
    """Estimates memory for several questions, in order and from one catalog revision."""
    answers: MemoryEstimateList = await _answer_batch("memory", batch.requests, request)
    return answers


@router.post("/throughput", summary="Estimate the speed of a workload")
async def estimate_throughput(question: ThroughputEstimateRequest, request: Request) -> ThroughputEstimate:
    """Estimates rates, the phases of the time, and the limit of the speed."""
    found: ThroughputEstimate = await _answer_question(throughput.estimate_throughput, question, request)
    return found


@router.post("/throughput:batch", summary="Estimate the speed of several workloads")
async def estimate_throughput_batch(
    batch: ThroughputEstimateBatchRequest, request: Request
) -> ThroughputEstimateList:
    """Estimates throughput for several questions, in order and from one catalog revision."""
    for position, question in enumerate(batch.requests):
        if question.solver.kind == "simulated":
            detail = "a simulation is asked for by itself"
            field = FieldError(f"/requests/{position}/solver/kind", "SIMULATION_IN_BATCH", detail)
            raise NoSoundEstimate("", field)
    answers: ThroughputEstimateList = await _answer_batch("throughput", batch.requests, request)
    return answers


@router.post("/throughput:frontier", summary="Search the best serving configurations")
async def estimate_throughput_frontier(
    question: ThroughputFrontierRequest, request: Request
) -> ThroughputFrontier:
    """Searches the best configurations: the Pareto set of tokens per second by device and by user."""
    found: ThroughputFrontier = await _answer_later(
        frontier.estimate_frontier, question, request, is_search=True
    )
    return found


@router.post("/cost", summary="Estimate the cost of a workload")
async def estimate_cost(question: CostEstimateRequest, request: Request) -> CostEstimate:
    """Estimates device-hours, charges, and the cost of a million tokens."""
    found: CostEstimate = await _answer_question(cost.estimate_cost, question, request)
    return found


@router.post("/cost:batch", summary="Estimate the cost of several workloads")
async def estimate_cost_batch(batch: CostEstimateBatchRequest, request: Request) -> CostEstimateList:
    """Estimates cost for several questions, in order and from one catalog revision."""
    answers: CostEstimateList = await _answer_batch("cost", batch.requests, request)
    return answers


@router.post(
    "/cost:export", summary="Export the charges of a workload as CSV", response_class=Response, responses=CSV
)
async def estimate_cost_export(
    question: CostExportRequest, request: Request, aside: OffloadedWork
) -> Response:
    """Exports the charges of an estimate as CSV, in the columns of FOCUS 1.2; a row by charge and month."""
    snapshot = await get_requested_snapshot(request)
    tenant_id = request.scope["state"]["subject"].tenant_id
    export = partial(answer_question, partial(focus.export_cost, tenant_id=tenant_id), question, snapshot)
    rows = await aside(export)
    return csv_response(rows, "cost")


@router.post("/cost:compare", summary="Compare the cost of ways to do the same work")
async def estimate_cost_comparison(
    question: CostComparisonRequest, request: Request
) -> CostComparisonEstimate:
    """Compares ways of doing the same work: time, device-hours and cost against a baseline."""
    found: CostComparisonEstimate = await _answer_later(comparison.compare_costs, question, request)
    return found


@router.post("/utility-bill", summary="Estimate the utility bill of a workload")
async def estimate_utility_bill(question: UtilityBillRequest, request: Request) -> UtilityBill:
    """Estimates the energy, electricity, carbon, water, rent and purchase of a run."""
    found: UtilityBill = await _answer_question(utility_bill.estimate_utility_bill, question, request)
    return found


@router.post("/utility-bill:batch", summary="Estimate the utility bills of several workloads")
async def estimate_utility_bill_batch(batch: UtilityBillBatchRequest, request: Request) -> UtilityBillList:
    """Estimates utility bills for several questions, in order and from one catalog revision."""
    answers: UtilityBillList = await _answer_batch("utility-bill", batch.requests, request)
    return answers


@router.post(
    "/utility-bill:export",
    summary="Export the electricity of a workload as CSV",
    response_class=Response,
    responses=CSV,
)
async def estimate_utility_bill_export(
    question: UtilityBillExportRequest, request: Request, aside: OffloadedWork
) -> Response:
    """Exports the electricity of a run as CSV, in the columns of FOCUS 1.2; a row by charge and period."""
    snapshot = await get_requested_snapshot(request)
    tenant_id = request.scope["state"]["subject"].tenant_id
    export = partial(
        answer_question, partial(focus.export_utility_bill, tenant_id=tenant_id), question, snapshot
    )
    rows = await aside(export)
    return csv_response(rows, "electricity")


@router.post("/utility-bill:shift", summary="Find the cheapest and cleanest time to start")
async def estimate_utility_bill_shift(
    question: StartShiftEstimateRequest, request: Request
) -> StartShiftEstimate:
    """Compares every start of a window by tariff and grid: the cheapest and the cleanest."""
    found: StartShiftEstimate = await _answer_later(shift.estimate_shift, question, request, is_search=True)
    return found


@router.post("/utility-bill:compare", summary="Compare the utility bill in several buildings")
async def estimate_utility_bill_comparison(
    question: SiteComparisonRequest, request: Request
) -> SiteComparisonEstimate:
    """Compares buildings side by side: the cheapest, the cleanest, and that with least water."""
    found: SiteComparisonEstimate = await _answer_later(
        site_comparison.compare_sites, question, request, is_search=True
    )
    return found


@router.post("/utility-bill:cap", summary="Estimate what a power cap saves and costs")
async def estimate_utility_bill_power_cap(
    question: PowerCapEstimateRequest, request: Request
) -> PowerCapEstimate:
    """Estimates the time and the money that a training run takes below the power limit of its devices."""
    found: PowerCapEstimate = await _answer_later(
        power_cap.estimate_power_cap, question, request, is_search=True
    )
    return found


@tariffs.post(":bill", summary="Bill a load under a tariff")
async def bill_tariff(question: TariffBillRequest, request: Request) -> TariffBill:
    """Bills a load under a tariff: every line of every billing period."""
    found: TariffBill = await _answer_later(tariff_bill.bill_tariff, question, request)
    return found
