"""The shape of the utility bill."""

from typing import NotRequired

from typing_extensions import TypedDict

from service.questions.answers import Answer
from service.questions.base import Line, MoneyQuantity, QuantityAnswer
from service.questions.cost_answers import MoneyTotal
from service.questions.energy_answers import CarbonAnswer, EnergyAnswer


class ElectricityAnswer(TypedDict):
    """The electricity bill."""

    lines: list[Line]
    """Charges."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""


class UtilityBillAnswer(Answer):
    """What will the run draw, emit and cost, rented or bought?"""

    total_flops: NotRequired[float]
    """Floating-point operations of the whole run."""
    peak_flops_per_second_per_device: float
    """Dense rate of the format that is multiplied in."""
    duration_seconds: NotRequired[QuantityAnswer]
    """Time of the whole run."""
    device_hours: NotRequired[QuantityAnswer]
    """Hours of all devices together."""
    energy: EnergyAnswer
    """Energy of the run."""
    electricity: ElectricityAnswer
    """The electricity bill of the run."""
    carbon: CarbonAnswer
    """Emissions of the run."""
    water_liters: NotRequired[QuantityAnswer]
    """Water evaporated on the site and by the grid."""
    rent: MoneyTotal
    """What renting the devices costs."""
    purchase: MoneyTotal
    """What buying the devices costs."""
    break_even_runs: NotRequired[QuantityAnswer]
    """Purchase over rent: runs that pay the purchase back."""
    break_even_runs_with_electricity: NotRequired[QuantityAnswer]
    """The same where a run on own devices pays its electricity."""


class UtilityBillAnswers(TypedDict):
    """Answers in the order of the questions."""

    results: list[UtilityBillAnswer]
