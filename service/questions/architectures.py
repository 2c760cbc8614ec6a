"""The architecture language as an API shape: one class for each layer kind of planning.

A test holds the members and defaults of both equal, so a shape can be turned into its planning class
and back by name.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import MISSING, Field

from service.planning import architecture as planning
from service.questions.base import Input, Positive, Size, Text


class AttentionLayer(Input):
    """Multi-head, grouped-query or multi-query attention, by the number of key-value heads."""

    kind: Literal["attention"]
    hidden_size: Size
    """Width of the residual stream."""
    query_heads: Size
    key_value_heads: Size
    """As many as query heads (MHA), fewer (GQA) or 1 (MQA)."""
    head_size: Size
    causal: bool = True
    """Whether a token sees only the tokens before it."""
    window_tokens: Size | MISSING = MISSING
    """Tokens of the sliding window; absent without one."""
    cross_size: Size | MISSING = MISSING
    """Width of the other sequence that keys and values are read from; absent for self-attention."""
    query_key_value_bias: bool = False
    output_bias: bool = False
    query_key_norm: Literal["none", "head", "projection"] = "none"
    """Norm of queries and keys, over each head or over the whole projection."""
    dropout: bool = False
    """Whether attention weights and output pass a dropout in training."""
    count: Size = 1


class LatentAttentionLayer(Input):
    """Multi-head latent attention (MLA)."""

    kind: Literal["latent_attention"]
    hidden_size: Size
    query_heads: Size
    query_rank: Size | MISSING = MISSING
    """Width of the compressed query; absent without compression."""
    key_value_rank: Size
    """Width of the compressed key and value."""
    rotary_head_size: Size
    plain_head_size: Size
    value_head_size: Size
    bias: bool = False
    count: Size = 1


class LinearAttentionLayer(Input):
    """Attention with a state of fixed size under the gated delta rule."""

    kind: Literal["linear_attention"]
    hidden_size: Size
    key_heads: Size
    value_heads: Size
    key_head_size: Size
    value_head_size: Size
    convolution_width: Size
    count: Size = 1


class StateSpaceLayer(Input):
    """Selective state space: Mamba 1 with `time_step_rank`, Mamba 2 with `heads`."""

    kind: Literal["state_space"]
    hidden_size: Size
    inner_size: Size
    state_size: Size
    convolution_width: Size
    time_step_rank: Size | MISSING = MISSING
    heads: Size | MISSING = MISSING
    groups: Size = 1
    convolution_bias: bool = True
    projection_bias: bool = False
    count: Size = 1


class FeedForwardLayer(Input):
    """Two matrices with an activation between them; a gate adds a third."""

    kind: Literal["feed_forward"]
    hidden_size: Size
    inner_size: Size
    gated: bool = False
    bias: bool = False
    dropout: bool = False
    count: Size = 1


class MixtureOfExpertsLayer(Input):
    """A router over feed-forwards, with an optional one that every token takes."""

    kind: Literal["mixture_of_experts"]
    hidden_size: Size
    expert_count: Size
    experts_per_token: Size
    expert_inner_size: Size
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_inner_size: Size | MISSING = MISSING
    """Inner width of the expert that every token takes; absent without one."""
    shared_gate: bool = False
    count: Size = 1


class NormalizationLayer(Input):
    """A norm with a learned scale (`rms`) or with scale and shift."""

    kind: Literal["normalization"]
    size: Size
    norm: Literal["rms", "layer", "group", "batch"] = "rms"
    learned: bool = True
    count: Size = 1


class LinearLayer(Input):
    """One matrix on every token."""

    kind: Literal["linear"]
    input_size: Size
    output_size: Size
    bias: bool = False
    count: Size = 1


class ConvolutionLayer(Input):
    """A convolution over frames, height and width."""

    kind: Literal["convolution"]
    input_channels: Size
    output_channels: Size
    kernel_height: Size
    kernel_width: Size
    kernel_frames: Size = 1
    stride: Size = 1
    groups: Size = 1
    bias: bool = False
    count: Size = 1


class ResamplingLayer(Input):
    """Pooling (factor above 1) or up-sampling (below 1) of the spatial axes."""

    kind: Literal["resampling"]
    factor: Positive
    count: Size = 1


class EmbeddingTableLayer(Input):
    """A look-up table of a recommender's sparse feature."""

    kind: Literal["embedding_table"]
    rows: Size
    size: Size
    lookups_per_sample: Positive = 1.0
    count: Size = 1


class InteractionLayer(Input):
    """Pairwise dot products of feature vectors."""

    kind: Literal["interaction"]
    features: Size
    size: Size
    count: Size = 1


class ModulationLayer(Input):
    """Shifts, scales and gates computed from a condition vector (adaptive norm)."""

    kind: Literal["modulation"]
    condition_size: Size
    hidden_size: Size
    vectors: Size = 6
    count: Size = 1


