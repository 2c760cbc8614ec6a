"""References of a request to a model, an accelerator, a cluster, a layout and an efficiency."""

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
    id: Annotated[CatalogName, Field(examples=["meta-llama/Llama-3.1-8B"])]


class HuggingFaceModel(StrictModel):
    """A model given by its published `config.json`."""

    source: Literal["huggingface_config"]
    config: ForeignObject
    """The parsed config.json, as published."""


class ArchitectureModel(StrictModel):
    """A model given by its layers."""

    source: Literal["architecture"]
    architecture: Architecture
    """Layers with shapes."""


class ParameterCountModel(StrictModel):
    """A rough model of which only the number of parameters is known. Figures that need more are gaps."""

    source: Literal["parameter_count"]
    parameter_count: PositiveInteger
    """Parameters of the model. Every token uses all of them."""


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
    id: Annotated[CatalogName, Field(examples=["h100-sxm"])]


class AcceleratorSpecification(StrictModel):
    """An accelerator that is not in the catalog. A figure that is left out is unknown."""

    name: Text = "specification"
    """Name of the accelerator in the answer."""
    generation: CatalogName | MISSING = MISSING
    """Generation of its chip, as the catalog names it. The measured constants of that generation apply."""
    memory_bytes: PositiveInteger | MISSING = MISSING
    """Memory that the driver reports to a process."""
    memory_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Peak bandwidth of the device's own memory."""
    peak_flops_per_second: (
        Annotated[dict[NumberFormat, Positive], Field(min_length=1, max_length=9)] | MISSING
    ) = MISSING
    """Dense rate by number format. Requests about memory alone need none."""
    power_limit_watts: Positive | MISSING = MISSING
    """Highest power that one device draws."""


class SpecifiedAccelerator(StrictModel):
    """An accelerator given by its figures."""

    source: Literal["specification"]
    specification: AcceleratorSpecification
    """Figures of the accelerator."""


AcceleratorReference = TypeAliasType(
    "AcceleratorReference",
    Annotated[CatalogAccelerator | SpecifiedAccelerator, Field(discriminator="source")],
)


class CatalogLink(StrictModel):
    """A link of the catalog."""

    source: Literal["catalog"]
    id: Annotated[CatalogName, Field(examples=["nvlink-4"])]


class LinkSpecification(StrictModel):
    """A link that is not in the catalog."""

    kind: LinkKind
    """Technology of the link, which determines what software achieves on it."""
    bandwidth_bytes_per_second: Positive
    """Bandwidth of one device in one direction."""
    latency_seconds: NotNegative | MISSING = MISSING
    """Latency in one direction. Defaults to the known latency of the technology."""
    joined_count: Degree | MISSING = MISSING
    """Accelerators that the link joins. Defaults to those of a node."""
    in_network_reduction: bool = False
    """True if the switches of the link reduce the data that pass through them."""


class SpecifiedLink(StrictModel):
    """A link given by its figures."""

    source: Literal["specification"]
    specification: LinkSpecification
    """Figures of the link."""


LinkReference = TypeAliasType(
    "LinkReference", Annotated[CatalogLink | SpecifiedLink, Field(discriminator="source")]
)


