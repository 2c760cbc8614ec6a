"""The shape of the answer on cost."""

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
    """What interruptions of spot devices cost."""

    mean_time_between_interruptions_seconds: NotRequired[float]
    """Of all instances together; absent where none is expected."""
    expected_interruptions: float
    """Number of them over the run."""
    extra_device_hours: QuantityEstimate
    """Device-hours of lost work and restarts, beyond those of the run."""
    duration_seconds: QuantityEstimate
    """How long the run lasts with them; a served model keeps its horizon and is replaced as long."""


class RentCostBreakdown(CostBreakdown):
    """What renting the devices costs."""

    purchase_option: NotRequired[str]
    """On what terms: on_demand, spot, reserved, capacity_block."""
    instances: Integer
    """Whole instances."""
    devices_per_instance: Integer
    """Devices of one instance."""
    paid_device_hours: QuantityEstimate
    """Device-hours that are paid, used or not."""
    due_at_start: NotRequired[MoneyAmount]
    """The part of the total that is paid before the devices start."""
    interruptions: NotRequired[SpotInterruptionEstimate]
    """Of spot devices."""


class OwnershipCostBreakdown(CostBreakdown):
    """What the run costs on own devices: its share of each year's cost."""

    yearly: CostBreakdown
    """What a year costs, whatever runs."""
    price_per_device_hour: MoneyQuantity
    """A year's cost over the device-hours that are used in it."""
    device_hours_per_year: QuantityEstimate
    """Device-hours that are used in a year."""


BreakEvenPart = Literal["purchase", "running_costs", "financing", "electricity"]


class BreakEven(TypedDict):
    """When a purchase has paid itself back against the rent, under the assumptions named."""

    counts: list[BreakEvenPart]
    """What is set against the rent. Running costs are maintenance, staff and space."""
    utilization: float
    """Share of the time in which the devices run such runs, one after the other."""
    runs: NotRequired[QuantityEstimate]
    """Runs until then; more never pay it back where absent."""
    months: NotRequired[QuantityEstimate]
    """Months (730.5 hours) until then."""


class TokenListPrice(TypedDict):
    """What a provider asks for the same tokens, by its price list."""

    id: str
    """Id of the price in the catalog."""
    provider: str
    """Who asks it."""
    model: str
    """The provider's name of the model."""
    as_of: str
    """When the price held."""
    price_per_million_input_tokens: MoneyAmount
    """Of tokens of prompts."""
    price_per_million_output_tokens: MoneyAmount
    """Of generated tokens."""
    price_per_million_cached_input_tokens: NotRequired[MoneyAmount]
    """Of tokens of prompts that are found in a cache."""
    total: NotRequired[MoneyQuantity]
    """What the tokens of the run cost at these prices."""
    ratio: NotRequired[QuantityEstimate]
    """Total of the run over that of the list."""


class CostEstimate(BaseEstimate):
    """What will it cost?"""

    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run, without interruptions of spot devices."""
    device_hours: NotRequired[QuantityEstimate]
    """Hours of all devices together over that time."""
    lines: list[CostLine]
    """Charges of the run: its rent, else its share of own devices, else the purchase; storage and egress."""
    total: NotRequired[MoneyQuantity]
    """Sum of the charges."""
    cost_per_million_tokens: NotRequired[MoneyQuantity]
    """Total over the tokens trained on or generated."""
    cost_per_million_input_tokens: NotRequired[MoneyQuantity]
    """Of a served model: the share of the total that prompts take of the devices' busy time, over their
    tokens."""
    cost_per_million_output_tokens: NotRequired[MoneyQuantity]
    """The rest of the total over the generated tokens."""
    cost_per_request: NotRequired[MoneyQuantity]
    """Total over the requests that are served."""
    rent: NotRequired[RentCostBreakdown]
    """What renting the devices costs, where a rental is given."""
    purchase: NotRequired[CostBreakdown]
    """What buying the devices costs, where a purchase is given."""
    ownership: NotRequired[OwnershipCostBreakdown]
    """What the run costs on bought devices, where that is asked for."""
    break_even_runs: NotRequired[QuantityEstimate]
    """Purchase over rent."""
    break_even: NotRequired[list[BreakEven]]
    """The same in runs and months, under further assumptions."""
    list_prices: NotRequired[list[TokenListPrice]]
    """What providers ask for the same tokens: at the list prices asked for, else at those of the model."""


class CostEstimateList(TypedDict):
    """Answers in the order of the questions."""

    results: list[CostEstimate]


class AlternativeCost(TypedDict):
    """One way of doing the work against the baseline: above 1 is more than it."""

    cost: CostEstimate
    """What this way costs."""
    time_ratio: NotRequired[QuantityEstimate]
    """Its duration over that of the baseline."""
    device_hours_ratio: NotRequired[QuantityEstimate]
    """Its device-hours over those of the baseline."""
    cost_ratio: NotRequired[QuantityEstimate]
    """Its total over that of the baseline."""


class CostComparisonEstimate(TypedDict):
    """What the same work costs in different ways."""

    baseline: CostEstimate
    """What the others are compared with."""
    alternatives: list[AlternativeCost]
    """In the order of the question."""
    gaps: list[EstimateGap]
    """Ratios that are absent, and why."""