SimpleLayer = Annotated[
    AttentionLayer
    | LatentAttentionLayer
    | LinearAttentionLayer
    | StateSpaceLayer
    | FeedForwardLayer
    | MixtureOfExpertsLayer
    | NormalizationLayer
    | LinearLayer
    | ConvolutionLayer
    | ResamplingLayer
    | EmbeddingTableLayer
    | InteractionLayer
    | ModulationLayer,
    Field(discriminator="kind"),
]


class BlockLayer(Input):
    """Layers that repeat together: the unit of recomputation and of a pipeline stage."""

    kind: Literal["block"]
    layers: Annotated[list[SimpleLayer], Field(min_length=1, max_length=100)]
    count: Size = 1


Layer = Annotated[
    AttentionLayer
    | LatentAttentionLayer
    | LinearAttentionLayer
    | StateSpaceLayer
    | FeedForwardLayer
    | MixtureOfExpertsLayer
    | NormalizationLayer
    | LinearLayer
    | ConvolutionLayer
    | ResamplingLayer
    | EmbeddingTableLayer
    | InteractionLayer
    | ModulationLayer
    | BlockLayer,
    Field(discriminator="kind"),
]


class ArchitectureInput(Input):
    """What enters the model."""

    name: Text
    kind: Literal["tokens", "image", "video", "latent", "dense_features", "sparse_features"]


class ArchitectureEmbeddings(Input):
    """Look-up tables in front of the first layer, and the norm over their sum."""

    size: Size
    vocabulary_size: Size
    position_count: Size | MISSING = MISSING
    """Learned positions; absent without them."""
    token_type_count: Size | MISSING = MISSING
    norm: Literal["none", "rms", "layer"] = "none"
    dropout: bool = False


HeadKind = Literal["language_model", "classifier", "pooler"]


class ArchitectureHead(Input):
    """What turns the last hidden state into an answer."""

    kind: HeadKind
    input_size: Size
    output_size: Size
    bias: bool = False
    second_bias: bool = False
    """The copy of its bias that an untied BERT head keeps."""
    per: Literal["token", "sequence"] = "token"


class Architecture(Input):
    """A model as a list of layers with shapes, in the order in which data walks through it."""

    inputs: Annotated[list[ArchitectureInput], Field(min_length=1, max_length=16)] | MISSING = MISSING
    """What enters the model; tokens when absent."""
    layers: Annotated[list[Layer], Field(min_length=1, max_length=2000)]
    embeddings: ArchitectureEmbeddings | MISSING = MISSING
    heads: Annotated[list[ArchitectureHead], Field(max_length=16)] | MISSING = MISSING
    tied: Annotated[list[HeadKind], Field(max_length=3)] | MISSING = MISSING
    """Heads whose weight is the token table itself."""


_PLANNED: Mapping[str, type[Any]] = {planned.kind: planned for planned in planning.LAYER_KINDS}


def _members(shape: Input) -> dict[str, Any]:
    return {name: value for name, value in shape if value is not MISSING and name not in ("kind", "layers")}


def _planned_layer(shape: Layer | SimpleLayer) -> planning.Layer:
    layer: planning.Layer
    if isinstance(shape, BlockLayer):
        layers = tuple(_planned_layer(inner) for inner in shape.layers)
        layer = planning.Block(layers=layers, count=shape.count)  # type: ignore[arg-type]
    else:
        layer = _PLANNED[shape.kind](**_members(shape))
    return layer


def to_planning(shape: Architecture) -> planning.Architecture:
    """The planning value of an architecture."""
    given: dict[str, Any] = {}
    if shape.inputs is not MISSING:
        given["inputs"] = tuple(planning.Input(name=i.name, kind=i.kind) for i in shape.inputs)
    if shape.embeddings is not MISSING:
        given["embeddings"] = planning.Embeddings(**_members(shape.embeddings))
    if shape.heads is not MISSING:
        given["heads"] = tuple(planning.Head(kind=h.kind, **_members(h)) for h in shape.heads)
    if shape.tied is not MISSING:
        given["tied"] = tuple(shape.tied)
    return planning.Architecture(layers=tuple(_planned_layer(layer) for layer in shape.layers), **given)


def _document(value: Any) -> dict[str, Any]:  # noqa: ANN401
    names = value.__dataclass_fields__
    document = {"kind": value.kind} if hasattr(value, "kind") else {}
    document |= {
        name: getattr(value, name)
        for name, field in names.items()
        if getattr(value, name) not in (None, field.default) and name != "layers"
    }
    if "layers" in names:
        document["layers"] = [_document(layer) for layer in value.layers]
    return document


def from_planning(architecture: planning.Architecture) -> dict[str, Any]:
    """The JSON document of a planning value; members at their default are left out."""
    document: dict[str, Any] = {"layers": [_document(layer) for layer in architecture.layers]}
    if architecture.inputs != planning.Architecture.__dataclass_fields__["inputs"].default:
        document["inputs"] = [_document(item) for item in architecture.inputs]
    if architecture.embeddings is not None:
        document["embeddings"] = _document(architecture.embeddings)
    if architecture.heads:
        document["heads"] = [_document(head) for head in architecture.heads]
    if architecture.tied:
        document["tied"] = list(architecture.tied)
    return document
