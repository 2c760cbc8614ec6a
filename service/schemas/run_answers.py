"""Parts of a training answer beside its step: data, checkpoints, failures, scaling and hints."""

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from service.planning.training.scaling import RunScale
from service.schemas.base import Integer, QuantityEstimate


class DataPipelineStage(TypedDict):
    """One stage of the data pipeline."""

    name: Literal["storage", "preprocessing", "transfer", "compute"]
    """Name of the stage."""
    seconds: QuantityEstimate
    """Time of the stage for the samples of a step."""


class DataPipelineEstimate(TypedDict):
    """Data pipeline of a training run, and the time that devices wait for it."""

    stages: list[DataPipelineStage]
    """Stages whose figures are given, and compute."""
    slowest: Literal["storage", "preprocessing", "transfer", "compute"]
    """Stage that takes longest."""
    exposed_seconds: QuantityEstimate
    """Time of a step in which the devices wait for data."""
    device_utilization: QuantityEstimate
    """Share of a step in which the devices do not wait for data."""
    workers_needed: NotRequired[Integer]
    """Workers of each replica that prepare samples as fast as the devices consume them."""
    buffer_bytes: Integer
    """Host memory of the batches of a replica that are ready, in preparation or in transfer."""
    dataset_bytes: NotRequired[Integer]
    """Size of the stored dataset."""
    stream_seconds: NotRequired[QuantityEstimate]
    """Time to read the dataset once."""
    epochs: NotRequired[float]
    """Number of times that the run reads the dataset."""


class CheckpointEstimate(TypedDict):
    """Checkpoints of a training run: their size, their interval and the time that training stops for them."""

    bytes: Integer
    """Bytes of trained weights, master weights and optimizer states of the whole model, counted once."""
    bytes_per_device: Integer
    """Bytes that a saving device copies."""
    write_seconds: NotRequired[QuantityEstimate]
    """Time to write a checkpoint to the storage."""
    stall_seconds: NotRequired[QuantityEstimate]
    """Time that training stops for each checkpoint."""
    interval_seconds: NotRequired[QuantityEstimate]
    """Training time from one checkpoint to the next."""
    interval_steps: NotRequired[Integer]
    """Optimizer steps from one checkpoint to the next."""


class ReliabilityEstimate(TypedDict):
    """Expected failures, and the time of the whole run by activity."""

    mean_time_between_failures_seconds: QuantityEstimate
    """Mean time between failures of the whole cluster."""
    restart_seconds: QuantityEstimate
    """Time from a failure until training resumes, loading the checkpoint included."""
    failure_probability: NotRequired[float]
    """Probability of at least one failure in the time that the run needs without any."""
    expected_failures: NotRequired[float]
    """Expected failures over the whole run."""
    expected_silent_corruptions: NotRequired[QuantityEstimate]
    """Expected results that a device computes wrongly without notice, at published rates. They add no time
    here."""
    productive_seconds: NotRequired[QuantityEstimate]
    """Time of progress: the duration without checkpoints and failures."""
    checkpoint_seconds: NotRequired[QuantityEstimate]
    """Time that training stops for checkpoints."""
    lost_work_seconds: NotRequired[QuantityEstimate]
    """Time of work that failures lose and that is repeated."""
    restarting_seconds: NotRequired[QuantityEstimate]
    """Time spent in restarts."""


class ScalingPoint(TypedDict):
    """The run on another number of accelerators. Speed-ups are relative to the curve's smallest number."""

    accelerator_count: Integer
    """Number of accelerators."""
    global_batch_size: Integer
    """Sequences of a step over all replicas."""
    step_seconds: QuantityEstimate
    """Time of a step."""
    tokens_per_second: QuantityEstimate
    """Tokens that the whole cluster trains on."""
    speedup: float
    """Speed-up over the smallest number of accelerators: of the same step, or of tokens per second if the
    step grows."""
    efficiency: float
    """Speed-up over the ratio of the numbers of accelerators."""
    work_cost_factor: float
    """Device-hours of the same work over those on the smallest number of accelerators: 1 / efficiency."""
    communication_share: float
    """Share of the step in which the devices wait for communication."""
    fits: NotRequired[bool]
    """True if a device holds its share. Absent if the capacity is unknown."""
    law_speedup: NotRequired[float]
    """Speed-up by the law of the curve with its serial share: Amdahl for strong scaling, Gustafson for weak
    scaling."""
    empirical_speedup: NotRequired[float]
    """Speed-up by the empirical curve that is fitted to the points."""


