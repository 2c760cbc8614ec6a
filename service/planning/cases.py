"""What is estimated: a model at work on devices, with every choice made.

A question becomes one of three cases, in which nothing that physics needs is missing: a model in training
(:class:`TrainingCase`), one that generates tokens (:class:`ServingCase`), and one whose requests are forward
passes (:class:`ForwardPassCase`). ``service.resolve`` makes them of requests, a script may make them by hand,
and ``service.planning.estimates`` answers them. Times are in seconds, sizes in bytes.
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
from service.planning.workload import InferenceWorkload, TrainingWorkload


class AssumedShares(NamedTuple):
    """Shares of peak rate and bandwidth that a question assumes; None for the same share of both."""

    utilization: float
    bandwidth_utilization: float | None = None


class Checkpointing(NamedTuple):
    """How the state of a run is saved; rates in bytes per second, None for what is not known.

    ``storage_rate`` is written and ``read_rate`` read by all devices together, ``host_rate`` is copied by one
    device to its host. At most one interval is given; without one the interval that loses least is taken.
    """

    is_asynchronous: bool = False
    interval_seconds: float | None = None
    interval_steps: int | None = None
    storage_rate: float | None = None
    read_rate: float | None = None
    host_rate: float | None = None
    is_sharded: bool = True
    stall_seconds: float | None = None

    @property
    def has_interval(self) -> bool:
        """Whether the question sets the interval."""
        return self.interval_seconds is not None or self.interval_steps is not None


class Reliability(NamedTuple):
    """Mean hours between failures of one device, and seconds of a restart."""

    device_mtbf_hours: Quantity
    restart_seconds: Quantity


class KnownLearningRate(NamedTuple):
    """A learning rate that works, and the sequences of a step that it works at."""

    rate: float
    batch_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCase:
    """What every case has: a model, laid out on devices, under the constants of these devices."""

    profile: ModelProfile
    layout: Parallelism
    layout_chosen: bool
    cluster: Cluster
    """One device of which nothing is known where a question names none."""
    device: DeviceConstants
    """The constants of the cluster's devices, and which of them were measured."""
    sample: SampleShape | None = None
    """Of a model that is asked by the sample."""
    unknown: PlanningError | None = None
    """Why a part of the model is not known."""

    @property
    def curves(self) -> ReferenceCurves:
        """The constants of the cluster's devices."""
        return self.device.curves

    @property
    def accelerator_id(self) -> str | None:
        """None where the question names no device."""
        return self.cluster.accelerator.id or None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase(BaseCase):
    """A model in training. Of a model that is asked by the sample each token stands for one sample."""

    workload: TrainingWorkload
    batch_known: bool = True
    """Whether the sequences of one step follow from the question."""
    total_tokens: float | None = None
    """Tokens that the run has in all."""
    assumed: AssumedShares | None = None
    """None where the time is that of operators or of measured runs."""
    calibration_id: str | None = None
    """The calibration that a question names."""
    time_factor: float | None = None
    """How many times as long as estimated the devices take."""
    data_pipeline: DataPipeline | None = None
    checkpointing: Checkpointing | None = None
    reliability: Reliability | None = None
    learning_rate: KnownLearningRate | None = None
    framework_name: str = ""
    """As the question names it, in one spelling."""

    @property
    def step_sequences(self) -> int:
        """Samples of one optimizer step over all replicas."""
        return self.workload.micro_batch_size * self.workload.micro_batches * self.layout.data

    @property
    def step_tokens(self) -> float:
        """Tokens of one optimizer step over all replicas."""
        return float(self.step_sequences * self.workload.sample_tokens)


class TokenProposals(NamedTuple):
    """Tokens that are proposed at a time, and the probability that one is accepted behind accepted ones."""

    tokens: int
    acceptance_rate: float
    method: str | None
    """None where a draft model proposes."""


class RequestLoad(NamedTuple):
    """What the whole cluster is asked: ``concurrency`` requests at a time, or a rate."""

    inputs: DiscreteLengths
    outputs: DiscreteLengths
    concurrency: int | None
    rate_per_second: float | None = None
    is_uniform: bool = False
    at_seconds: tuple[float, ...] = ()
    """Arrivals of a trace."""
    prefix_hit_rate: float = 0.0
    proposals: TokenProposals | None = None


class EncoderWork(NamedTuple):
    """What a request has in front of its decoder, and the engine as the question names it."""

    sample: SampleShape
    engine: str | None


class ResidentModel(NamedTuple):
    """Model and workload as memory sees them."""

    profile: ModelProfile
    workload: InferenceWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceCase(BaseCase):
    """A model that is served; ``workload`` and ``load`` count what pictures and the like add to prompts."""

    workload: InferenceWorkload
    load: RequestLoad
    resident: ResidentModel
    prompt_tokens: float
    """Mean tokens of a prompt without what pictures and the like add."""
    system: EvidenceSystem
    """Engine and device, for what was measured of such."""
    engine: EngineSettings | None = None
    context_tokens: int | None = None
    """Positions that the model was built for."""
    encoding: EncoderWork | None = None
    """Pictures, sound or a text in front of the decoder."""
    assumed: AssumedShares | None = None
    """None where the time is that of iterations or passes."""

    @property
    def replicas(self) -> int:
        """Equal groups of devices that answer requests by themselves."""
        return self.layout.data // self.layout.expert


class Simulation(NamedTuple):
    """Requests that are followed one by one, so many or for so long."""

    seed: int
    requests: int | None = None
    duration_seconds: float | None = None


class ServiceLevels(NamedTuple):
    """Limits of what a request may take, and the share of requests that is to keep to them."""

    limits: LatencyLimits
    share: float


class ReplicaPool(NamedTuple):
    """Replicas that compute prompts, or replicas that generate: ``layout`` is that of one of them."""

    layout: Parallelism
    cluster: Cluster
    """All devices of the pool."""
    device: DeviceConstants
    workload: InferenceWorkload
    replicas: int


class Disaggregation(NamedTuple):
    """Prefill and decode on replicas of their own, and the link that takes the cache of a device across."""

    prefill: ReplicaPool
    decode: ReplicaPool
    link: Link
    is_by_layer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCase(InferenceCase):
    """A model that generates tokens under a load."""

    simulation: Simulation | None = None
    """None for the formulas of the steady state."""
    levels: ServiceLevels | None = None
    disaggregation: Disaggregation | None = None


class PassBatching(NamedTuple):
    """How a server of passes fills a batch; without ``most_requests`` as full as memory allows."""

    most_requests: int | None = None
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPassCase(InferenceCase):
    """A model whose requests are forward passes over their samples."""

    parts: RequestParts | None
    """What a request passes; None where that is ``unknown``."""
    batching: PassBatching = field(default_factory=PassBatching)


RunCase = TrainingCase | ServingCase | ForwardPassCase
"""What has a rate, and with it a duration, a cost and a utility bill."""
