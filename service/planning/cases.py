"""Cases: a model at work on devices, with every choice made.

A question becomes one of three cases, in which nothing that physics needs is missing: a model in training
(:class:`TrainingCase`), one that generates tokens (:class:`ServingCase`), and one whose requests are forward
passes (:class:`ForwardPassCase`). ``service.resolve`` builds them from requests, a script may build them by
hand, and ``service.planning.estimates`` estimates them. Times are in seconds, sizes in bytes.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from service.planning.errors import PlanningError
from service.planning.hardware.cluster import Cluster
from service.planning.hardware.curves import ReferenceCurves
from service.planning.hardware.distance import EvidenceSystem
from service.planning.hardware.links import Link
from service.planning.hardware.resolution import DeviceConstants
from service.planning.inference.lengths import DiscreteLengths
from service.planning.inference.load import LatencyLimits
from service.planning.inference.passes import RequestParts
from service.planning.models.positions import SampleShape
from service.planning.models.profile import ModelProfile
from service.planning.parallelism import Parallelism
from service.planning.quantity import Quantity
from service.planning.software.engines import EngineSettings
from service.planning.training.data_pipeline import DataPipeline
from service.planning.workload import InferenceWorkload, Recomputation, TrainingWorkload


class AssumedShares(NamedTuple):
    """Shares of peak rate and bandwidth that a question assumes; None for the same share of both."""

    utilization: float
    bandwidth_utilization: float | None = None


class Checkpointing(NamedTuple):
    """Checkpointing of a run; rates are in bytes per second, None where not known.

    ``storage_rate`` is the rate of writes and ``read_rate`` that of reads by all devices together,
    ``host_rate`` the rate of copies from one device to its host. At most one interval is given; without one
    the optimal interval is taken. ``is_written`` is false for a run that saves nothing.
    """

    is_asynchronous: bool = False
    interval_seconds: float | None = None
    interval_steps: int | None = None
    storage_rate: float | None = None
    read_rate: float | None = None
    host_rate: float | None = None
    is_sharded: bool = True
    stall_seconds: float | None = None
    is_written: bool = True

    @property
    def has_interval(self) -> bool:
        """True if the question sets the interval."""
        return self.interval_seconds is not None or self.interval_steps is not None


class Reliability(NamedTuple):
    """Mean hours between failures of one device, and seconds of a restart."""

    device_mtbf_hours: Quantity
    restart_seconds: Quantity


class KnownLearningRate(NamedTuple):
    """A learning rate that works, and the sequences of a step at which it does."""

    rate: float
    batch_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCase:
    """Members of every case: a model, laid out on devices, with the constants of these devices."""

    profile: ModelProfile
    layout: Parallelism
    layout_chosen: bool
    cluster: Cluster
    """Cluster; a single unknown device where a question names none."""
    device: DeviceConstants
    """Constants of the cluster's devices, and which of them were measured."""
    sample: SampleShape | None = None
    """Sample of a model that is asked by the sample."""
    unknown: PlanningError | None = None
    """Reason why a part of the model is not known."""

    @property
    def curves(self) -> ReferenceCurves:
        """Constants of the cluster's devices."""
        return self.device.curves

    @property
    def accelerator_id(self) -> str | None:
        """Id of the accelerator; None where the question names no device."""
        return self.cluster.accelerator.id or None


