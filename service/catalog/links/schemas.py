"""Shapes of links."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType, TypedDict

from service.catalog.rows import RowInput, Versioned
from service.catalog.shapes import Bound, ListQuery
from service.kit.http.pages import NextPageToken
from service.schemas.base import Degree, Positive
from service.schemas.patches import patch_of

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
        "c2c",
    ],
)
LinkScope = TypeAliasType("LinkScope", Literal["intra_node", "inter_node"])


class LinkInput(RowInput):
    """A link between accelerators of a node, or between nodes."""

    kind: LinkKind
    """Technology."""
    scope: LinkScope
    """What it connects."""
    bandwidth_bytes_per_second: Positive
    """One direction, for each device."""
    bidirectional_bandwidth_bytes_per_second: Positive | MISSING = MISSING
    """Both directions together, as vendors print it."""
    latency_seconds: Positive | MISSING = MISSING
    """One way."""
    joined_count: Degree | MISSING = MISSING
    """Accelerators that it joins, where that is not those of a node: cards of a bridge, GPUs of a rack."""
    in_network_reduction: bool | MISSING = MISSING
    """Whether its switches reduce what passes through them."""


class Link(LinkInput, Versioned):
    """A link of the catalog."""


if TYPE_CHECKING:
    LinkPatch = LinkInput
else:
    LinkPatch = patch_of(LinkInput, "LinkPatch")


class LinkPage(TypedDict):
    """A page of links."""

    items: list[Link]
    next_page_token: NextPageToken


class LinkQuery(ListQuery):
    """Filters of links."""

    kind: Annotated[list[LinkKind], Field(max_length=50)] = []
    """Kinds to list."""
    scope: Annotated[list[LinkScope], Field(max_length=50)] = []
    """Scopes to list."""
    min_bandwidth_bytes_per_second: Bound = 0.0
    """Least bandwidth in one direction."""
