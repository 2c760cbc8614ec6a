"""The answer on cost."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.schemas.answers import BaseEstimate
from service.schemas.base import CostLine, EstimateGap, Integer, MoneyAmount, MoneyQuantity, QuantityEstimate


class CostBreakdown(TypedDict):
    """Charges and their sum."""

    lines: list[CostLine]
    """Charges."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""


class SpotInterruptionEstimate(TypedDict):
    """Cost of interruptions of spot devices."""

    mean_time_between_interruptions_seconds: NotRequired[float]
    """Mean time between interruptions of all instances together. Absent if none is expected."""
    expected_interruptions: float
    """Number of them over the run."""
    extra_device_hours: QuantityEstimate
    """Device-hours of lost work and restarts, beyond those of the run."""
    duration_seconds: QuantityEstimate
    """Duration of the run with interruptions. A served model keeps its horizon, and interrupted instances are
    replaced."""


class RentCostBreakdown(CostBreakdown):
    """Cost of renting the devices."""

    purchase_option: NotRequired[str]
    """Purchase option of the rental: on_demand, spot, reserved or capacity_block."""
    instances: Integer
    """Number of whole instances."""
    devices_per_instance: Integer
    """Devices of one instance."""
    paid_device_hours: QuantityEstimate
    """Device-hours that are paid for, used or not."""
    due_at_start: NotRequired[MoneyAmount]
    """Part of the total that is paid before the devices start."""
    interruptions: NotRequired[SpotInterruptionEstimate]
    """Cost of interruptions. Present for spot devices."""


class OwnershipCostBreakdown(CostBreakdown):
    """Cost of the run on owned devices: its share of the cost of each year."""

    yearly: CostBreakdown
    """Cost of a year, whatever runs."""
    price_per_device_hour: MoneyQuantity
    """Cost of a year over the device-hours that are used in it."""
    device_hours_per_year: QuantityEstimate
    """Device-hours that are used in a year."""


BreakEvenPart = Literal["purchase", "running_costs", "financing", "electricity"]


class BreakEven(TypedDict):
    """Point at which a purchase has paid for itself against the rent, under the named assumptions."""

    counts: list[BreakEvenPart]
    """Costs that are set against the rent. Running costs are maintenance, staff and space."""
    utilization: float
    """Share of the time in which the devices run such runs, one after another."""
    runs: NotRequired[QuantityEstimate]
    """Runs until the purchase has paid for itself. Absent if it never does."""
    months: NotRequired[QuantityEstimate]
    """Months (730.5 hours) until the purchase has paid for itself."""


class TokenListPrice(TypedDict):
    """A provider's list price of the same tokens."""

    id: str
    """Id of the price in the catalog."""
    provider: str
    """Provider that asks the price."""
    model: str
    """The provider's name of the model."""
    as_of: str
    """Date of the price."""
    price_per_million_input_tokens: MoneyAmount
    """Price of the tokens of prompts."""
    price_per_million_output_tokens: MoneyAmount
    """Price of the generated tokens."""
    price_per_million_cached_input_tokens: NotRequired[MoneyAmount]
    """Price of the tokens of prompts that are found in a cache."""
    total: NotRequired[MoneyQuantity]
    """Cost of the tokens of the run at these prices."""
    ratio: NotRequired[QuantityEstimate]
    """Total of the run over the total of the list prices."""


class CostEstimate(BaseEstimate):
    """Cost of a training run or of a served model."""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run, without interruptions of spot devices."""
    device_hours: NotRequired[QuantityEstimate]
    """Hours of all devices together over that time."""
    lines: list[CostLine]
    """Charges of the run: its rent, else its share of owned devices, else the purchase; also storage and
    egress."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""
    cost_per_million_tokens: NotRequired[MoneyQuantity]
    """Total over the tokens that are trained on or generated."""
    cost_per_million_input_tokens: NotRequired[MoneyQuantity]
    """Cost of the prompts of a served model: the share of the total that prompts take of the devices' busy
    time, over the tokens of the prompts."""
    cost_per_million_output_tokens: NotRequired[MoneyQuantity]
    """Rest of the total over the generated tokens."""
    cost_per_request: NotRequired[MoneyQuantity]
    """Total over the requests that are served."""
    rent: NotRequired[RentCostBreakdown]
    """Cost of renting the devices. Present if a rental is given."""
    purchase: NotRequired[CostBreakdown]
    """Cost of buying the devices. Present if a purchase is given."""
    ownership: NotRequired[OwnershipCostBreakdown]
    """Cost of the run on bought devices. Present if the request asks for it."""
    break_even_runs: NotRequired[QuantityEstimate]
    """Purchase over rent: number of runs after which the purchase has paid for itself."""
    break_even: NotRequired[list[BreakEven]]
    """The same in runs and months, under further assumptions."""
    list_prices: NotRequired[list[TokenListPrice]]
    """Providers' prices of the same tokens: at the list prices of the request, else at those of the model."""


class CostEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[CostEstimate]


class AlternativeCost(TypedDict):
    """One way of doing the work, compared with the baseline. A ratio above 1 is more than the baseline."""

    cost: CostEstimate
    """Cost of this way."""
    time_ratio: NotRequired[QuantityEstimate]
    """Its duration over that of the baseline."""
    device_hours_ratio: NotRequired[QuantityEstimate]
    """Its device-hours over those of the baseline."""
    cost_ratio: NotRequired[QuantityEstimate]
    """Its total over that of the baseline."""


class CostComparisonEstimate(TypedDict):
    """Cost of the same work done in different ways."""

    baseline: CostEstimate
    """Cost that the others are compared with."""
    alternatives: list[AlternativeCost]
    """Alternatives in the order of the request."""
    gaps: list[EstimateGap]
    """Ratios that are absent, and why."""
