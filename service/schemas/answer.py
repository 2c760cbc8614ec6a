"""Conversions from planning values to the shapes of answers. Each figure is checked once, here."""

import hashlib
from decimal import Decimal
from typing import Any

from service.planning import METHOD_VERSION
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.planning.quantity import EvidenceBasis, Quantity
from service.schemas.answers import ParallelismDegrees
from service.schemas.base import (
    LARGEST_INTEGER,
    EstimateEvidence,
    MoneyQuantity,
    QuantityEstimate,
    StrictModel,
)

_LARGEST_FIGURE = 1e300


class FigureError(ArithmeticError):
    """A formula gave a figure that cannot be answered: not finite, or outside its own interval."""


def to_quantity(figure: Quantity) -> QuantityEstimate:
    """Returns a headline figure of an answer.

    Raises `FigureError` if the figure is not finite or lies outside its interval, which is a defect of a
    formula.
    """
    value, low, high, basis = figure
    if not -_LARGEST_FIGURE < low <= value <= high < _LARGEST_FIGURE:
        raise FigureError(f"{low} <= {value} <= {high}")
    return {"value": value, "low": low, "high": high, "basis": basis}


def to_quantities(result: tuple[object, ...]) -> Any:  # noqa: ANN401
    """Maps a named tuple whose members are called as those of its answer, without members that are None."""
    return {
        name: to_quantity(member) if isinstance(member, Quantity) else member
        for name, member in result._asdict().items()  # type: ignore[attr-defined]
        if member is not None
    }


def to_integer(number: float) -> int:
    """Returns a byte or token count of an answer."""
    if not -LARGEST_INTEGER <= number <= LARGEST_INTEGER:
        raise FigureError(str(number))
    return round(number)


def to_money_quantity(
    amount: Decimal, low: Decimal, high: Decimal, currency: str, basis: EvidenceBasis
) -> MoneyQuantity:
    """Returns a headline amount, whose parts are already rounded."""
    if not low <= amount <= high:
        raise FigureError(f"{low} <= {amount} <= {high}")
    return {
        "amount": f"{amount:f}",
        "low": f"{low:f}",
        "high": f"{high:f}",
        "currency_code": currency,
        "basis": basis,
    }


def to_parallelism(layout: Parallelism, *, chosen: bool) -> ParallelismDegrees:
    """Returns the layout of an answer."""
    answer: ParallelismDegrees = {
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "data": layout.data,
        "context": layout.context,
        "expert": layout.expert,
        "sequence_parallel": layout.sequence_parallel,
        "sharding": layout.sharding,
        "pipeline_schedule": layout.pipeline_schedule,
        "virtual_stages": layout.virtual_stages,
        "chosen": chosen,
    }
    if layout.overlap_expert_communication:
        answer["overlap_expert_communication"] = True
    if layout.overlap_tensor_communication is not None:
        answer["overlap_tensor_communication"] = layout.overlap_tensor_communication
    if layout.expert_tensor is not None:
        answer["expert_tensor"] = layout.expert_tensor
    return answer


def to_evidence(question: StrictModel, notes: AnswerNotes, revision: int) -> EstimateEvidence:
    """Returns the versions and sources that reproduce an answer; the digest includes the defaults taken."""
    return {
        "catalog_revision": revision,
        "method_version": METHOD_VERSION,
        "input_digest": compute_input_digest(question),
        "calibration_ids": notes.calibration_ids,
        "sources": notes.sources,
    }


def compute_input_digest(question: StrictModel) -> str:
    """Returns the SHA-256 of a question with its defaults."""
    return hashlib.sha256(question.__pydantic_serializer__.to_json(question)).hexdigest()