class NaiveLayout(NamedTuple):
    """The first layout that fits in the order of practice, which the chosen one is compared with."""

    layout: Parallelism
    micro_batch_size: int
    recomputation: Recomputation
    time_ratio: float
    """Time of a step on it over the time of a step on the chosen layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase(BaseCase):
    """A model in training. For a model that is asked by the sample, each token stands for one sample."""

    workload: TrainingWorkload
    batch_known: bool = True
    """True if the sequences of one step follow from the question."""
    total_tokens: float | None = None
    """Tokens of the whole run."""
    assumed: AssumedShares | None = None
    """Assumed shares; None where the time is that of operators or of measured runs."""
    calibration_id: str | None = None
    """Calibration that the question names."""
    time_factor: float | None = None
    """Factor of the time that the devices take over the estimated time."""
    data_pipeline: DataPipeline | None = None
    checkpointing: Checkpointing | None = None
    reliability: Reliability | None = None
    learning_rate: KnownLearningRate | None = None
    framework_name: str = ""
    """Name of the framework in the question, in one spelling."""
    naive: NaiveLayout | None = None
    """Layout that a search was compared with."""

    @property
    def step_sequences(self) -> int:
        """Samples of one optimizer step over all replicas."""
        return self.workload.micro_batch_size * self.workload.micro_batches * self.layout.data

    @property
    def step_tokens(self) -> float:
        """Tokens of one optimizer step over all replicas."""
        return float(self.step_sequences * self.workload.sample_tokens)


class TokenProposals(NamedTuple):
    """Number of tokens proposed at a time, and the probability that one is accepted after accepted ones."""

    tokens: int
    acceptance_rate: float
    method: str | None
    """Method of proposal; None for a draft model."""


class RequestLoad(NamedTuple):
    """Load of the whole cluster: ``concurrency`` requests at a time, or a rate."""

    inputs: DiscreteLengths
    outputs: DiscreteLengths
    concurrency: int | None
    rate_per_second: float | None = None
    is_uniform: bool = False
    at_seconds: tuple[float, ...] = ()
    """Arrival times of a trace."""
    prefix_hit_rate: float = 0.0
    proposals: TokenProposals | None = None


class EncoderWork(NamedTuple):
    """Encoder input of a request before its decoder, and the engine as the question names it."""

    sample: SampleShape
    engine: str | None


class ResidentModel(NamedTuple):
    """Model and workload for the memory estimate."""

    profile: ModelProfile
    workload: InferenceWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceCase(BaseCase):
    """A served model.

    ``workload`` and ``load`` include the tokens that pictures and the like add to prompts.
    """

    workload: InferenceWorkload
    load: RequestLoad
    resident: ResidentModel
    prompt_tokens: float
    """Mean tokens of a prompt without those of pictures and the like."""
    system: EvidenceSystem
    """Engine and device, to find measurements of similar systems."""
    engine: EngineSettings | None = None
    context_tokens: int | None = None
    """Positions that the model was built for."""
    encoding: EncoderWork | None = None
    """Pictures, sound or a text before the decoder."""
    assumed: AssumedShares | None = None
    """Assumed shares; None where the time is that of iterations or passes."""

    @property
    def replicas(self) -> int:
        """Equal groups of devices that answer requests independently."""
        return self.layout.data // self.layout.expert


class Simulation(NamedTuple):
    """Simulation of individual requests, by number or by duration."""

    seed: int
    requests: int | None = None
    duration_seconds: float | None = None


class ServiceLevels(NamedTuple):
    """Latency limits of a request, and the share of requests that should meet them."""

    limits: LatencyLimits
    share: float


class ReplicaPool(NamedTuple):
    """Replicas that compute prompts, or replicas that generate; ``layout`` is that of one of them."""

    layout: Parallelism
    profile: ModelProfile
    """Model as one of them holds it."""
    cluster: Cluster
    """All devices of the pool."""
    device: DeviceConstants
    workload: InferenceWorkload
    replicas: int


class Disaggregation(NamedTuple):
    """Prefill and decode on separate replicas, and the link that transfers the cache of a device."""

    prefill: ReplicaPool
    decode: ReplicaPool
    link: Link
    is_by_layer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCase(InferenceCase):
    """A model that generates tokens under a load."""

    simulation: Simulation | None = None
    """Simulation settings; None for the formulas of the steady state."""
    levels: ServiceLevels | None = None
    disaggregation: Disaggregation | None = None


class PassBatching(NamedTuple):
    """Batching of a server of passes; without ``most_requests`` batches are limited by memory."""

    most_requests: int | None = None
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPassCase(InferenceCase):
    """A model whose requests are forward passes over their samples."""

    parts: RequestParts | None
    """Parts that a request passes; None if they are ``unknown``."""
    batching: PassBatching = field(default_factory=PassBatching)


RunCase = TrainingCase | ServingCase | ForwardPassCase
"""Cases with a rate, and so with a duration, a cost and a utility bill."""
