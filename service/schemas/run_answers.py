"""The parts of a training answer beside its step: data, checkpoints, failures, scaling and hints."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.planning.training.scaling import RunScale
from service.schemas.base import Integer, QuantityEstimate


class DataPipelineStage(TypedDict):
    """One stage of the way of the data."""

    name: Literal["storage", "preprocessing", "transfer", "compute"]
    """What it does."""
    seconds: QuantityEstimate
    """Time that it takes for the samples of a step."""


class DataPipelineEstimate(TypedDict):
    """How the data keeps up with the devices."""

    stages: list[DataPipelineStage]
    """Stages whose figures are given, and compute."""
    slowest: Literal["storage", "preprocessing", "transfer", "compute"]
    """The stage that takes longest."""
    exposed_seconds: QuantityEstimate
    """Time of a step in which the devices wait for data."""
    device_utilization: QuantityEstimate
    """Share of a step in which they do not."""
    workers_needed: NotRequired[Integer]
    """Workers of each replica that prepare samples as fast as the devices take them."""
    buffer_bytes: Integer
    """Host memory of the batches of a replica that are ready, at work and on their way."""
    dataset_bytes: NotRequired[Integer]
    """Size of the dataset as it is stored."""
    stream_seconds: NotRequired[QuantityEstimate]
    """Time to read the dataset once."""
    epochs: NotRequired[float]
    """How often the run reads it."""


class CheckpointEstimate(TypedDict):
    """What is saved, how often, and what training waits for."""

    bytes: Integer
    """Trained weights, master weights and optimizer states of the whole model, once."""
    bytes_per_device: Integer
    """What a device that saves copies."""
    write_seconds: NotRequired[QuantityEstimate]
    """Time to write it to the storage."""
    stall_seconds: NotRequired[QuantityEstimate]
    """Time that training stops for each checkpoint."""
    interval_seconds: NotRequired[QuantityEstimate]
    """Training from one checkpoint to the next."""
    interval_steps: NotRequired[Integer]
    """The same in optimizer steps."""


class ReliabilityEstimate(TypedDict):
    """What failures are expected, and what the whole run spends its time on."""

    mean_time_between_failures_seconds: QuantityEstimate
    """Of the whole cluster."""
    restart_seconds: QuantityEstimate
    """From a failure until training goes on, loading the checkpoint included."""
    failure_probability: NotRequired[float]
    """Probability of at least one failure in the time that the run needs without any."""
    expected_failures: NotRequired[float]
    """Failures of the whole run."""
    expected_silent_corruptions: NotRequired[QuantityEstimate]
    """Results that a device computes wrongly without notice, at published rates; they take no time here."""
    productive_seconds: NotRequired[QuantityEstimate]
    """Progress: the duration without checkpoints and failures."""
    checkpoint_seconds: NotRequired[QuantityEstimate]
    """Time that training stops for checkpoints."""
    lost_work_seconds: NotRequired[QuantityEstimate]
    """Work that failures lose and that is done again."""
    restarting_seconds: NotRequired[QuantityEstimate]
    """Time in restarts."""


class ScalingPoint(TypedDict):
    """The run on another number of accelerators. Speed-ups are over the smallest one of the curve."""

    accelerator_count: Integer
    """Accelerators."""
    global_batch_size: Integer
    """Sequences of a step."""
    step_seconds: QuantityEstimate
    """Time of a step."""
    tokens_per_second: QuantityEstimate
    """Tokens trained on by the whole cluster."""
    speedup: float
    """Over the smallest count: of the same step, or of tokens per second where the step grows."""
    efficiency: float
    """Speed-up over the ratio of the counts."""
    work_cost_factor: float
    """What the same work costs in device-hours over what it costs on the smallest count: 1 / efficiency."""
    communication_share: float
    """Share of the step in which the devices wait for communication."""
    fits: NotRequired[bool]
    """Whether a device holds its share; absent where the capacity is not known."""
    law_speedup: NotRequired[float]
    """By the law of the curve with its serial share: Amdahl for strong scaling, Gustafson for weak."""
    empirical_speedup: NotRequired[float]
    """By the empirical curve that is fitted to the points."""


class EmpiricalScalingFit(TypedDict):
    """n / S(n) = a + b n + c ln n, fitted to the points of the curve; n over the smallest count."""

    a: float
    """Constant."""
    b: float
    """Of n."""
    c: float
    """Of ln n."""
    largest_relative_error: float
    """Of the fit at its own points."""


class ScalingCurve(TypedDict):
    """One way to scale."""

    points: list[ScalingPoint]
    """By number of accelerators."""
    serial_share: NotRequired[float]
    """The share of the work that is not divided, by the law that comes closest."""
    crossover_accelerator_count: NotRequired[float]
    """Where compute of the smallest count, divided, takes as long as communication of the largest, which does
    not shrink; of strong scaling."""
    empirical: NotRequired[EmpiricalScalingFit]
    """Fitted to the points, where there are four."""


class ScalingEstimate(TypedDict):
    """How the run would go on other numbers of accelerators."""

    strong: ScalingCurve
    """The same step divided among more accelerators."""
    weak: ScalingCurve
    """A step that grows with them."""


class ScaleOption(TypedDict):
    """The run on one device, one node, or the cluster."""

    scale: RunScale
    """On how much it is spread."""
    accelerator_count: Integer
    """Accelerators."""
    fits: NotRequired[bool]
    """Whether a device holds its share; absent where the capacity is not known."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""
    in_time: NotRequired[bool]
    """Whether it ends within the limit."""