class ClusterInput(StrictModel):
    """Equal accelerators in equal nodes."""

    accelerator: AcceleratorReference
    """Accelerator of every device."""
    accelerator_count: Degree = 1
    """Devices of the whole cluster."""
    system: Text | MISSING = MISSING
    """Name of a system that the catalog lists for the accelerator, such as DGX H100 or p5.48xlarge. Defaults
    to the first."""
    accelerators_per_node: Degree | MISSING = MISSING
    """Accelerators of one node. Defaults to those of the system, else of the vendor's reference server, else
    8."""
    intra_node_link: LinkReference | MISSING = MISSING
    """Link between the devices of a node. Defaults to the link of the system in the catalog."""
    inter_node_link: LinkReference | MISSING = MISSING
    """Link between nodes. Defaults to the link of the system in the catalog."""
    network_interfaces_per_node: Degree | MISSING = MISSING
    """Network interfaces that the devices of a node share. Defaults to those of the system, else to one a
    device."""
    host_power_watts: Positive | MISSING = MISSING
    """Power of a node without its accelerators. Defaults to a share of the power of the reference server."""
    host: HostInput | MISSING = MISSING
    """Host resources that the accelerators of a node share. They matter if state is offloaded."""
    node_id: ResourceId | MISSING = MISSING
    """Id of a node of the tenant. Its measurements are preferred to those of other nodes of its kind. An
    accelerator that is given by its figures has the measurements of this node."""
    driver_version: (
        Annotated[str, Field(max_length=27, pattern=r"^[0-9]{1,6}(\.[0-9]{1,6}){0,3}$")] | MISSING
    ) = MISSING
    """Driver version of the accelerators. Measurements under the same major version are preferred to
    others."""


class ParallelismInput(StrictModel):
    """Layout of a workload over devices. Degrees default to 1, `data` to the rest of the cluster."""

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
    """Devices that each expert of a served model is divided over, out of the tensor x expert devices that
    hold all experts. Defaults to `tensor`."""
    sequence_parallel: bool | MISSING = MISSING
    """True if tensor parallelism also divides the activations between layers. Defaults to the way of the
    framework, else to the fastest way that fits, else to false."""
    sharding: Sharding | MISSING = MISSING
    """Part of the training state that is sharded over the replicas. Defaults to the way of the framework,
    else to the fastest that fits, else to none."""
    sharding_group_size: Degree | MISSING = MISSING
    """Devices that together hold one copy of the state. Required for hybrid sharding."""
    pipeline_schedule: PipelineSchedule | MISSING = MISSING
    """Order in which the micro-batches pass the pipeline. Defaults to the way of the framework, else to the
    faster of one_f_one_b and interleaved that fits, else to one_f_one_b."""
    virtual_stages: Degree | MISSING = MISSING
    """Parts of the model on each pipeline device. Defaults to the fastest number for the interleaved
    schedule, else to 1. More than 1 without a schedule means the interleaved one."""
    overlap_expert_communication: bool | MISSING = MISSING
    """True if tokens travel to their experts and back while another micro-batch computes: a forward pass runs
    beside a backward pass. Defaults to the way of the framework, else to true where `expert` is above 1."""
    overlap_tensor_communication: bool | MISSING = MISSING
    """True if collectives of tensor parallelism are sent in pieces beside the matrix products that need them,
    false if products wait for them. True needs `tensor` above 1 and sequence parallelism, which it implies if
    `sequence_parallel` is left out. Defaults to the habit of the framework on blocks without experts, and to
    false on those with experts."""


class ModelledEfficiency(StrictModel):
    """Takes the achieved share of the limits from measured runs."""

    source: Literal["modelled"]
    time_factor: Factor | MISSING = MISSING
    """Factor of the time of a training step, for devices that turn out slower or faster."""


class AssumedEfficiency(StrictModel):
    """Takes the achieved share of the limits as given: T = O / (R_peak x utilization)."""

    source: Literal["assumed"]
    utilization: Share
    """Achieved share of the peak rate."""
    bandwidth_utilization: Share | MISSING = MISSING
    """Achieved share of the memory bandwidth. Defaults to `utilization`, with a warning if it matters."""


class CalibrationEfficiency(StrictModel):
    """Takes the achieved share of the limits from one calibration, else from the reference set."""

    source: Literal["calibration"]
    id: ResourceId
    """Id of a calibration that is in use."""


EfficiencyInput = TypeAliasType(
    "EfficiencyInput",
    Annotated[ModelledEfficiency | AssumedEfficiency | CalibrationEfficiency, Field(discriminator="source")],
)
