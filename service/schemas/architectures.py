"""The architecture language as an API shape: one class for each layer kind of planning.

A test holds the members and defaults of both equal, so a shape can be turned into its planning class
and back by name.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import MISSING, Field
from typing_extensions import TypeAliasType

from service.planning.models import architecture as planning
from service.planning.models.layers import ActivationFunction, VectorPurpose
from service.schemas.base import Positive, Size, StrictModel, Text

HiddenSize = Annotated[Size, Field(description="Width of the residual stream.")]
Repeats = Annotated[Size, Field(description="How many times the layer stands in a row.")]
Bias = Annotated[bool, Field(description="Whether a learned vector is added.")]


class AttentionLayer(StrictModel):
    """Multi-head, grouped-query or multi-query attention, by the number of key-value heads."""

    kind: Literal["attention"]
    hidden_size: HiddenSize
    query_heads: Size
    """Heads."""
    key_value_heads: Size
    """As many as query heads (MHA), fewer (GQA) or 1 (MQA)."""
    head_size: Size
    """Width of a head."""
    value_head_size: Size | MISSING = MISSING
    """Width of a head's value; absent where it is that of the head."""
    output_size: Size | MISSING = MISSING
    """Width of the output; absent where it is that of the input."""
    causal: bool = True
    """Whether a token sees only the tokens before it."""
    window_tokens: Size | MISSING = MISSING
    """Tokens of the sliding window; absent without one."""
    cross_size: Size | MISSING = MISSING
    """Width of the other sequence that keys and values are read from; absent for self-attention."""
    key_value: Literal["own", "key_as_value", "shared"] = "own"
    """Where keys and values come from: own projections, keys as values too, or an earlier layer."""
    query_key_value_bias: bool = False
    """Whether a learned vector is added to queries, keys and values."""
    key_bias: bool = True
    """Whether keys are among them."""
    output_bias: bool = False
    """Whether a learned vector is added to the output."""
    query_key_norm: Literal["none", "head", "projection"] = "none"
    """Norm of queries and keys, over each head or over the whole projection."""
    query_key_norm_shift: bool = False
    """Whether that norm has a shift beside its scale."""
    gate: Literal["none", "head", "element"] = "none"
    """Projection that scales the output, by head or by element."""
    gate_bias: bool = False
    """Whether a learned vector is added to the gate."""
    output_norm: bool = False
    """Whether a norm stands in front of the output projection."""
    sinks: bool = False
    """Whether each head has a learned score that no token answers to."""
    dropout: bool = False
    """Whether attention weights and output pass a dropout in training."""
    score_bias: bool = False
    """Whether something learned is added to the scores, which are then stored in training."""
    count: Repeats = 1


class LatentAttentionLayer(StrictModel):
    """Multi-head latent attention (MLA)."""

    kind: Literal["latent_attention"]
    hidden_size: HiddenSize
    query_heads: Size
    """Heads."""
    query_rank: Size | MISSING = MISSING
    """Width of the compressed query; absent without compression."""
    key_value_rank: Size
    """Width of the compressed key and value."""
    rotary_head_size: Size
    """Width of a head's part that carries the position."""
    plain_head_size: Size
    """Width of a head's part that does not."""
    value_head_size: Size
    """Width of a head's value."""
    window_tokens: Size | MISSING = MISSING
    """Tokens of the sliding window; absent without one."""
    index_heads: Size | MISSING = MISSING
    """Heads of the scorer that picks tokens; absent where every token is read."""
    index_head_size: Size | MISSING = MISSING
    """Width of the scorer's heads, and of the one key that it keeps a token."""
    index_tokens: Size | MISSING = MISSING
    """Tokens that the scorer picks for each query."""
    gate: Literal["none", "head", "element"] = "none"
    """Projection that scales the output, by head or by element."""
    bias: Bias = False
    count: Repeats = 1


class LinearAttentionLayer(StrictModel):
    """Attention with a state of fixed size under a rule of forgetting."""

    kind: Literal["linear_attention"]
    hidden_size: HiddenSize
    key_heads: Size
    """Heads of keys and queries."""
    value_heads: Size
    """Heads of values."""
    key_head_size: Size
    """Width of a key."""
    value_head_size: Size
    """Width of a value."""
    convolution_width: Size
    """Tokens that the short convolution sees."""
    rule: Literal["gated_delta", "channel_delta", "fixed"] = "gated_delta"
    """How the state forgets: a decay for each head, for each channel, or a constant."""
    gate_rank: Size | MISSING = MISSING
    """Width inside the projections of forget and output gate; absent where they are full."""
    count: Repeats = 1


