"""Decoder-only text models: one reader for all families, steered by their descriptions in ``families``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from service.formats.huggingface import patterns
from service.formats.huggingface.patterns import Kinds, Sparse
from service.formats.huggingface.reader import ConfigReader, as_blocks, head_size, invalid
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, Embeddings, Head, Layer
from service.planning.models.layers import (
    Attention,
    EmbeddingTable,
    FeedForward,
    Linear,
    MixtureOfExperts,
    Normalization,
    SimpleLayer,
)

Switch: TypeAlias = bool | str
"""A constant, or the field that decides."""

Layers: TypeAlias = tuple[SimpleLayer, ...]

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dim": ("head_dim", "attention_head_dim"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "dff"),
    "max_position_embeddings": (
        "max_position_embeddings",
        "n_positions",
        "max_seq_len",
        "model_max_length",
    ),
    "layer_types": ("layer_types", "layers_block_type"),
    "num_experts": ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_topk",
        "moe_k",
        "top_k_experts",
    ),
    "sliding_window": ("sliding_window", "attention_window_size", "window_size"),
    "attention_dropout": ("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob"),
    "residual_dropout": (
        "residual_dropout",
        "resid_pdrop",
        "resid_dropout",
        "hidden_dropout",
        "hidden_dropout_prob",
        "dropout",
    ),
    "embedding_dropout": (
        "embedding_dropout",
        "embd_pdrop",
        "embed_dropout",
        "emb_pdrop",
        "hidden_dropout_prob",
        "dropout",
    ),
}
"""How families spell the same field."""


def turned_on(reader: ConfigReader, switch: Switch) -> bool:
    """The constant, or what the field says."""
    return reader.flag(switch) if isinstance(switch, str) else switch


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Biases, norms and gates of a family's attention."""

    bias: Switch = "attention_bias"
    output_bias: Switch | None = None
    """None: as ``bias``."""
    norm: Literal["none", "head", "projection"] = "none"
    normed: Switch = True
    norm_shift: bool = False
    gate: Literal["none", "head", "element"] = "none"
    gated: Switch = True
    gate_names: str | None = None
    """A field that names the gate: true or ``per-head`` by head, else by element."""
    gate_bias: Switch = False
    sinks: bool = False
    output_norm: bool = False
    key_value_heads: Callable[[ConfigReader, int], int] | None = None
    """None: as ``num_key_value_heads`` says, else one per query head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The expert layout of a family."""

    inner: str = "moe_intermediate_size"
    layers: Sparse = patterns.always
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_size: str | None = None
    """Field with the width of the shared expert."""
    shared_count: str | int | None = None
    """Field with the number of shared experts, each as wide as a routed one."""
    shared_bias: Switch = False
    shared_gate: bool = False
    latent: str | None = None


Mixer: TypeAlias = Callable[[ConfigReader, "Decoder", str], Layers]
"""What mixes tokens in a layer of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """One family: what its tensors are, wherever they differ from Llama's."""

    heads: Heads = field(default_factory=Heads)
    attention: Mixer | None = None
    """None: attention by heads."""
    linear: Mixer | None = None
    """What stands in layers without attention."""
    kinds: Kinds = patterns.full
    block: str | Callable[[ConfigReader], str] = "norm mixer norm ffn"
    """Parts of a layer in order."""
    blocks: Mapping[str, str] = field(default_factory=dict)
    """Parts of the layers of one kind, where they differ."""
    norm: Literal["rms", "layer"] = "rms"
    norm_learned: Switch = True
    final_norm: bool = True
    gated: bool = True
    inner: Callable[[ConfigReader], int] = lambda reader: reader.size("intermediate_size")
    bias: Switch = "mlp_bias"
    inner_norm: bool = False
    state_norms: bool = False
    activation_parameters: int = 0
    experts: Experts | None = None
    positions: Switch = False
    """Whether positions are learned."""
    position_offset: int = 0
    embedding_norm: Literal["none", "rms", "layer"] = "none"
    head_bias: Switch = False
    ties: bool = True
    """Whether the class follows ``tie_word_embeddings``."""
    drops: bool = False
    """Whether outputs and embeddings pass a dropout as their fields say."""
    parts: Mapping[str, Mixer] = field(default_factory=dict)
    """Parts of a block beside norm, mixer and ffn, or in place of them."""
    refused: tuple[str, ...] = ()


