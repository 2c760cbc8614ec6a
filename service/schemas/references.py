"""How a question names a model, an accelerator, a cluster, a layout and an efficiency."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.planning.hardware.links import LinkKind
from service.planning.parallelism import PipelineSchedule, Sharding
from service.planning.precision import NumberFormat
from service.schemas.architectures import Architecture
from service.schemas.base import (
    CatalogName,
    Degree,
    Factor,
    ForeignObject,
    NotNegative,
    Positive,
    PositiveInteger,
    ResourceId,
    Share,
    StrictModel,
    Text,
)
from service.schemas.host import HostInput


class CatalogModel(StrictModel):
    """A model of the catalog."""

    source: Literal["catalog"]
    id: CatalogName


class HuggingFaceModel(StrictModel):
    """A model by its published `config.json`."""

    source: Literal["huggingface_config"]
    config: ForeignObject
    """The parsed config.json, as published."""


class ArchitectureModel(StrictModel):
    """A model by its layers."""

    source: Literal["architecture"]
    architecture: Architecture
    """Layers with shapes."""


class ParameterCountModel(StrictModel):
    """A back-of-the-envelope model: what it cannot answer is a gap."""

    source: Literal["parameter_count"]
    parameter_count: PositiveInteger
    """Parameters, all of which every token uses."""


ModelReference = TypeAliasType(
    "ModelReference",
    Annotated[
        CatalogModel | HuggingFaceModel | ArchitectureModel | ParameterCountModel,
        Field(discriminator="source"),
    ],
)


class CatalogAccelerator(StrictModel):
    """An accelerator of the catalog."""

    source: Literal["catalog"]
    id: CatalogName


class AcceleratorSpecification(StrictModel):
    """An accelerator that is not in the catalog. What is absent is unknown."""

    name: Text = "specification"
    """What the answer calls it."""
    generation: CatalogName | MISSING = MISSING
    """Generation of its chip as the catalog writes it: whose measured constants hold."""
    memory_bytes: PositiveInteger | MISSING = MISSING
    """What the driver reports to a process."""
    memory_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Peak rate of the device's own memory."""
    peak_flops_per_second: (
        Annotated[dict[NumberFormat, Positive], Field(min_length=1, max_length=9)] | MISSING
    ) = MISSING
    """Dense rate by number format; a question about memory alone needs none."""
    power_limit_watts: Positive | MISSING = MISSING
    """The most that one device draws."""


class SpecifiedAccelerator(StrictModel):
    """An accelerator by its figures."""

    source: Literal["specification"]
    specification: AcceleratorSpecification
    """Its figures."""


AcceleratorReference = TypeAliasType(
    "AcceleratorReference",
    Annotated[CatalogAccelerator | SpecifiedAccelerator, Field(discriminator="source")],
)


class CatalogLink(StrictModel):
    """A link of the catalog."""

    source: Literal["catalog"]
    id: CatalogName


class LinkSpecification(StrictModel):
    """A link that is not in the catalog."""

    kind: LinkKind
    """Technology: what software achieves on it."""
    bandwidth_bytes_per_second: Positive
    """One direction, for each device."""
    latency_seconds: NotNegative | MISSING = MISSING
    """One way; defaults to what such links are known to have."""
    joined_count: Degree | MISSING = MISSING
    """Accelerators that it joins; defaults to those of a node."""
    in_network_reduction: bool = False
    """Whether its switches reduce what passes through them."""


class SpecifiedLink(StrictModel):
    """A link by its figures."""

    source: Literal["specification"]
    specification: LinkSpecification
    """Its figures."""


LinkReference = TypeAliasType(
    "LinkReference", Annotated[CatalogLink | SpecifiedLink, Field(discriminator="source")]
)


class ClusterInput(StrictModel):
    """Equal accelerators in equal nodes."""

    accelerator: AcceleratorReference
    """What every device is."""
    accelerator_count: Degree = 1
    """Devices of the whole cluster."""
    accelerators_per_node: Degree | MISSING = MISSING
    """Defaults to the vendor's reference server, else 8."""
    intra_node_link: LinkReference | MISSING = MISSING
    """Between the devices of a node; defaults to the accelerator's own link in the catalog."""
    inter_node_link: LinkReference | MISSING = MISSING
    """Between nodes; defaults to that of the accelerator's reference system in the catalog."""
    network_interfaces_per_node: Degree | MISSING = MISSING
    """Interfaces to other nodes that the devices of a node share; defaults to the reference system's, else to
    one a device."""
    host_power_watts: Positive | MISSING = MISSING
    """Power of a node beside its accelerators; defaults to a share of the reference server's."""
    host: HostInput | MISSING = MISSING
    """What the accelerators of a node share, where state is offloaded."""
    node_id: ResourceId | MISSING = MISSING
    """A node of the tenant whose own measurements count before those of others of its kind. It is what an
    accelerator given by its figures was measured on."""
    driver_version: (
        Annotated[str, Field(max_length=27, pattern=r"^[0-9]{1,6}(\.[0-9]{1,6}){0,3}$")] | MISSING
    ) = MISSING
    """Driver of the accelerators: measurements under the same major version count before others."""


class ParallelismInput(StrictModel):
    """How the workload is laid out. A degree left out is 1, `data` is what remains of the cluster."""

    tensor: Degree = 1
    """Devices that share each layer."""
    pipeline: Degree = 1
    """Stages that the layers are divided into."""
    data: Degree | MISSING = MISSING
    """Replicas that each take a share of the batch."""
    context: Degree = 1
    """Devices that share each sequence."""
    expert: Degree = 1
    """Replicas that the experts are spread over."""
    expert_tensor: Degree | MISSING = MISSING
    """Devices that each expert of a served model is cut over, of the tensor x expert that hold all; as
    many as tensor when left out."""
    sequence_parallel: bool = False
    """Whether tensor parallelism also divides the activations between layers."""
    sharding: Sharding = Sharding.NONE
    """Which part of the training state is spread over the replicas."""
    sharding_group_size: Degree | MISSING = MISSING
    """Devices that hold one copy of the state together; hybrid sharding needs it."""
    pipeline_schedule: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B
    """In which order the micro-batches pass the pipeline."""
    virtual_stages: Degree = 1
    """Parts of the model on each pipeline device."""


class ModelledEfficiency(StrictModel):
    """The achieved share of the limits comes from measured runs."""

    source: Literal["modelled"]
    time_factor: Factor | MISSING = MISSING
    """What the time of a training step is multiplied by: devices that turn out slower or faster."""


class AssumedEfficiency(StrictModel):
    """The achieved share of the limits is given: T = O / (R_peak x utilization)."""

    source: Literal["assumed"]
    utilization: Share
    """Achieved share of the peak rate."""
    bandwidth_utilization: Share | MISSING = MISSING
    """Defaults to `utilization`, with a warning where it matters."""


class CalibrationEfficiency(StrictModel):
    """The achieved share of the limits is that of one calibration, else of the reference set."""

    source: Literal["calibration"]
    id: ResourceId
    """Id of a calibration that counts."""


EfficiencyInput = TypeAliasType(
    "EfficiencyInput",
    Annotated[ModelledEfficiency | AssumedEfficiency | CalibrationEfficiency, Field(discriminator="source")],
)
