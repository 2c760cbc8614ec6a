"""Architectures as data: a list of layers with shapes, in the order in which data walks through them.

The kinds of layers are in ``layers``; a model is new data, not new code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from service.planning.errors import PlanningError
from service.planning.models.layers import (
    Attention,
    CompressedAttention,
    FeedForward,
    LatentAttention,
    LayerTensor,
    LearnedVectors,
    Linear,
    LinearAttention,
    MixtureOfExperts,
    Normalization,
    SimpleLayer,
    StateSpace,
    TensorSplit,
    build_vectors,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerBlock:
    """Layers that repeat together: the unit of recomputation and of a pipeline stage."""

    kind: ClassVar[Literal["block"]] = "block"
    layers: tuple[SimpleLayer, ...]
    """Layers of one block, in order."""
    reused: bool = False
    """True if it takes the weights of an earlier block of the same layers."""
    count: int = 1
    over: tuple[str, ...] = ()
    """Inputs whose positions it runs over, one after the other. Defaults to the first input."""
    reads: tuple[str, ...] = ()
    """Inputs that its cross-attention reads."""
    joins: tuple[str, ...] = ()
    """Inputs whose keys and values its other attention sees beside its own (joint attention of two
    streams)."""
    per: Literal["position", "sample"] = "position"
    """Unit that it runs for: each position, or each sample once, such as a time embedding."""
    unit: bool = True
    """True if it counts as depth: a unit of recomputation and of a pipeline stage. A stem, a projector or a
    transform does not."""

    def list_tensors(self) -> Iterator[tuple[LayerTensor, int]]:
        """The tensors of one repetition, each with the number of times that it occurs there."""
        for layer in self.layers:
            for tensor in layer.list_tensors():
                yield tensor._replace(stored=not self.reused), layer.count


ModelLayer: TypeAlias = SimpleLayer | LayerBlock

LAYER_KINDS: Final[tuple[type[ModelLayer], ...]] = (*get_args(SimpleLayer), LayerBlock)
"""The closed list of layer kinds."""

MODELLED_KINDS: Final = frozenset(
    {
        Attention.kind,
        LatentAttention.kind,
        CompressedAttention.kind,
        LinearAttention.kind,
        StateSpace.kind,
        FeedForward.kind,
        MixtureOfExperts.kind,
        Normalization.kind,
        Linear.kind,
        LearnedVectors.kind,
        LayerBlock.kind,
    }
)
"""Kinds whose work and cache are modelled, beside their tensors."""

MODELLED_INPUTS: Final = frozenset({"tokens"})
"""Inputs whose number of positions the per-token coefficients stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEmbeddings:
    """Look-up tables in front of the first layer, and the norm over their sum."""

    size: int
    """Width of a row."""
    vocabulary_size: int
    """Number of tokens of the vocabulary."""
    position_count: int = 0
    """Number of learned positions, if there are any."""
    token_type_count: int = 0
    """Number of learned token types, if there are any."""
    norm: Literal["none", "rms", "layer"] = "none"
    """Norm over the sum of the tables."""
    dropout: bool = False
    """True if the sum passes a dropout in training."""

    def list_tensors(self) -> Iterator[LayerTensor]:
        """Token, position and token-type tables, and the norm."""
        yield LayerTensor("tokens", (self.vocabulary_size, self.size), TensorSplit.VOCABULARY)
        for name, rows in (("positions", self.position_count), ("token_types", self.token_type_count)):
            if rows:
                yield LayerTensor(name, (rows, self.size), TensorSplit.NONE)
        if self.norm != "none":
            yield from Normalization(size=self.size, norm=self.norm).list_tensors()


