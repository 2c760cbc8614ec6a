"""The shapes of the four answers. An unknown figure is an absent member, and a gap names it."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.planning.parallelism import PipelineSchedule, Sharding
from service.questions.base import (
    Advice,
    AnswerWarning,
    Evidence,
    Gap,
    Integer,
    Line,
    MoneyQuantity,
    QuantityAnswer,
)


class ParallelismAnswer(TypedDict):
    """The layout that the figures hold for, given or chosen."""

    tensor: Integer
    pipeline: Integer
    data: Integer
    context: Integer
    expert: Integer
    sequence_parallel: bool
    sharding: Sharding
    pipeline_schedule: PipelineSchedule
    virtual_stages: Integer
    chosen: bool


class Answer(TypedDict):
    """What every answer carries beside its figures."""

    parallelism: ParallelismAnswer
    evidence: Evidence
    warnings: list[AnswerWarning]
    gaps: list[Gap]


class MemoryComponent(TypedDict):
    """One part of the memory of a device."""

    name: Literal[
        "weights",
        "gradients",
        "master_weights",
        "optimizer_states",
        "activations",
        "logits",
        "kv_cache",
        "workspace",
    ]
    bytes: Integer


class DeviceMemory(TypedDict):
    """Memory of the fullest device. `known_bytes` is the sum of the components."""

    total_bytes: NotRequired[QuantityAnswer]
    known_bytes: Integer
    components: list[MemoryComponent]


class MemoryLimits(TypedDict):
    """How far each dimension goes before the device is full, the others as asked."""

    max_micro_batch_size: NotRequired[Integer]
    max_sequence_length: NotRequired[Integer]
    max_concurrency: NotRequired[Integer]
    kv_cache_tokens: NotRequired[Integer]


class MemoryAnswer(Answer):
    """Does it fit?"""

    parameter_count: Integer
    active_parameter_count: Integer
    per_device: DeviceMemory
    capacity_bytes: NotRequired[Integer]
    usable_bytes: NotRequired[Integer]
    headroom_bytes: NotRequired[Integer]
    fits: NotRequired[bool]
    fit_probability: NotRequired[float]
    limits: MemoryLimits
    advice: list[Advice]


class PhaseAnswer(TypedDict):
    """A part of the time and the limit that sets it."""

    phase: Literal["forward", "backward", "recomputation", "bubble", "prefill", "decode"]
    seconds: QuantityAnswer
    bound: Literal["compute", "memory"]


class Bottleneck(TypedDict):
    """What limits the speed. `axis` is that of data, algorithm and machine."""

    bound: Literal["compute", "memory"]
    axis: Literal["algorithm", "machine", "data"]
    advice: list[Advice]


class Rates(TypedDict):
    """Figures of training or of serving; those of the other kind are absent."""

    total_flops: NotRequired[float]
    peak_flops_per_second_per_device: float
    duration_seconds: NotRequired[QuantityAnswer]
    step_seconds: NotRequired[QuantityAnswer]
    tokens_per_second: NotRequired[QuantityAnswer]
    tokens_per_second_per_device: NotRequired[QuantityAnswer]
    samples_per_second: NotRequired[QuantityAnswer]
    model_flops_utilization: NotRequired[QuantityAnswer]
    hardware_flops_utilization: NotRequired[QuantityAnswer]
    time_to_first_token_seconds: NotRequired[QuantityAnswer]
    time_per_output_token_seconds: NotRequired[QuantityAnswer]
    output_tokens_per_second: NotRequired[QuantityAnswer]
    requests_per_second: NotRequired[QuantityAnswer]


class ThroughputAnswer(Answer, Rates):
    """How fast will it go?"""

    breakdown: list[PhaseAnswer]
    bottleneck: NotRequired[Bottleneck]


class CostAnswer(Answer):
    """What will it cost?"""

    duration_seconds: NotRequired[QuantityAnswer]
    device_hours: NotRequired[QuantityAnswer]
    lines: list[Line]
    total: NotRequired[MoneyQuantity]
    cost_per_million_tokens: NotRequired[MoneyQuantity]


class EnergyLine(TypedDict):
    """The energy of one kind of equipment."""

    name: Literal["accelerators", "hosts"]
    it_kwh: QuantityAnswer
    facility_kwh: NotRequired[QuantityAnswer]


class EnergyAnswer(TypedDict):
    """Energy of accelerators and hosts, and at the meter of the building."""

    lines: list[EnergyLine]
    it_kwh: NotRequired[QuantityAnswer]
    facility_kwh: NotRequired[QuantityAnswer]
    peak_kw: NotRequired[QuantityAnswer]


class ElectricityAnswer(TypedDict):
    """The electricity bill."""

    lines: list[Line]
    total: NotRequired[MoneyQuantity]


class CarbonAnswer(TypedDict):
    """Emissions of the run."""

    location_based_kg_co2e: NotRequired[QuantityAnswer]
    market_based_kg_co2e: NotRequired[QuantityAnswer]
    embodied_kg_co2e: NotRequired[QuantityAnswer]


class MoneyTotal(TypedDict):
    """What renting or buying the devices costs."""

    lines: list[Line]
    total: NotRequired[MoneyQuantity]


class UtilityBillAnswer(Answer):
    """What will the run draw, emit and cost, rented or bought?"""

    total_flops: NotRequired[float]
    peak_flops_per_second_per_device: float
    duration_seconds: NotRequired[QuantityAnswer]
    device_hours: NotRequired[QuantityAnswer]
    energy: EnergyAnswer
    electricity: ElectricityAnswer
    carbon: CarbonAnswer
    water_liters: NotRequired[QuantityAnswer]
    rent: MoneyTotal
    purchase: MoneyTotal
    break_even_runs: NotRequired[QuantityAnswer]
    break_even_runs_with_electricity: NotRequired[QuantityAnswer]


class MemoryAnswers(TypedDict):
    """Answers in the order of the questions."""

    results: list[MemoryAnswer]


class ThroughputAnswers(TypedDict):
    """Answers in the order of the questions."""

    results: list[ThroughputAnswer]


class CostAnswers(TypedDict):
    """Answers in the order of the questions."""

    results: list[CostAnswer]


class UtilityBillAnswers(TypedDict):
    """Answers in the order of the questions."""

    results: list[UtilityBillAnswer]