class EmpiricalScalingFit(TypedDict):
    """n / S(n) = a + b n + c ln n, fitted to the points of a curve; n is relative to the smallest number."""

    a: float
    """Constant term."""
    b: float
    """Coefficient of n."""
    c: float
    """Coefficient of ln n."""
    largest_relative_error: float
    """Largest relative error of the fit at its own points."""


class ScalingCurve(TypedDict):
    """Points of one kind of scaling."""

    points: list[ScalingPoint]
    """Points by number of accelerators."""
    serial_share: NotRequired[float]
    """Share of the work that is not divided, by the law that fits best."""
    crossover_accelerator_count: NotRequired[float]
    """Number of accelerators at which the divided compute of the smallest number takes as long as the
    communication of the largest, which does not shrink. Present for strong scaling."""
    empirical: NotRequired[EmpiricalScalingFit]
    """Empirical curve. Present if there are four points."""


class ScalingEstimate(TypedDict):
    """The run on other numbers of accelerators."""

    strong: ScalingCurve
    """The same step divided among more accelerators."""
    weak: ScalingCurve
    """A step that grows with the number of accelerators."""


class ScaleOption(TypedDict):
    """The run on one device, one node, or the cluster."""

    scale: RunScale
    """Scale of the run."""
    accelerator_count: Integer
    """Number of accelerators."""
    fits: NotRequired[bool]
    """True if a device holds its share. Absent if the capacity is unknown."""
    duration_seconds: NotRequired[QuantityEstimate]
    """Time of the whole run."""
    in_time: NotRequired[bool]
    """True if the run ends within the time limit."""


class ScalingDecision(TypedDict):
    """The smallest scale that holds the step and ends within the time limit."""

    scale: NotRequired[RunScale]
    """Chosen scale. Absent if none qualifies."""
    options: list[ScaleOption]
    """Scales, the smallest first."""
    least_accelerator_count: NotRequired[Integer]
    """Accelerators that weights, gradients and optimizer states alone fill, if spread evenly."""
    time_limit_seconds: float
    """Longest acceptable run."""
    rule_of_thumb: NotRequired[RunScale]
    """Scale that sizes alone suggest, as a hint. Absent if the size of the dataset is unknown."""
    streaming: NotRequired[bool]
    """True if the dataset is too large to stage."""


class RecipeHint(TypedDict):
    """A hint for the recipe. The estimate does not depend on it."""

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
    """Description of the change."""
    factor: NotRequired[float]
    """Factor to multiply the learning rate by."""
    learning_rate: NotRequired[float]
    """Learning rate that results."""


class GradientCompressionEstimate(TypedDict):
    """Effect of gradient compression on a step."""

    ratio: float
    """Ratio of the bytes that a replica sends without compression to those with it."""
    compression_seconds: QuantityEstimate
    """Time of a step to compress and decompress."""
    step_seconds_without: QuantityEstimate
    """Time of a step without gradient compression."""
    pays: bool
    """True if the step is shorter with compression."""


class RolloutEstimate(TypedDict):
    """Generation of the sequences that a policy is trained on."""

    seconds: QuantityEstimate
    """Time of one rollout."""
    sequences: Integer
    """Sequences of a rollout."""
    generated_tokens_per_second: QuantityEstimate
    """Tokens of responses that all replicas generate during a rollout."""
    replicas: Integer
    """Engines that generate in parallel."""
    devices_per_replica: Integer
    """Devices of each engine."""
    sequences_per_replica: Integer
    """Sequences that each engine holds at a time. 0 if not even one fits."""


class TrainingEstimateParts(TypedDict):
    """Members of an answer on a training run. Members that the request does not ask for are absent."""

    data_pipeline: NotRequired[DataPipelineEstimate]
    """Data pipeline. Present if the request gives one."""
    gradient_compression: NotRequired[GradientCompressionEstimate]
    """Effect of gradient compression. Present if the request gives it and replicas exchange whole
    gradients."""
    checkpoint: NotRequired[CheckpointEstimate]
    """Checkpoints. Present if the request gives checkpointing."""
    reliability: NotRequired[ReliabilityEstimate]
    """Failures. Present if the request gives reliability."""
    goodput: NotRequired[QuantityEstimate]
    """Share of the duration that is progress. Present if the request gives checkpointing or reliability."""
    scaling: NotRequired[ScalingEstimate]
    """Scaling. Present if the request gives it."""
    scaling_decision: NotRequired[ScalingDecision]
    """Choice of one device, one node or the cluster. Present if the request gives scaling."""
    rollout: NotRequired[RolloutEstimate]
    """Generation of the sequences of ppo and grpo."""
    hints: NotRequired[list[RecipeHint]]
    """Hints for the recipe at this batch size."""