HeadKind: TypeAlias = Literal["language_model", "classifier", "pooler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHead:
    """A layer that turns the last hidden state into an answer."""

    kind: HeadKind
    """Kind of answer: logits over a vocabulary (``language_model``), scores (``classifier``), or the product
    of a square matrix and one token of the sequence (``pooler``)."""
    input_size: int
    """Width of the hidden state."""
    output_size: int
    """Width of the answer."""
    bias: bool = False
    """True if a learned vector is added."""
    second_bias: bool = False
    """True if it has the copy of its bias that an untied BERT head keeps."""
    per: Literal["token", "sequence"] = "token"
    """Unit that is answered for: each token or each sequence."""

    def list_tensors(self) -> Iterator[LayerTensor]:
        """The matrix and its bias; a head used once a sequence does no work per token."""
        split = TensorSplit.VOCABULARY if self.kind == "language_model" else TensorSplit.NONE
        share = 1.0 if self.per == "token" else 0.0
        yield LayerTensor("weight", (self.output_size, self.input_size), split, multiplied=share)
        yield from build_vectors(self.bias, "bias", self.output_size, split)
        yield from build_vectors(self.second_bias, "second_bias", self.output_size, split)


InputKind: TypeAlias = Literal[
    "tokens",
    "source_tokens",
    "queries",
    "image",
    "video",
    "audio",
    "latent",
    "dense_features",
    "sparse_features",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInputShape:
    """An input of the model: a sequence of tokens, a grid of pixels or latents, or features."""

    name: str
    """Name of the input within the model."""
    kind: InputKind
    """Kind of input. ``tokens`` are those of the decoder or of the only encoder, ``source_tokens`` those of
    an encoder that others read, ``queries`` are learned."""
    channels: int | None = None
    """Numbers in one cell of the grid."""
    length: int | None = None
    """Tokens, queries or spectrogram frames of a sample that does not state them; absent if there may be any
    number."""
    height: int | None = None
    """Rows of a sample that does not state them."""
    width: int | None = None
    """Columns of a sample that does not state them."""
    frames: int | None = None
    """Frames of a sample that does not state them."""
    downsampling: int = 1
    """Pixels of the sample for each cell of the grid along an axis."""
    frame_downsampling: int = 1
    """Frames of the sample for each latent frame after the first, as causal video autoencoders count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model as a list of layers with shapes, in the order in which data walks through it."""

    inputs: tuple[ModelInputShape, ...] = (ModelInputShape(name="tokens", kind="tokens"),)
    """Inputs of the model. Defaults to tokens."""
    layers: tuple[ModelLayer, ...]
    """Layers with shapes, in order."""
    embeddings: ModelEmbeddings | None = None
    """Look-up tables in front of the first layer."""
    heads: tuple[ModelHead, ...] = ()
    """Layers that turn the last hidden state into answers."""
    tied: tuple[HeadKind, ...] = ()
    """Heads whose weight is the token table itself."""

    def __post_init__(self) -> None:
        """Refuses ties between tensors of different shapes, and unknown or double names of inputs."""
        for kind in self.tied:
            table = self.embeddings
            tied = [head for head in self.heads if head.kind == kind]
            if table is None or not tied:
                raise PlanningError("TIED_TENSOR", "/tied", "a tie needs a head and an embedding table")
            if any((h.output_size, h.input_size) != (table.vocabulary_size, table.size) for h in tied):
                raise PlanningError("TIED_TENSOR", "/tied", "tied tensors differ in shape")
        self._check_names()

    def _check_names(self) -> None:
        names = [item.name for item in self.inputs]
        if len(set(names)) != len(names):
            raise PlanningError("INPUT_NAME", "/inputs", "two inputs have the same name")
        for index, layer in enumerate(self.layers):
            if not isinstance(layer, LayerBlock):
                continue
            for member in ("over", "reads", "joins"):
                for place, name in enumerate(getattr(layer, member)):
                    if name not in names:
                        pointer = f"/layers/{index}/{member}/{place}"
                        raise PlanningError("INPUT_NAME", pointer, "no input has this name")

    def list_blocks(self) -> Iterator[LayerBlock]:
        """The layers as blocks; a layer outside a block is a block of its own."""
        for layer in self.layers:
            if isinstance(layer, LayerBlock):
                yield layer
            else:
                yield LayerBlock(layers=(replace(layer, count=1),), count=layer.count)
