"""The shape of the answer on cost."""

from typing import NotRequired

from typing_extensions import TypedDict

from service.questions.answers import Answer
from service.questions.base import Line, MoneyQuantity, QuantityAnswer


class CostAnswer(Answer):
    """What will it cost?"""

    duration_seconds: NotRequired[QuantityAnswer]
    """Time of the whole run."""
    device_hours: NotRequired[QuantityAnswer]
    """Hours of all devices together."""
    lines: list[Line]
    """Charges."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""
    cost_per_million_tokens: NotRequired[MoneyQuantity]
    """Total over the tokens trained on or generated."""


class CostAnswers(TypedDict):
    """Answers in the order of the questions."""

    results: list[CostAnswer]
