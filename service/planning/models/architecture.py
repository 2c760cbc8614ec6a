"""Architectures as data: a list of layers with shapes, in the order in which data walks through them.

The kinds of layers are in ``layers``; a model is new data, not new code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from service.planning.errors import PlanningError
from service.planning.models.layers import (
    Attention,
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
    """Layers that repeat together: the unit of recomputation and of a pipeline stage.

    A block that is ``reused`` takes the weights of an earlier block of the same layers. ``over`` names the
    inputs whose positions it runs over, one after the other (empty: the first input); ``reads`` those that
    its cross-attention reads; ``joins`` those whose keys and values its other attention sees beside its own
    (joint attention of two streams). A block ``per`` sample runs once a sample, such as a time embedding.
    What is no ``unit`` (a stem, a projector, a transform) counts in no depth.
    """

    kind: ClassVar[Literal["block"]] = "block"
    layers: tuple[SimpleLayer, ...]
    reused: bool = False
    count: int = 1
    over: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    per: Literal["position", "sample"] = "position"
    unit: bool = True

    def list_tensors(self) -> Iterator[tuple[LayerTensor, int]]:
        """The tensors of one repetition, each with how often it occurs there."""
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
    vocabulary_size: int
    position_count: int = 0
    token_type_count: int = 0
    norm: Literal["none", "rms", "layer"] = "none"
    dropout: bool = False

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
    """What turns the last hidden state into an answer.

    ``language_model`` gives logits over a vocabulary for every token, ``classifier`` gives scores
    for every token (``per`` token) or once (``per`` sequence), ``pooler`` is a square matrix on one
    token of the sequence. ``second_bias`` is the copy of its bias that an untied BERT head keeps.
    """

    kind: HeadKind
    input_size: int
    output_size: int
    bias: bool = False
    second_bias: bool = False
    per: Literal["token", "sequence"] = "token"

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
    """What enters the model: a sequence of tokens, a grid of pixels or latents, or features.

    ``tokens`` are those of the decoder or of the only encoder, ``source_tokens`` those of an encoder
    that others read, ``queries`` are learned. ``length``, ``height``, ``width`` and ``frames`` are what a
    sample has unless it says otherwise. ``downsampling`` is pixels of the sample per cell of the grid,
    ``frame_downsampling`` frames per latent frame after the first, as causal video autoencoders count.
    """

    name: str
    kind: InputKind
    channels: int | None = None
    length: int | None = None
    height: int | None = None
    width: int | None = None
    frames: int | None = None
    downsampling: int = 1
    frame_downsampling: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model, in the order in which data walks through it.

    ``tied`` names the heads whose weight is the token table itself.
    """

    layers: tuple[ModelLayer, ...]
    inputs: tuple[ModelInputShape, ...] = (ModelInputShape(name="tokens", kind="tokens"),)
    embeddings: ModelEmbeddings | None = None
    heads: tuple[ModelHead, ...] = ()
    tied: tuple[HeadKind, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a tie between tensors that cannot be one."""
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