class ScalingDecision(TypedDict):
    """The smallest scale that holds the step and ends in time."""

    scale: NotRequired[RunScale]
    """Absent where none does."""
    options: list[ScaleOption]
    """The scales, smallest first."""
    least_accelerator_count: NotRequired[Integer]
    """Accelerators that weights, gradients and optimizer states alone fill, spread evenly."""
    time_limit_seconds: float
    """Longest run that is put up with."""
    rule_of_thumb: NotRequired[RunScale]
    """What sizes alone would say; a hint. Absent without the size of the dataset."""
    streaming: NotRequired[bool]
    """Whether the dataset is too large to stage."""


class RecipeHint(TypedDict):
    """A hint for the recipe, which the estimate does not depend on."""

    code: Literal[
        "LINEAR_LEARNING_RATE",
        "SQUARE_ROOT_LEARNING_RATE",
        "WARM_UP",
        "LAYERWISE_LEARNING_RATES",
        "SMALL_MODEL",
        "SMALL_DEVICE_BATCH",
    ]
    """Stable name of the hint."""
    detail: str
    """What to do."""
    factor: NotRequired[float]
    """By what to multiply the learning rate."""
    learning_rate: NotRequired[float]
    """The learning rate that comes out."""


class GradientCompressionEstimate(TypedDict):
    """What compressing the gradients changes in a step."""

    ratio: float
    """How many times fewer bytes a replica sends."""
    compression_seconds: QuantityEstimate
    """Time of a step to compress and to restore."""
    step_seconds_without: QuantityEstimate
    """Time of a step whose gradients are not compressed."""
    pays: bool
    """Whether the step is shorter with it."""


class RolloutEstimate(TypedDict):
    """How a policy generates what it is trained on."""

    seconds: QuantityEstimate
    """Time of one rollout."""
    sequences: Integer
    """Sequences of a rollout."""
    generated_tokens_per_second: QuantityEstimate
    """Tokens of responses that all replicas generate while it lasts."""
    replicas: Integer
    """Engines that generate side by side."""
    devices_per_replica: Integer
    """Devices that each of them takes."""
    sequences_per_replica: Integer
    """Sequences that each of them holds at a time; 0 where not one fits."""


class TrainingEstimateParts(TypedDict):
    """Members of an answer about a training run; absent where the question does not ask for them."""

    data_pipeline: NotRequired[DataPipelineEstimate]
    """How the data keeps up; where a data pipeline is given."""
    gradient_compression: NotRequired[GradientCompressionEstimate]
    """Where gradient compression is given and replicas exchange whole gradients."""
    checkpoint: NotRequired[CheckpointEstimate]
    """Where checkpointing is given."""
    reliability: NotRequired[ReliabilityEstimate]
    """Where reliability is given."""
    goodput: NotRequired[QuantityEstimate]
    """Share of the duration that ends up as progress; where checkpointing or reliability is given."""
    scaling: NotRequired[ScalingEstimate]
    """Where scaling is given."""
    scaling_decision: NotRequired[ScalingDecision]
    """One device, one node or the cluster; where scaling is given."""
    rollout: NotRequired[RolloutEstimate]
    """How the sequences of ppo and grpo are generated."""
    hints: NotRequired[list[RecipeHint]]
    """For the recipe at this batch size."""
