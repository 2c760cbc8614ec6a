"""The four estimates and their batches. None of them touches the database."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, TypeVar

from fastapi import Request

from service.estimates import cost, memory, throughput, utility_bill
from service.estimates.service import Estimator, answer
from service.kit.problems import BadRequest, FieldError
from service.kit.web import api_router
from service.questions.answers import (
    CostAnswer,
    CostAnswers,
    MemoryAnswer,
    MemoryAnswers,
    ThroughputAnswer,
    ThroughputAnswers,
    UtilityBillAnswer,
    UtilityBillAnswers,
)
from service.questions.estimates import (
    CostBatch,
    CostQuestion,
    MemoryBatch,
    MemoryQuestion,
    ThroughputBatch,
    ThroughputQuestion,
    UtilityBillBatch,
    UtilityBillQuestion,
)
from service.snapshot.service import Snapshot, SnapshotStore

HOLD_SECONDS = 0.01
"""How long a batch may hold the event loop, so that single questions are not held up."""

REVISION_PARAMETER = {
    "name": "Catalog-Revision",
    "in": "header",
    "required": False,
    "description": "Revision that a write answered with; the estimate sees that write.",
    "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": 2**53 - 1},
}

router = api_router("/v1/estimates", tag="estimates")

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


async def _snapshot(request: Request) -> Snapshot:
    store: SnapshotStore = request.app.state.snapshots
    asked = request.headers.get("catalog-revision")
    if asked is None:
        return store.current
    if not asked.isascii() or not asked.isdigit() or len(asked) > 16:  # noqa: PLR2004
        detail = "Catalog-Revision must be a whole number"
        raise BadRequest(detail, FieldError("/header/Catalog-Revision", "INTEGER", detail))
    return await store.at_least(int(asked))


async def _answers(
    estimate: Estimator[_Question, _Answer], questions: Sequence[_Question], request: Request
) -> Any:  # noqa: ANN401
    """Answers in order, all from one snapshot; one question without an answer fails the batch."""
    snapshot = await _snapshot(request)
    results: list[_Answer] = []
    turn_ends = time.perf_counter() + HOLD_SECONDS
    for position, question in enumerate(questions):
        if time.perf_counter() > turn_ends:
            await asyncio.sleep(0)
            turn_ends = time.perf_counter() + HOLD_SECONDS
        results.append(answer(estimate, question, snapshot, f"/requests/{position}"))
    return {"results": results}


@router.post("/memory")
async def estimate_memory(question: MemoryQuestion, request: Request) -> MemoryAnswer:
    """Does it fit?"""
    return answer(memory.estimate_memory, question, await _snapshot(request))


@router.post("/memory:batch")
async def estimate_memory_batch(batch: MemoryBatch, request: Request) -> MemoryAnswers:
    """Do they fit?"""
    answers: MemoryAnswers = await _answers(memory.estimate_memory, batch.requests, request)
    return answers


@router.post("/throughput")
async def estimate_throughput(question: ThroughputQuestion, request: Request) -> ThroughputAnswer:
    """How fast will it go?"""
    return answer(throughput.estimate_throughput, question, await _snapshot(request))


@router.post("/throughput:batch")
async def estimate_throughput_batch(batch: ThroughputBatch, request: Request) -> ThroughputAnswers:
    """How fast will they go?"""
    estimate = throughput.estimate_throughput
    answers: ThroughputAnswers = await _answers(estimate, batch.requests, request)
    return answers


@router.post("/cost")
async def estimate_cost(question: CostQuestion, request: Request) -> CostAnswer:
    """What will it cost?"""
    return answer(cost.estimate_cost, question, await _snapshot(request))


@router.post("/cost:batch")
async def estimate_cost_batch(batch: CostBatch, request: Request) -> CostAnswers:
    """What will they cost?"""
    answers: CostAnswers = await _answers(cost.estimate_cost, batch.requests, request)
    return answers


@router.post("/utility-bill")
async def estimate_utility_bill(question: UtilityBillQuestion, request: Request) -> UtilityBillAnswer:
    """What will the run draw, emit and cost, rented or bought?"""
    return answer(utility_bill.estimate_utility_bill, question, await _snapshot(request))


@router.post("/utility-bill:batch")
async def estimate_utility_bill_batch(batch: UtilityBillBatch, request: Request) -> UtilityBillAnswers:
    """What will the runs draw, emit and cost, rented or bought?"""
    estimate = utility_bill.estimate_utility_bill
    answers: UtilityBillAnswers = await _answers(estimate, batch.requests, request)
    return answers
