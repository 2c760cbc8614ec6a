"""Requests and answers of links."""

from typing import Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.catalog.rows import EXAMPLE_SOURCES, RowDocument, RowInput, Versioned
from service.catalog.shapes import ListQuery, NumberBound
from service.schemas.base import Degree, Positive, StrictModel

LinkKind = TypeAliasType(
    "LinkKind",
    Literal[
        "nvlink",
        "pcie",
        "infiniband",
        "roce",
        "efa",
        "ethernet",
        "infinity_fabric",
        "ici",
        "neuronlink",
        "hccs",
        "c2c",
    ],
)
LinkScope = TypeAliasType("LinkScope", Literal["intra_node", "inter_node"])


class LinkTorus(StrictModel):
    """Wires along the axes of a torus, instead of switches."""

    axes: Annotated[int, Field(ge=1, le=6, json_schema_extra={"format": "int64"})]
    """Dimensions of the torus."""
    ring_count: Degree
    """Accelerators of an axis from which on it closes into a ring; a shorter one is a line."""


class LinkRequest(RowInput):
    """A link between accelerators of a node, or between nodes."""

    kind: LinkKind
    """Technology of the link."""
    scope: LinkScope
    """Scope of the link: the devices of a node, or nodes."""
    bandwidth_bytes_per_second: Positive
    """Bandwidth of one device in one direction."""
    bidirectional_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Bandwidth of both directions together, as vendors state it."""
    latency_seconds: Positive | MISSING = MISSING
    """Latency in one direction."""
    joined_count: Degree | MISSING = MISSING
    """Accelerators that the link joins, if they are not those of a node: cards of a bridge, GPUs of a
    rack."""
    torus: LinkTorus | MISSING = MISSING
    """Torus that the link forms; absent where switches or a mesh join the accelerators."""
    in_network_reduction: bool | MISSING = MISSING
    """True if the switches of the link reduce the data that pass through them."""


class Link(LinkRequest, Versioned):
    """A link of the catalog."""


class LinkQuery(ListQuery):
    """Filters of links."""

    kind: Annotated[list[LinkKind], Field(max_length=50)] = []
    """Kinds to list."""
    scope: Annotated[list[LinkScope], Field(max_length=50)] = []
    """Scopes to list."""
    min_bandwidth_bytes_per_second: NumberBound = 0.0
    """Smallest bandwidth in one direction."""


EXAMPLE: RowDocument = {
    "id": "example-fabric",
    "name": "Example fabric",
    "kind": "ethernet",
    "scope": "inter_node",
    "bandwidth_bytes_per_second": 5e10,
    "sources": EXAMPLE_SOURCES,
}
EXAMPLE_PATCH: RowDocument = {"latency_seconds": 5e-6}