class StateSpaceLayer(StrictModel):
    """Selective state space: Mamba 1 (`time_step_rank`), Mamba 2 (`heads`), RG-LRU (`gate_blocks`)."""

    kind: Literal["state_space"]
    hidden_size: HiddenSize
    inner_size: Size
    """Width inside the layer."""
    state_size: Size
    """Width of the state of each channel."""
    convolution_width: Size
    """Tokens that the short convolution sees."""
    time_step_rank: Size | MISSING = MISSING
    """Width of the compressed time step; only Mamba 1 has it."""
    heads: Size | MISSING = MISSING
    """Heads; only Mamba 2 has them."""
    gate_blocks: Size | MISSING = MISSING
    """Diagonal blocks of the two gates; only RG-LRU has them."""
    groups: Size = 1
    """Groups of heads that share their state's input and output."""
    state_norms: bool = False
    """Whether Mamba 1 normalizes step, input and output of its state."""
    gated_norm: bool = True
    """Whether Mamba 2 normalizes what its gate has passed."""
    convolution_bias: bool = True
    """Whether a learned vector is added to the convolution."""
    projection_bias: bool = False
    """Whether a learned vector is added to the projections."""
    count: Repeats = 1


class FeedForwardLayer(StrictModel):
    """Two matrices with an activation between them; a gate adds a third."""

    kind: Literal["feed_forward"]
    hidden_size: HiddenSize
    inner_size: Size
    """Width between the matrices."""
    gated: bool = False
    """Whether a third matrix gates the second."""
    bias: Bias = False
    inner_norm: bool = False
    """Whether a norm stands in front of the last matrix."""
    activation_parameters: Annotated[int, Field(ge=0, le=1000)] = 0
    """Learned scalars of the activation function."""
    activation: ActivationFunction = "smooth"
    """One operator whose backward pass needs its input (smooth) or only its result (relu), or one that is
    written out in several."""
    dropout: bool = False
    """Whether the output passes a dropout in training."""
    inner_dropout: bool = False
    """Whether the activation's result passes one."""
    count: Repeats = 1


class MixtureOfExpertsLayer(StrictModel):
    """A router over feed-forwards, with an optional one that every token takes."""

    kind: Literal["mixture_of_experts"]
    hidden_size: HiddenSize
    expert_count: Size
    """Experts to choose from."""
    experts_per_token: Size
    """Experts that each token takes."""
    expert_inner_size: Size
    """Width between the matrices of an expert."""
    gated: bool = True
    """Whether an expert has a third matrix as a gate."""
    bias: Bias = False
    router_bias: bool = False
    """Whether a learned vector is added to the router."""
    router_scales: bool = False
    """Whether the router's input and its answers have learned scales."""
    latent_size: Size | MISSING = MISSING
    """Width that tokens are projected to for the routed experts; absent where they keep theirs."""
    shared_inner_size: Size | MISSING = MISSING
    """Inner width of the expert that every token takes; absent without one."""
    shared_bias: bool = False
    """Whether learned vectors are added in the shared expert."""
    shared_gate: bool = False
    """Whether the shared expert has a gate of its own."""
    count: Repeats = 1


class NormalizationLayer(StrictModel):
    """A norm with a learned scale (`rms`) or with scale and shift."""

    kind: Literal["normalization"]
    size: Size
    """Width."""
    norm: Literal["rms", "layer", "group", "batch"] = "rms"
    """Over what is normalized."""
    learned: bool = True
    """Whether it has parameters."""
    count: Repeats = 1


class ActivationLayer(StrictModel):
    """A smooth function of each element; one that keeps only its result, such as ReLU, is no layer."""

    kind: Literal["activation"]
    size: Size
    """Width."""
    count: Repeats = 1


class LinearLayer(StrictModel):
    """One matrix on every token."""

    kind: Literal["linear"]
    input_size: Size
    """Width of the input."""
    output_size: Size
    """Width of the output."""
    bias: Bias = False
    count: Repeats = 1


class ConvolutionLayer(StrictModel):
    """A convolution over frames, height and width."""

    kind: Literal["convolution"]
    input_channels: Size
    """Channels of the input."""
    output_channels: Size
    """Channels of the output."""
    kernel_height: Size
    """Rows that the kernel sees."""
    kernel_width: Size
    """Columns that the kernel sees."""
    kernel_frames: Size = 1
    """Frames that the kernel sees."""
    stride: Size = 1
    """Steps of the kernel over height and width."""
    frame_stride: Size = 1
    """Steps of the kernel over frames."""
    groups: Size = 1
    """Groups of channels that do not mix."""
    bias: Bias = False
    padded: bool = True
    """Whether the border is covered: n cells become n / stride, rounded up; patches are not padded."""
    shortcut: bool = False
    """Whether it runs beside the other layers of its block, on the block's input."""
    upsamples: bool = False
    """Whether the stride enlarges the grid (transposed convolution)."""
    count: Repeats = 1