def _heads(
    reader: ConfigReader, suffix: str, hidden: int, vocabulary: int, *, bias: bool = False
) -> tuple[Head, ...]:
    match suffix:
        case "ForCausalLM" | "LMHeadModel":
            return (Head(kind="language_model", input_size=hidden, output_size=vocabulary, bias=bias),)
        case "ForSequenceClassification":
            labels = reader.labels()
            return (Head(kind="classifier", input_size=hidden, output_size=labels, per="sequence"),)
        case "ForTokenClassification":
            labels = reader.labels()
            return (Head(kind="classifier", input_size=hidden, output_size=labels, bias=True),)
        case "ForQuestionAnswering":
            return (Head(kind="classifier", input_size=hidden, output_size=2, bias=True),)
        case _:
            return ()


def key_value_heads(reader: ConfigReader, heads: int, name: str = "num_key_value_heads") -> int:
    """Null means one per query head; a field left out means the default of the family, if it has one."""
    found = reader.optional_size(name)
    if found is None:
        return heads
    if heads % found:
        spelling = reader.spelling(name)
        raise invalid(spelling, f"{spelling} does not divide the query heads")
    return found


def window_of(reader: ConfigReader, kind: str) -> int | None:
    """Tokens that a layer of this kind sees; None without a limit."""
    match kind:
        case "window":
            return reader.size("sliding_window")
        case "chunk":
            return reader.optional_size("attention_chunk_size")
        case _:
            return None


def _gate(reader: ConfigReader, heads: Heads) -> Literal["none", "head", "element"]:
    if heads.gate_names is None:
        return heads.gate if turned_on(reader, heads.gated) else "none"
    value = reader.value(heads.gate_names)
    return "head" if value is True or value == "per-head" else "element"


def attention(reader: ConfigReader, family: Decoder, kind: str) -> Layers:
    """Attention by heads."""
    heads = family.heads
    hidden, query = reader.size("hidden_size"), reader.size("num_attention_heads")
    shared = (heads.key_value_heads or key_value_heads)(reader, query)
    bias = turned_on(reader, heads.bias)
    size = reader.optional_size("head_dim")
    return (
        Attention(
            hidden_size=hidden,
            query_heads=query,
            key_value_heads=shared,
            head_size=size or head_size(hidden, query, reader.spelling("num_attention_heads")),
            window_tokens=window_of(reader, kind),
            query_key_value_bias=bias,
            output_bias=bias if heads.output_bias is None else turned_on(reader, heads.output_bias),
            query_key_norm=heads.norm if turned_on(reader, heads.normed) else "none",
            query_key_norm_shift=heads.norm_shift and turned_on(reader, heads.normed),
            gate=_gate(reader, heads),
            gate_bias=turned_on(reader, heads.gate_bias),
            sinks=heads.sinks,
            output_norm=heads.output_norm,
            dropout=reader.drops("attention_dropout"),
        ),
    )


def feed_forward(reader: ConfigReader, family: Decoder) -> Layers:
    """The feed-forward of a dense layer."""
    return (
        FeedForward(
            hidden_size=reader.size("hidden_size"),
            inner_size=family.inner(reader),
            gated=family.gated,
            bias=turned_on(reader, family.bias),
            inner_norm=family.inner_norm,
            activation_parameters=family.activation_parameters,
            dropout=family.drops and reader.drops("residual_dropout"),
        ),
    )


def routed(
    reader: ConfigReader, count: str = "num_experts", taken: str = "num_experts_per_tok"
) -> tuple[int, int]:
    """Experts to choose from and those that each token takes."""
    chosen, of = reader.size(taken), reader.size(count)
    if chosen > of:
        spelling = reader.spelling(taken)
        raise invalid(spelling, f"{spelling} exceeds the number of experts")
    return of, chosen


def experts(reader: ConfigReader, layout: Experts) -> Layers:
    """The experts of a sparse layer."""
    count, taken = routed(reader)
    inner = reader.size(layout.inner)
    shared = reader.number(layout.shared_size) if layout.shared_size else 0
    if isinstance(layout.shared_count, str):
        shared = inner * reader.number(layout.shared_count)
    elif layout.shared_count is not None:
        shared = inner * layout.shared_count
    return (
        MixtureOfExperts(
            hidden_size=reader.size("hidden_size"),
            expert_count=count,
            experts_per_token=taken,
            expert_inner_size=inner,
            gated=layout.gated,
            bias=layout.bias,
            router_bias=layout.router_bias,
            latent_size=reader.optional_size(layout.latent) if layout.latent else None,
            shared_inner_size=shared or None,
            shared_bias=turned_on(reader, layout.shared_bias) and shared > 0,
            shared_gate=layout.shared_gate and shared > 0,
        ),
    )


