"""The four estimates and their batches. None of them touches the database."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import Request, Response
from pydantic import TypeAdapter

from service.estimates import (
    bill_export,
    comparison,
    cost,
    focus,
    frontier,
    memory,
    power_cap,
    shift,
    site_comparison,
    tariff_bill,
    throughput,
    utility_bill,
)
from service.estimates.allowance import Allowance
from service.estimates.length import is_long
from service.estimates.service import ESTIMATES, NoSoundAnswer, answer
from service.evidence.snapshot import REVISION_DIGITS, SnapshotStore
from service.kit.http.long_work import Later
from service.kit.http.problems import FieldError
from service.kit.http.wanted import check_wanted
from service.kit.http.web import BODY_BYTES, AskingRoute, WorkAside, Written, api_router
from service.resolve.catalog import CatalogView
from service.schemas.answers import (
    MemoryAnswer,
    MemoryAnswers,
    ThroughputAnswer,
    ThroughputAnswers,
)
from service.schemas.base import Input
from service.schemas.bill_answers import UtilityBillAnswer, UtilityBillAnswers
from service.schemas.cost_answers import CostAnswer, CostAnswers, CostComparisonAnswer
from service.schemas.estimates import (
    CostBatch,
    CostComparison,
    CostExport,
    CostQuestion,
    MemoryBatch,
    MemoryQuestion,
    RunQuestion,
    ThroughputBatch,
    ThroughputQuestion,
    UtilityBillBatch,
    UtilityBillExport,
    UtilityBillQuestion,
)
from service.schemas.frontier import FrontierAnswer, FrontierQuestion
from service.schemas.tariff_bills import TariffBillAnswer, TariffBillQuestion
from service.schemas.what_if import (
    PowerCapAnswer,
    PowerCapQuestion,
    ShiftAnswer,
    ShiftQuestion,
    SiteComparison,
    SiteComparisonAnswer,
)

REVISION_PARAMETER = {
    "name": "Catalog-Revision",
    "in": "header",
    "required": False,
    "description": "Revision that a write answered with; the estimate sees that write.",
    "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 10**REVISION_DIGITS - 1},
}

router = api_router("/v1/estimates", tag="estimates", route_class=AskingRoute)
tariffs = api_router("/v1/tariffs", tag="tariffs", route_class=AskingRoute)

_WRITERS: Mapping[str, Callable[[Any], bytes]] = {
    "memory": TypeAdapter(MemoryAnswer).serializer.to_json,
    "throughput": TypeAdapter(ThroughputAnswer).serializer.to_json,
    "cost": TypeAdapter(CostAnswer).serializer.to_json,
    "utility-bill": TypeAdapter(UtilityBillAnswer).serializer.to_json,
}


FOCUS_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}


def csv_response(rows: str, name: str) -> Response:
    """A table as a file called ``name``."""
    disposition = f'attachment; filename="{name}"'
    return Response(rows, media_type="text/csv", headers={"Content-Disposition": disposition})


async def _snapshot(request: Request) -> CatalogView:
    store: SnapshotStore = request.app.state.snapshots
    return await store.asked(request.scope)


async def _asked(
    estimator: Callable[[Any, CatalogView], Any], question: MemoryQuestion | RunQuestion, request: Request
) -> Any:  # noqa: ANN401
    """The answer to one of the four questions: at once, or later where it takes long."""
    snapshot = await _snapshot(request)
    asked = partial(answer, estimator, question, snapshot)
    return Later(asked) if is_long(question, request.scope["state"][BODY_BYTES], snapshot) else asked()


async def _later(estimator: Callable[[Any, CatalogView], Any], question: Input, request: Request) -> Any:  # noqa: ANN401
    """The answer to a question that always counts as long."""
    return Later(partial(answer, estimator, question, await _snapshot(request)))


async def _answers(operation: str, questions: Sequence[Input], request: Request) -> Any:  # noqa: ANN401
    """Answers in order, all from one snapshot; one question without an answer fails the batch."""
    return Later(partial(_written, operation, questions, await _snapshot(request)))


def _written(operation: str, questions: Sequence[Input], snapshot: CatalogView) -> Written:
    """Each is written as soon as it is known; as objects, a batch of answers takes many times the memory."""
    estimator, write = ESTIMATES[operation].estimator, _WRITERS[operation]
    results: list[bytes] = []
    allowed = Allowance()
    for position, question in enumerate(questions):
        check_wanted()
        results.append(write(answer(estimator, question, snapshot, f"/requests/{position}", allowed)))
    return Written(b'{"results":[' + b",".join(results) + b"]}")


@router.post("/memory")
async def estimate_memory(question: MemoryQuestion, request: Request) -> MemoryAnswer:
    """Does it fit? Memory of the fullest device by component, against what the device has."""
    found: MemoryAnswer = await _asked(memory.estimate_memory, question, request)
    return found


@router.post("/memory:batch")
async def estimate_memory_batch(batch: MemoryBatch, request: Request) -> MemoryAnswers:
    """Memory for several questions, in order and from one catalog revision."""
    answers: MemoryAnswers = await _answers("memory", batch.requests, request)
    return answers


@router.post("/throughput")
async def estimate_throughput(question: ThroughputQuestion, request: Request) -> ThroughputAnswer:
    """How fast will it go? Rates, where the time goes, and what limits the speed."""
    found: ThroughputAnswer = await _asked(throughput.estimate_throughput, question, request)
    return found


@router.post("/throughput:batch")
async def estimate_throughput_batch(batch: ThroughputBatch, request: Request) -> ThroughputAnswers:
    """Throughput for several questions, in order and from one catalog revision."""
    for position, question in enumerate(batch.requests):
        if question.solver.kind == "simulated":
            detail = "a simulation is asked for by itself"
            field = FieldError(f"/requests/{position}/solver/kind", "SIMULATION_IN_BATCH", detail)
            raise NoSoundAnswer("", field)
    answers: ThroughputAnswers = await _answers("throughput", batch.requests, request)
    return answers


@router.post("/throughput:frontier")
async def estimate_throughput_frontier(question: FrontierQuestion, request: Request) -> FrontierAnswer:
    """Which configurations are best? The Pareto set of tokens per second by device and by user."""
    found: FrontierAnswer = await _later(frontier.estimate_frontier, question, request)
    return found


@router.post("/cost")
async def estimate_cost(question: CostQuestion, request: Request) -> CostAnswer:
    """What will it cost? Device-hours, charges, and the cost of a million tokens."""
    found: CostAnswer = await _asked(cost.estimate_cost, question, request)
    return found


@router.post("/cost:batch")
async def estimate_cost_batch(batch: CostBatch, request: Request) -> CostAnswers:
    """Cost for several questions, in order and from one catalog revision."""
    answers: CostAnswers = await _answers("cost", batch.requests, request)
    return answers


@router.post("/cost:export", response_class=Response, responses=FOCUS_CSV)
async def estimate_cost_export(question: CostExport, request: Request, aside: WorkAside) -> Response:
    """The charges of an estimate as CSV, in the columns of FOCUS 1.2; a row for each charge and month."""
    snapshot = await _snapshot(request)
    tenant_id = request.scope["state"]["subject"].tenant_id
    export = partial(answer, partial(focus.export_cost, tenant_id=tenant_id), question, snapshot)
    rows = await aside(export)
    return csv_response(rows, "cost.csv")


@router.post("/cost:compare")
async def estimate_cost_comparison(question: CostComparison, request: Request) -> CostComparisonAnswer:
    """Which way of doing the same work costs least? Time, device-hours and cost against a baseline."""
    found: CostComparisonAnswer = await _later(comparison.compare_costs, question, request)
    return found


@router.post("/utility-bill")
async def estimate_utility_bill(question: UtilityBillQuestion, request: Request) -> UtilityBillAnswer:
    """What will the run draw, emit and cost? Energy, electricity, carbon, water, rent and purchase."""
    found: UtilityBillAnswer = await _asked(utility_bill.estimate_utility_bill, question, request)
    return found


@router.post("/utility-bill:batch")
async def estimate_utility_bill_batch(batch: UtilityBillBatch, request: Request) -> UtilityBillAnswers:
    """Utility bills for several questions, in order and from one catalog revision."""
    answers: UtilityBillAnswers = await _answers("utility-bill", batch.requests, request)
    return answers


@router.post("/utility-bill:export", response_class=Response, responses=FOCUS_CSV)
async def estimate_utility_bill_export(
    question: UtilityBillExport, request: Request, aside: WorkAside
) -> Response:
    """The electricity of a run as CSV, in the columns of FOCUS 1.2; a row for each charge of each period."""
    snapshot = await _snapshot(request)
    tenant_id = request.scope["state"]["subject"].tenant_id
    export = partial(
        answer, partial(bill_export.export_utility_bill, tenant_id=tenant_id), question, snapshot
    )
    rows = await aside(export)
    return csv_response(rows, "electricity.csv")


@router.post("/utility-bill:shift")
async def estimate_utility_bill_shift(question: ShiftQuestion, request: Request) -> ShiftAnswer:
    """When would the run be cheapest, when cleanest? Every start of a window, by tariff and grid."""
    found: ShiftAnswer = await _later(shift.estimate_shift, question, request)
    return found


@router.post("/utility-bill:compare")
async def estimate_utility_bill_comparison(
    question: SiteComparison, request: Request
) -> SiteComparisonAnswer:
    """Where would the run be cheapest, cleanest, and take least water? Several buildings side by side."""
    found: SiteComparisonAnswer = await _later(site_comparison.compare_sites, question, request)
    return found


@router.post("/utility-bill:cap")
async def estimate_utility_bill_power_cap(question: PowerCapQuestion, request: Request) -> PowerCapAnswer:
    """What do devices held below their power limit cost, in time and in money? Of a training run."""
    found: PowerCapAnswer = await _later(power_cap.estimate_power_cap, question, request)
    return found


@tariffs.post(":bill")
async def bill_tariff(question: TariffBillQuestion, request: Request) -> TariffBillAnswer:
    """What does a tariff charge for a load? Every line of every billing period."""
    found: TariffBillAnswer = await _later(tariff_bill.bill_tariff, question, request)
    return found