class ResamplingLayer(StrictModel):
    """Pooling or merging (factor above 1) or up-sampling (below 1) of the spatial axes."""

    kind: Literal["resampling"]
    factor: Positive
    """Length of an axis before over after."""
    frame_factor: Positive = 1.0
    """Frames before over after."""
    drops_extra_tokens: bool = False
    """Whether class tokens are left behind."""
    channels: Size | MISSING = MISSING
    """Channels of a maximum pooling; absent for other resamplings."""
    count: Repeats = 1


class LearnedVectorsLayer(StrictModel):
    """Learned vectors that no matrix multiplication reads."""

    kind: Literal["learned_vectors"]
    purpose: VectorPurpose
    """What they are for; class tokens lengthen the sequence."""
    rows: Size = 1
    """Vectors."""
    size: Size
    """Width of a vector."""
    count: Repeats = 1


class EmbeddingTableLayer(StrictModel):
    """A look-up table of a recommender's sparse feature."""

    kind: Literal["embedding_table"]
    rows: Size
    """Rows of the table."""
    size: Size
    """Width of a row."""
    lookups_per_sample: Positive = 1.0
    """Mean number of rows that a sample reads."""
    count: Repeats = 1


class InteractionLayer(StrictModel):
    """Pairwise dot products of feature vectors."""

    kind: Literal["interaction"]
    features: Size
    """Feature vectors."""
    size: Size
    """Width of a vector."""
    count: Repeats = 1


class ModulationLayer(StrictModel):
    """Shifts, scales and gates computed from a condition vector (adaptive norm)."""

    kind: Literal["modulation"]
    condition_size: Size
    """Width of the condition vector."""
    hidden_size: HiddenSize
    vectors: Size = 6
    """Shifts, scales and gates together."""
    streams: Size = 1
    """Sequences that have vectors of their own among these."""
    count: Repeats = 1


SimpleLayer = TypeAliasType(
    "SimpleLayer",
    Annotated[
        AttentionLayer
        | LatentAttentionLayer
        | LinearAttentionLayer
        | StateSpaceLayer
        | FeedForwardLayer
        | MixtureOfExpertsLayer
        | NormalizationLayer
        | ActivationLayer
        | LinearLayer
        | ConvolutionLayer
        | ResamplingLayer
        | LearnedVectorsLayer
        | EmbeddingTableLayer
        | InteractionLayer
        | ModulationLayer,
        Field(discriminator="kind"),
    ],
)


InputNames = Annotated[list[Text], Field(min_length=1, max_length=8)]


class BlockLayer(StrictModel):
    """Layers that repeat together: the unit of recomputation and of a pipeline stage."""

    kind: Literal["block"]
    layers: Annotated[list[SimpleLayer], Field(min_length=1, max_length=100)]
    """Layers of one block, in order."""
    reused: bool = False
    """Whether it takes the weights of an earlier block of the same layers."""
    count: Repeats = 1
    over: InputNames | MISSING = MISSING
    """Inputs whose positions it runs over, one after the other; the first input when absent."""
    reads: InputNames | MISSING = MISSING
    """Inputs that its cross-attention reads."""
    joins: InputNames | MISSING = MISSING
    """Inputs whose keys and values its other attention sees beside its own."""
    per: Literal["position", "sample"] = "position"
    """Whether it runs for each position or once a sample."""
    unit: bool = True
    """Whether it counts as depth: a unit of recomputation and of a pipeline stage."""


ModelLayer = TypeAliasType(
    "ModelLayer",
    Annotated[
        AttentionLayer
        | LatentAttentionLayer
        | LinearAttentionLayer
        | StateSpaceLayer
        | FeedForwardLayer
        | MixtureOfExpertsLayer
        | NormalizationLayer
        | ActivationLayer
        | LinearLayer
        | ConvolutionLayer
        | ResamplingLayer
        | LearnedVectorsLayer
        | EmbeddingTableLayer
        | InteractionLayer
        | ModulationLayer
        | BlockLayer,
        Field(discriminator="kind"),
    ],
)


class ArchitectureInputShape(StrictModel):
    """What enters the model."""

    name: Text
    """What the model calls it."""
    kind: planning.InputKind
    """What it is."""
    channels: Size | MISSING = MISSING
    """Numbers of one cell of the grid."""
    length: Size | MISSING = MISSING
    """Tokens, queries or spectrogram frames of a sample that does not say; absent if any."""
    height: Size | MISSING = MISSING
    """Rows of a sample that does not say."""
    width: Size | MISSING = MISSING
    """Columns of a sample that does not say."""
    frames: Size | MISSING = MISSING
    """Frames of a sample that does not say."""
    downsampling: Size = 1
    """Pixels of the sample for each cell of the grid along an axis."""
    frame_downsampling: Size = 1
    """Frames of the sample for each latent frame after the first."""