@dataclass(slots=True)
class _Parts:
    """The layers of a model, built once for each kind."""

    reader: ConfigReader
    family: Decoder
    norm: Layers
    known: dict[str, Layers] = field(default_factory=dict)

    def content(self, kind: str, *, sparse: bool) -> Layers:
        """The parts of one layer."""
        block = self.family.blocks.get(kind, self.family.block)
        parts = block(self.reader) if callable(block) else block
        found: list[SimpleLayer] = []
        for part in parts.split():
            found += self._part(part, kind, sparse=sparse)
        return tuple(found)

    def _part(self, part: str, kind: str, *, sparse: bool) -> Layers:
        name = f"{part} {kind} {sparse}"
        if name not in self.known:
            self.known[name] = self._build(part, kind, sparse=sparse)
        return self.known[name]

    def _build(self, part: str, kind: str, *, sparse: bool) -> Layers:
        if part in self.family.parts:
            return self.family.parts[part](self.reader, self.family, kind)
        match part:
            case "norm":
                return self.norm
            case "sparse_norm":
                return self.norm if sparse else ()
            case "ffn":
                layout = self.family.experts
                return experts(self.reader, layout) if sparse and layout else self._dense()
            case "mixer" if kind in ("linear", "convolution"):
                return self._linear(kind)
            case _:
                return (self.family.attention or attention)(self.reader, self.family, kind)

    def _dense(self) -> Layers:
        return feed_forward(self.reader, self.family)

    def _linear(self, kind: str) -> Layers:
        if self.family.linear is None:
            raise PlanningError(
                "CONFIG_FIELD_UNSUPPORTED",
                f"/{self.reader.spelling('layer_types')}",
                "this family has no layers without attention",
            )
        return self.family.linear(self.reader, self.family, kind)


def layers_of(reader: ConfigReader, family: Decoder) -> tuple[Layer, ...]:
    """The layers in order, equal neighbours as one block."""
    depth = reader.depth("num_hidden_layers")
    kinds = family.kinds(reader, depth)
    sparse = family.experts.layers(reader, depth) if family.experts else [False] * depth
    learned = turned_on(reader, family.norm_learned)
    norm = Normalization(size=reader.size("hidden_size"), norm=family.norm, learned=learned)
    parts = _Parts(reader, family, (norm,))
    built: dict[tuple[str, bool], Layers] = {}
    for key in dict.fromkeys(zip(kinds, sparse, strict=True)):
        built[key] = parts.content(key[0], sparse=key[1])
    blocks = as_blocks([built[key] for key in zip(kinds, sparse, strict=True)])
    return (*blocks, norm) if family.final_norm else blocks


def embeddings_of(reader: ConfigReader, family: Decoder, size: int) -> Embeddings:
    """The token table, learned positions and the norm over their sum."""
    positions = reader.size("max_position_embeddings") if turned_on(reader, family.positions) else 0
    return Embeddings(
        size=size,
        vocabulary_size=reader.size("vocab_size"),
        position_count=positions + family.position_offset if positions else 0,
        norm=family.embedding_norm,
        dropout=family.drops and reader.drops("embedding_dropout"),
    )


def assemble(
    reader: ConfigReader, suffix: str, family: Decoder, layers: tuple[Layer, ...], size: int
) -> Architecture:
    """Tables, layers and heads of a model whose tokens are ``size`` wide."""
    vocabulary = reader.size("vocab_size")
    bias = turned_on(reader, family.head_bias)
    heads = _heads(reader, suffix, size, vocabulary, bias=bias)
    generates = suffix in ("ForCausalLM", "LMHeadModel")
    tied = generates and family.ties and reader.flag("tie_word_embeddings")
    return Architecture(
        embeddings=embeddings_of(reader, family, size),
        layers=layers,
        heads=heads,
        tied=("language_model",) if tied else (),
    )


def build(reader: ConfigReader, suffix: str, family: Decoder) -> Architecture:
    """The architecture that a configuration of ``family`` describes."""
    reader.refuse("add_cross_attention", *family.refused)
    return assemble(reader, suffix, family, layers_of(reader, family), reader.size("hidden_size"))


def projected(reader: ConfigReader, suffix: str, family: Decoder) -> Architecture:
    """OPT: positions as wide as the model, tokens as wide as ``word_embed_proj_dim``, matrices between."""
    hidden = reader.size("hidden_size")
    narrow = reader.size_or("word_embed_proj_dim", hidden)
    before = reader.flag("do_layer_norm_before", default=True)
    layers = layers_of(reader, family)
    if not before or reader.flag("_remove_final_layer_norm"):
        layers = layers[:-1]
    if narrow != hidden:
        # Positions are as wide as the model, not as the tokens, so their table stands among the layers.
        positions = reader.size("max_position_embeddings") + family.position_offset
        family = replace(family, positions=False)
        layers = (
            EmbeddingTable(rows=positions, size=hidden),
            Linear(input_size=narrow, output_size=hidden),
            *layers,
            Linear(input_size=hidden, output_size=narrow),
        )
    return assemble(reader, suffix, family, layers, narrow)
