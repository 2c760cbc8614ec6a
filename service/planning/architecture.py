"""Architectures as data: a list of layers with shapes, in the order in which data walks through them.

The kinds of layers are in ``layers``; a model is new data, not new code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from service.planning.errors import PlanningError
from service.planning.layers import (
    Attention,
    FeedForward,
    LatentAttention,
    Linear,
    LinearAttention,
    MixtureOfExperts,
    Normalization,
    SimpleLayer,
    Split,
    StateSpace,
    Tensor,
    vectors,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Layers that repeat together: the unit of recomputation and of a pipeline stage.

    A block that is ``reused`` takes the weights of an earlier block of the same layers.
    """

    kind: ClassVar[Literal["block"]] = "block"
    layers: tuple[SimpleLayer, ...]
    reused: bool = False
    count: int = 1

    def tensors(self) -> Iterator[tuple[Tensor, int]]:
        """The tensors of one repetition, each with how often it occurs there."""
        for layer in self.layers:
            for tensor in layer.tensors():
                yield tensor._replace(stored=not self.reused), layer.count


Layer: TypeAlias = SimpleLayer | Block

LAYER_KINDS: Final[tuple[type[Layer], ...]] = (*get_args(SimpleLayer), Block)
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
        Block.kind,
    }
)
"""Kinds whose work and cache are modelled, beside their tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """Look-up tables in front of the first layer, and the norm over their sum."""

    size: int
    vocabulary_size: int
    position_count: int = 0
    token_type_count: int = 0
    norm: Literal["none", "rms", "layer"] = "none"
    dropout: bool = False

    def tensors(self) -> Iterator[Tensor]:
        """Token, position and token-type tables, and the norm."""
        yield Tensor("tokens", (self.vocabulary_size, self.size), Split.VOCABULARY)
        for name, rows in (("positions", self.position_count), ("token_types", self.token_type_count)):
            if rows:
                yield Tensor(name, (rows, self.size), Split.NONE)
        if self.norm != "none":
            yield from Normalization(size=self.size, norm=self.norm).tensors()


HeadKind: TypeAlias = Literal["language_model", "classifier", "pooler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
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

    def tensors(self) -> Iterator[Tensor]:
        """The matrix and its bias; a head used once a sequence does no work per token."""
        split = Split.VOCABULARY if self.kind == "language_model" else Split.NONE
        share = 1.0 if self.per == "token" else 0.0
        yield Tensor("weight", (self.output_size, self.input_size), split, multiplied=share)
        yield from vectors(self.bias, "bias", self.output_size, split)
        yield from vectors(self.second_bias, "second_bias", self.output_size, split)


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What enters the model: a sequence of tokens, or numbers of a fixed shape."""

    name: str
    kind: Literal["tokens", "image", "video", "latent", "dense_features", "sparse_features"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model, in the order in which data walks through it.

    ``tied`` names the heads whose weight is the token table itself.
    """

    layers: tuple[Layer, ...]
    inputs: tuple[Input, ...] = (Input(name="tokens", kind="tokens"),)
    embeddings: Embeddings | None = None
    heads: tuple[Head, ...] = ()
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

    def blocks(self) -> Iterator[Block]:
        """The layers as blocks; a layer outside a block is a block of its own."""
        for layer in self.layers:
            if isinstance(layer, Block):
                yield layer
            else:
                yield Block(layers=(replace(layer, count=1),), count=layer.count)
