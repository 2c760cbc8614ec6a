"""The four estimates and their batches. None of them touches the database."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import Request, Response
from pydantic import MISSING, TypeAdapter
from starlette.requests import ClientDisconnect

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
from service.estimates.service import ESTIMATES, NoSoundAnswer, answer
from service.kit.problems import FieldError
from service.kit.web import AskingRoute, Written, api_router
from service.questions.answers import (
    MemoryAnswer,
    MemoryAnswers,
    ThroughputAnswer,
    ThroughputAnswers,
)
from service.questions.base import Input
from service.questions.bill_answers import UtilityBillAnswer, UtilityBillAnswers
from service.questions.cost_answers import CostAnswer, CostAnswers, CostComparisonAnswer
from service.questions.estimates import (
    CostBatch,
    CostComparison,
    CostExport,
    CostQuestion,
    MemoryBatch,
    MemoryQuestion,
    ThroughputBatch,
    ThroughputQuestion,
    UtilityBillBatch,
    UtilityBillExport,
    UtilityBillQuestion,
)
from service.questions.frontier import FrontierAnswer, FrontierQuestion
from service.questions.tariff_bills import TariffBillAnswer, TariffBillQuestion
from service.questions.what_if import (
    PowerCapAnswer,
    PowerCapQuestion,
    ShiftAnswer,
    ShiftQuestion,
    SiteComparison,
    SiteComparisonAnswer,
)
from service.snapshot.service import REVISION_DIGITS, Snapshot, SnapshotStore

HOLD_SECONDS = 0.01
"""How long a batch may hold the event loop, so that single questions are not held up."""

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


async def _snapshot(request: Request) -> Snapshot:
    store: SnapshotStore = request.app.state.snapshots
    return await store.asked(request.scope)


async def _answers(operation: str, questions: Sequence[Input], request: Request) -> Any:  # noqa: ANN401
    """Answers in order, all from one snapshot; one question without an answer fails the batch.

    Each is written as soon as it is known; as objects, a batch of answers takes many times the memory.
    Nothing is worked out for a caller who has gone: those behind would wait for it.
    """
    snapshot = await _snapshot(request)
    estimator, write = ESTIMATES[operation].estimator, _WRITERS[operation]
    results: list[bytes] = []
    # One batch after the other: taking turns would end each of them later and none of them earlier.
    async with request.app.state.batch_turn:
        turn_ends = 0.0
        for position, question in enumerate(questions):
            if time.perf_counter() > turn_ends:
                await asyncio.sleep(0)
                if await request.is_disconnected():
                    raise ClientDisconnect
                turn_ends = time.perf_counter() + HOLD_SECONDS
            asked = partial(answer, estimator, question, snapshot, f"/requests/{position}")
            results.append(write(await asyncio.to_thread(asked) if _is_long(question) else asked()))
    return Written(b'{"results":[' + b",".join(results) + b"]}")


def _is_long(question: Input) -> bool:
    """Whether an answer takes its time: a scaling curve some ten milliseconds, a simulation up to seconds.

    Such ones are worked out in a thread and one after the other, as a search is.
    """
    if not isinstance(question, ThroughputQuestion):
        return False
    return question.scaling is not MISSING or question.solver.kind != "analytic"


@router.post("/memory")
async def estimate_memory(question: MemoryQuestion, request: Request) -> MemoryAnswer:
    """Does it fit? Memory of the fullest device by component, against what the device has."""
    return answer(memory.estimate_memory, question, await _snapshot(request))


@router.post("/memory:batch")
async def estimate_memory_batch(batch: MemoryBatch, request: Request) -> MemoryAnswers:
    """Memory for several questions, in order and from one catalog revision."""
    answers: MemoryAnswers = await _answers("memory", batch.requests, request)
    return answers


@router.post("/throughput")
async def estimate_throughput(question: ThroughputQuestion, request: Request) -> ThroughputAnswer:
    """How fast will it go? Rates, where the time goes, and what limits the speed."""
    snapshot = await _snapshot(request)
    if not _is_long(question):
        return answer(throughput.estimate_throughput, question, snapshot)
    async with request.app.state.search_turn:
        return await asyncio.to_thread(answer, throughput.estimate_throughput, question, snapshot)


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
    snapshot = await _snapshot(request)
    # A search takes up to a second: in a thread, one after the other, so that other questions go on.
    async with request.app.state.search_turn:
        return await asyncio.to_thread(answer, frontier.estimate_frontier, question, snapshot)


@router.post("/cost")
async def estimate_cost(question: CostQuestion, request: Request) -> CostAnswer:
    """What will it cost? Device-hours, charges, and the cost of a million tokens."""
    return answer(cost.estimate_cost, question, await _snapshot(request))


@router.post("/cost:batch")
async def estimate_cost_batch(batch: CostBatch, request: Request) -> CostAnswers:
    """Cost for several questions, in order and from one catalog revision."""
    answers: CostAnswers = await _answers("cost", batch.requests, request)
    return answers


@router.post("/cost:export", response_class=Response, responses=FOCUS_CSV)
async def estimate_cost_export(question: CostExport, request: Request) -> Response:
    """The charges of an estimate as CSV, in the columns of FOCUS 1.2; a row for each charge and month."""
    snapshot = await _snapshot(request)
    tenant_id = request.scope["state"]["subject"].tenant_id
    rows = answer(partial(focus.export_cost, tenant_id=tenant_id), question, snapshot)
    return csv_response(rows, "cost.csv")


@router.post("/cost:compare")
async def estimate_cost_comparison(question: CostComparison, request: Request) -> CostComparisonAnswer:
    """Which way of doing the same work costs least? Time, device-hours and cost against a baseline."""
    return answer(comparison.compare_costs, question, await _snapshot(request))


@router.post("/utility-bill")
async def estimate_utility_bill(question: UtilityBillQuestion, request: Request) -> UtilityBillAnswer:
    """What will the run draw, emit and cost? Energy, electricity, carbon, water, rent and purchase."""
    return answer(utility_bill.estimate_utility_bill, question, await _snapshot(request))


@router.post("/utility-bill:batch")
async def estimate_utility_bill_batch(batch: UtilityBillBatch, request: Request) -> UtilityBillAnswers:
    """Utility bills for several questions, in order and from one catalog revision."""
    answers: UtilityBillAnswers = await _answers("utility-bill", batch.requests, request)
    return answers


@router.post("/utility-bill:export", response_class=Response, responses=FOCUS_CSV)
async def estimate_utility_bill_export(question: UtilityBillExport, request: Request) -> Response:
    """The electricity of a run as CSV, in the columns of FOCUS 1.2; a row for each charge of each period."""
    snapshot = await _snapshot(request)
    tenant_id = request.scope["state"]["subject"].tenant_id
    rows = answer(partial(bill_export.export_utility_bill, tenant_id=tenant_id), question, snapshot)
    return csv_response(rows, "electricity.csv")


@router.post("/utility-bill:shift")
async def estimate_utility_bill_shift(question: ShiftQuestion, request: Request) -> ShiftAnswer:
    """When would the run be cheapest, when cleanest? Every start of a window, by tariff and grid."""
    snapshot = await _snapshot(request)
    # Thousands of bills take up to some seconds: in a thread, one after the other, as a search.
    async with request.app.state.search_turn:
        return await asyncio.to_thread(answer, shift.estimate_shift, question, snapshot)


@router.post("/utility-bill:compare")
async def estimate_utility_bill_comparison(
    question: SiteComparison, request: Request
) -> SiteComparisonAnswer:
    """Where would the run be cheapest, cleanest, and take least water? Several buildings side by side."""
    return answer(site_comparison.compare_sites, question, await _snapshot(request))


@router.post("/utility-bill:cap")
async def estimate_utility_bill_power_cap(question: PowerCapQuestion, request: Request) -> PowerCapAnswer:
    """What do devices held below their power limit cost, in time and in money? Of a training run."""
    return answer(power_cap.estimate_power_cap, question, await _snapshot(request))


@tariffs.post(":bill")
async def bill_tariff(question: TariffBillQuestion, request: Request) -> TariffBillAnswer:
    """What does a tariff charge for a load? Every line of every billing period."""
    return answer(tariff_bill.bill_tariff, question, await _snapshot(request))
