"""Requests and answers of accelerators."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.catalog.rows import EXAMPLE_SOURCES, DateText, RowDocument, RowInput, Versioned
from service.catalog.shapes import LARGEST_BOUND, ListQuery, NumberBound, TextFilter
from service.schemas.base import Degree, Positive, PositiveInteger, ResourceId, StrictModel, Text

PeakFormat = TypeAliasType(
    "PeakFormat", Literal["fp64", "fp64_tensor", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
)
PeakRates = TypeAliasType("PeakRates", Annotated[dict[PeakFormat, Positive], Field(max_length=9)])
MemoryLabelReading = TypeAliasType("MemoryLabelReading", Literal["binary", "decimal", "unknown"])


class ReferenceServer(StrictModel):
    """The vendor's server for this accelerator."""

    name: Text
    accelerator_count: Degree
    """Number of accelerators in the server."""
    power_limit_watts: Positive
    """Highest power that the whole server draws."""


class ReferenceSystem(StrictModel):
    """A system that the accelerator comes in. Links and interfaces default to those of the row."""

    name: Text
    """Name, such as DGX H100 or trn2.48xlarge."""
    accelerators_per_node: Degree
    """Accelerators of a node."""
    intra_node_link_id: ResourceId | MISSING = MISSING
    """Link between the accelerators of a node, slice or rack."""
    inter_node_link_id: ResourceId | MISSING = MISSING
    """Link between nodes, slices or racks."""
    network_interfaces_per_device: Positive | MISSING = MISSING
    """Interfaces of the link between nodes for each accelerator."""


class EmbodiedEmissionsFigure(StrictModel):
    """Embodied emissions by one assessment, with the range of others."""

    value: Positive
    """Emissions of one accelerator from its materials to the gate of the factory, in kg CO2-equivalent."""
    low: Positive
    """Lowest value of an assessment, in kg CO2-equivalent."""
    high: Positive
    """Highest value of an assessment, in kg CO2-equivalent."""


class AcceleratorRequest(RowInput):
    """One accelerator as sold. Rates are dense, for the whole part, and absent if unknown."""

    vendor: Text
    """Manufacturer."""
    generation: Text | MISSING = MISSING
    """Architecture in lower case, such as hopper."""
    form_factor: Text | MISSING = MISSING
    """Form factor, such as SXM5 or PCIe."""
    launched_on: DateText | MISSING = MISSING
    """Date of the announcement or the first sale."""
    memory_label_gb: Positive | MISSING = MISSING
    """Memory size on the label, in GB."""
    memory_label_reading: MemoryLabelReading | MISSING = MISSING
    """Unit of the label: `binary` counts 2^30 bytes, `decimal` counts 10^9 bytes."""
    memory_kind: Text | MISSING = MISSING
    """Kind of its memory, such as HBM3e. Rates are refused where it is SRAM, on the chip only."""
    memory_reported_bytes: PositiveInteger | MISSING = MISSING
    """Memory that the driver reports to a process."""
    memory_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Peak bandwidth of its own memory."""
    peak_flops_per_second: PeakRates | MISSING = MISSING
    """Dense rate by number format; tensor rates accumulate in FP32."""
    power_limit_watts: Positive | MISSING = MISSING
    """Highest power that it draws."""
    intra_node_link_id: ResourceId | MISSING = MISSING
    """Link to the other accelerators of its node."""
    inter_node_link_id: ResourceId | MISSING = MISSING
    """Link between nodes of the vendor's reference server."""
    network_interfaces_per_device: Positive | MISSING = MISSING
    """Interfaces of that link for each accelerator. Below 1 if accelerators share one."""
    pcie_generation: Annotated[int, Field(ge=1, le=20, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """PCI Express generation of its link to the host."""
    device_count: Annotated[int, Field(ge=1, le=64, json_schema_extra={"format": "int64"})] | MISSING = (
        MISSING
    )
    """Devices that software sees for one part, if more than one."""
    systems: Annotated[list[ReferenceSystem], Field(min_length=1, max_length=16)] | MISSING = MISSING
    """Systems that the accelerator comes in. A question that names none gets the first."""
    server: ReferenceServer | MISSING = MISSING
    """The vendor's server for this accelerator."""
    embodied_kg_co2e: EmbodiedEmissionsFigure | MISSING = MISSING
    """Emissions of making one accelerator."""


class Accelerator(AcceleratorRequest, Versioned):
    """An accelerator of the catalog."""


class AcceleratorQuery(ListQuery):
    """Filters of accelerators."""

    vendor: TextFilter = []
    """Vendors to list."""
    generation: TextFilter = []
    """Generations to list."""
    min_memory_reported_bytes: NumberBound = 0.0
    """Smallest memory that the driver reports, in bytes."""
    min_memory_bandwidth_bytes_per_second: NumberBound = 0.0
    """Smallest memory bandwidth."""
    max_power_limit_watts: NumberBound = LARGEST_BOUND
    """Highest power limit."""


EXAMPLE: RowDocument = {
    "id": "example-96gb",
    "name": "Example 96GB",
    "vendor": "example",
    "memory_label_gb": 96.0,
    "memory_bandwidth_bytes_per_second": 4e12,
    "peak_flops_per_second": {"bf16": 5e14},
    "power_limit_watts": 600.0,
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {"power_limit_watts": 550.0}