class ArchitectureEmbeddings(StrictModel):
    """Look-up tables in front of the first layer, and the norm over their sum."""

    size: Size
    """Width of a row."""
    vocabulary_size: Size
    """Tokens of the vocabulary."""
    position_count: Size | MISSING = MISSING
    """Learned positions; absent without them."""
    token_type_count: Size | MISSING = MISSING
    """Learned token types; absent without them."""
    norm: Literal["none", "rms", "layer"] = "none"
    """Norm over the sum."""
    dropout: bool = False
    """Whether the sum passes a dropout in training."""


HeadKind = Literal["language_model", "classifier", "pooler"]


class ArchitectureHead(StrictModel):
    """What turns the last hidden state into an answer."""

    kind: HeadKind
    """What it answers with."""
    input_size: Size
    """Width of the hidden state."""
    output_size: Size
    """Width of the answer."""
    bias: Bias = False
    second_bias: bool = False
    """The copy of its bias that an untied BERT head keeps."""
    per: Literal["token", "sequence"] = "token"
    """Whether each token or each sequence is answered for."""


class Architecture(StrictModel):
    """A model as a list of layers with shapes, in the order in which data walks through it."""

    inputs: Annotated[list[ArchitectureInputShape], Field(min_length=1, max_length=16)] | MISSING = MISSING
    """What enters the model; tokens when absent."""
    layers: Annotated[list[ModelLayer], Field(min_length=1, max_length=2000)]
    """Layers with shapes, in order."""
    embeddings: ArchitectureEmbeddings | MISSING = MISSING
    """Look-up tables in front of the first layer."""
    heads: Annotated[list[ArchitectureHead], Field(max_length=16)] | MISSING = MISSING
    """What turns the last hidden state into answers."""
    tied: Annotated[list[HeadKind], Field(max_length=3)] | MISSING = MISSING
    """Heads whose weight is the token table itself."""


_PLANNED: Mapping[str, type[Any]] = {planned.kind: planned for planned in planning.LAYER_KINDS}


def _list_members(shape: StrictModel) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in shape
        if value is not MISSING and name not in ("kind", "layers")
    }


def _to_layer(shape: ModelLayer | SimpleLayer) -> planning.ModelLayer:
    layer: planning.ModelLayer
    if isinstance(shape, BlockLayer):
        layers = tuple(_to_layer(inner) for inner in shape.layers)
        layer = planning.LayerBlock(layers=layers, **_list_members(shape))  # type: ignore[arg-type]
    else:
        layer = _PLANNED[shape.kind](**_list_members(shape))
    return layer


def to_planning(shape: Architecture) -> planning.Architecture:
    """The planning value of an architecture."""
    given: dict[str, Any] = {}
    if shape.inputs is not MISSING:
        given["inputs"] = tuple(
            planning.ModelInputShape(kind=i.kind, **_list_members(i)) for i in shape.inputs
        )
    if shape.embeddings is not MISSING:
        given["embeddings"] = planning.ModelEmbeddings(**_list_members(shape.embeddings))
    if shape.heads is not MISSING:
        given["heads"] = tuple(planning.ModelHead(kind=h.kind, **_list_members(h)) for h in shape.heads)
    if shape.tied is not MISSING:
        given["tied"] = tuple(shape.tied)
    return planning.Architecture(layers=tuple(_to_layer(layer) for layer in shape.layers), **given)


def _to_document(value: Any) -> dict[str, Any]:  # noqa: ANN401
    names = value.__dataclass_fields__
    document = {"kind": value.kind} if hasattr(value, "kind") else {}
    for name, field in names.items():
        member = getattr(value, name)
        if name != "layers" and member not in (None, field.default):
            document[name] = list(member) if isinstance(member, tuple) else member
    if "layers" in names:
        document["layers"] = [_to_document(layer) for layer in value.layers]
    return document


def to_document(architecture: planning.Architecture) -> dict[str, Any]:
    """The JSON document of a planning value; members at their default are left out."""
    document: dict[str, Any] = {"layers": [_to_document(layer) for layer in architecture.layers]}
    if architecture.inputs != planning.Architecture.__dataclass_fields__["inputs"].default:
        document["inputs"] = [_to_document(item) for item in architecture.inputs]
    if architecture.embeddings is not None:
        document["embeddings"] = _to_document(architecture.embeddings)
    if architecture.heads:
        document["heads"] = [_to_document(head) for head in architecture.heads]
    if architecture.tied:
        document["tied"] = list(architecture.tied)
    return document
