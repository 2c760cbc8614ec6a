"""Asks planning's questions without HTTP, from the shipped catalog."""

import json
from functools import cache
from typing import Any

import pytest

from service.estimates.service import ESTIMATES
from service.evidence.snapshot import build_shipped_snapshot
from service.planning.errors import PlanningError
from service.resolve.catalog import CatalogView


@cache
def shipped() -> CatalogView:
    """The shipped catalog, without a database."""
    return build_shipped_snapshot()


def ask(catalog: Any, operation: str, question: dict[str, Any]) -> dict[str, Any]:
    """The answer to a question given as JSON."""
    estimate = ESTIMATES[operation]
    return dict(estimate.estimator(estimate.question.model_validate_json(json.dumps(question)), catalog))


def refusal(catalog: Any, operation: str, question: dict[str, Any]) -> tuple[str, str]:
    """Code and pointer of the refusal that a question meets."""
    with pytest.raises(PlanningError) as caught:
        ask(catalog, operation, question)
    assert caught.value.detail
    return caught.value.code, caught.value.pointer


def question(
    model: str | dict[str, Any], accelerator: str, count: int = 1, **workload: Any
) -> dict[str, Any]:
    """A question about a model and accelerators of the catalog; training unless ``workload`` says other."""
    reference = {"source": "catalog", "id": model} if isinstance(model, str) else model
    return {
        "model": reference,
        "cluster": {"accelerator": {"source": "catalog", "id": accelerator}, "accelerator_count": count},
        "workload": {"kind": "training", **workload},
    }


def codes(notes: list[dict[str, str]]) -> set[str]:
    """Codes of warnings, gaps or advice."""
    return {note["code"] for note in notes}


def gaps(answer: dict[str, Any]) -> dict[str, str]:
    """Code of each gap by its pointer."""
    return {gap["pointer"]: gap["code"] for gap in answer["gaps"]}


def usd(amount: str, currency: str = "USD") -> dict[str, str]:
    """An amount of money."""
    return {"amount": amount, "currency_code": currency}


def chosen_workload(asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The workload of a question with what its answer chose.

    These are micro-batch, micro-batches and recomputation, or the share of the memory.
    """
    filled = {default["pointer"]: default["value"] for default in answer["defaults"]}
    workload = dict(asked["workload"])
    if "/workload/micro_batch_size" in filled:
        workload["micro_batch_size"] = int(filled["/workload/micro_batch_size"])
    if "/workload/global_batch_size" in filled:
        held = workload["micro_batch_size"] * answer["parallelism"]["data"]
        workload["gradient_accumulation_steps"] = int(filled["/workload/global_batch_size"]) // held
    if "/workload/recomputation" in filled:
        workload["recomputation"] = {"strategy": filled["/workload/recomputation"]}
    if "/workload/memory_fraction" in filled:
        workload["memory_fraction"] = float(filled["/workload/memory_fraction"])
    return workload
