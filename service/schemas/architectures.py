"""The architecture language as an API shape: every model is derived from its class of planning."""

from functools import partial
from typing import Annotated, Any, get_args

from pydantic import MISSING, Field

from service.planning.models import architecture as planning
from service.planning.models.layers import SimpleLayer
from service.schemas.base import Positive, Size, Text
from service.schemas.derived import build_members, derive_model, list_of, unite_models, write_document

_input_names = list_of(Text, least=1, most=8)
_MEMBERS = {
    "hidden_size": Annotated[Size, Field(description="Width of the residual stream.")],
    "bias": Annotated[bool, Field(description="True if a learned vector is added.")],
    "activation_parameters": Annotated[int, Field(ge=0, le=1000)],
    "rotary_head_size": Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int64"})],
    "count": Annotated[Size, Field(description="Number of times that the layer stands in a row.")],
    "over": _input_names | MISSING,
    "reads": _input_names | MISSING,
    "joins": _input_names | MISSING,
    "position_count": Size | MISSING,
    "token_type_count": Size | MISSING,
}
_derive = partial(derive_model, types={int: Size, float: Positive, str: Text})

_simple_layers = [
    _derive(f"{layer.__name__}Layer", layer, members=_MEMBERS) for layer in get_args(SimpleLayer)
]
_simple_layer = unite_models("SimpleLayer", _simple_layers)
_block = _derive(
    "BlockLayer",
    planning.LayerBlock,
    members=_MEMBERS | {"layers": list_of(_simple_layer, least=1, most=100)},
)
_layer = unite_models("ModelLayer", [*_simple_layers, _block])
_input = _derive("ArchitectureInputShape", planning.ModelInputShape, members=_MEMBERS)
_embeddings = _derive("ArchitectureEmbeddings", planning.ModelEmbeddings, members=_MEMBERS)
_head = _derive("ArchitectureHead", planning.ModelHead, members=_MEMBERS)
_architecture = _derive(
    "_Architecture",
    planning.Architecture,
    members={
        "inputs": list_of(_input, least=1, most=16) | MISSING,
        "layers": list_of(_layer, least=1, most=2000),
        "embeddings": _embeddings | MISSING,
        "heads": list_of(_head, most=16) | MISSING,
        "tied": list_of(planning.HeadKind, most=3) | MISSING,
    },
)


class Architecture(_architecture):  # type: ignore[misc, valid-type]  # a base that mypy cannot see
    """A model as a list of layers with shapes, in the order in which data walks through it."""


def to_planning(shape: Architecture) -> planning.Architecture:
    """Returns planning's value of an architecture."""
    architecture: planning.Architecture = build_members(planning.Architecture, shape)
    return architecture


def to_document(architecture: planning.Architecture) -> dict[str, Any]:
    """Returns the JSON document of planning's value; members at their default are left out."""
    document: dict[str, Any] = write_document(architecture)
    return document
