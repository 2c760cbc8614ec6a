"""The four estimates by name, and refusals of planning as problems."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from service.estimates.allowance import use_allowance
from service.estimates.cost import estimate_cost
from service.estimates.memory import estimate_memory
from service.estimates.payment import PaymentQuestions, compute_paid_total, list_paid_charges
from service.estimates.throughput import estimate_throughput
from service.estimates.utility_bill import estimate_utility_bill
from service.evidence.service import known_rows
from service.kit.http.problems import FieldError, Unprocessable
from service.kit.tracing import open_inner_span
from service.planning.errors import PlanningError
from service.planning.tariff.allowance import Allowance
from service.resolve.catalog import CatalogView
from service.resolve.own_runs import apply_own_runs
from service.schemas.base import StrictModel
from service.schemas.estimates import (
    CostEstimateRequest,
    MemoryEstimateRequest,
    ThroughputEstimateRequest,
    UtilityBillRequest,
)

__all__ = [
    "ESTIMATES",
    "EstimateOperation",
    "NoSoundEstimate",
    "PaymentQuestions",
    "answer_question",
    "compute_paid_total",
    "list_paid_charges",
]

log = logging.getLogger(__name__)

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")
Estimator = Callable[[_Question, CatalogView], _Answer]


class NoSoundEstimate(Unprocessable):
    """The question contradicts itself, or leaves the range in which a formula holds."""

    code, title = "NO_SOUND_ANSWER", "The question has no sound answer"


def answer_question(
    estimator: Estimator[_Question, _Answer],
    question: _Question,
    catalog: CatalogView,
    at: str = "",
    allowed: Allowance | None = None,
) -> _Answer:
    """Returns one answer under the tenant's own runs.

    A refusal of planning becomes a problem that names the field, below ``at``. Bills take their steps from
    ``allowed``, which a batch shares among its questions.
    """
    try:
        with open_inner_span("estimate"), use_allowance(allowed or Allowance()):
            return estimator(question, apply_own_runs(catalog, known_rows()))
    except PlanningError as error:
        field = FieldError(at + error.pointer, error.code, error.detail)
        raise NoSoundEstimate("", field) from error
    except ArithmeticError as error:
        log.info("figures out of range: %s", type(error).__name__)
        detail = "the figures of this question are too large or too small to compute with"
        raise NoSoundEstimate("", FieldError(at, "OUT_OF_RANGE", detail)) from error


class EstimateOperation(NamedTuple):
    """The shape of a question and the function that answers it."""

    question: type[StrictModel]
    estimator: Callable[[Any, CatalogView], Mapping[str, Any]]


ESTIMATES: Mapping[str, EstimateOperation] = {
    "memory": EstimateOperation(MemoryEstimateRequest, estimate_memory),
    "throughput": EstimateOperation(ThroughputEstimateRequest, estimate_throughput),
    "cost": EstimateOperation(CostEstimateRequest, estimate_cost),
    "utility-bill": EstimateOperation(UtilityBillRequest, estimate_utility_bill),
}
"""Estimates by operation, as its URL names it."""
