"""Decoder-only text models: one reader for all families, steered by their descriptions in ``families``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from service.formats.huggingface import patterns
from service.formats.huggingface.patterns import LayerKindsPattern, SparseLayersPattern
from service.formats.huggingface.reader import (
    ConfigReader,
    build_blocks,
    build_invalid_error,
    compute_head_size,
)
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, ModelEmbeddings, ModelHead, ModelLayer
from service.planning.models.layers import (
    Attention,
    EmbeddingTable,
    FeedForward,
    Linear,
    MixtureOfExperts,
    Normalization,
    SimpleLayer,
)

ConfigSwitch: TypeAlias = bool | str
"""A constant, or the name of the field that decides."""

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
"""Spellings of fields that differ between families."""


def is_enabled(reader: ConfigReader, switch: ConfigSwitch) -> bool:
    """Returns the constant, or the value of the field."""
    return reader.read_flag(switch) if isinstance(switch, str) else switch


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionOptions:
    """Biases, norms and gates of a family's attention."""

    bias: ConfigSwitch = "attention_bias"
    output_bias: ConfigSwitch | None = None
    """Bias of the output projection. None means the same as ``bias``."""
    norm: Literal["none", "head", "projection"] = "none"
    normed: ConfigSwitch = True
    norm_shift: bool = False
    gate: Literal["none", "head", "element"] = "none"
    gated: ConfigSwitch = True
    gate_names: str | None = None
    """Field that names the gate: true or ``per-head`` by head, else by element."""
    gate_bias: ConfigSwitch = False
    sinks: bool = False
    output_norm: bool = False
    key_value_heads: Callable[[ConfigReader, int], int] | None = None
    """Reads the key-value heads. None means ``num_key_value_heads``, else one per query head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertLayout:
    """The expert layout of a family."""

    inner: str = "moe_intermediate_size"
    layers: SparseLayersPattern = patterns.mark_all_sparse
    gated: bool = True
    bias: bool = False
    router_bias: bool = False
    shared_size: str | None = None
    """Field with the width of the shared expert."""
    shared_count: str | int | None = None
    """Field with the number of shared experts, each as wide as a routed one."""
    shared_bias: ConfigSwitch = False
    shared_gate: bool = False
    latent: str | None = None
    image_inner: str | None = None
    """Field with the inner width of experts that positions of images take in place of the others."""


Mixer: TypeAlias = Callable[[ConfigReader, "DecoderFamily", str], Layers]
"""Builds the token-mixing parts of a layer of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderFamily:
    """A family of decoders: its tensors, where they differ from Llama's."""

    heads: AttentionOptions = field(default_factory=AttentionOptions)
    attention: Mixer | None = None
    """Mixer of attention layers. None means attention by heads."""
    linear: Mixer | None = None
    """Mixer of layers without attention."""
    kinds: LayerKindsPattern = patterns.list_full_kinds
    block: str | Callable[[ConfigReader], str] = "norm mixer norm ffn"
    """Parts of a layer in order."""
    blocks: Mapping[str, str] = field(default_factory=dict)
    """Parts of the layers of one kind, where they differ."""
    norm: Literal["rms", "layer"] = "rms"
    norm_learned: ConfigSwitch = True
    final_norm: bool = True
    gated: bool = True
    inner: Callable[[ConfigReader], int] = lambda reader: reader.read_size("intermediate_size")
    bias: ConfigSwitch = "mlp_bias"
    inner_norm: bool = False
    state_norms: bool = False
    activation_parameters: int = 0
    experts: ExpertLayout | None = None
    positions: ConfigSwitch = False
    """True if positions are learned."""
    position_offset: int = 0
    embedding_norm: Literal["none", "rms", "layer"] = "none"
    head_bias: ConfigSwitch = False
    ties: bool = True
    """True if the class follows ``tie_word_embeddings``."""
    drops: bool = False
    """True if outputs and embeddings pass a dropout as their fields state."""
    parts: Mapping[str, Mixer] = field(default_factory=dict)
    """Further parts of a block, or replacements of norm, mixer and ffn."""
    refused: tuple[str, ...] = ()


def _build_heads(
    reader: ConfigReader, suffix: str, hidden: int, vocabulary: int, *, bias: bool = False
) -> tuple[ModelHead, ...]:
    match suffix:
        case "ForCausalLM" | "LMHeadModel":
            return (ModelHead(kind="language_model", input_size=hidden, output_size=vocabulary, bias=bias),)
        case "ForSequenceClassification":
            labels = reader.count_labels()
            return (ModelHead(kind="classifier", input_size=hidden, output_size=labels, per="sequence"),)
        case "ForTokenClassification":
            labels = reader.count_labels()
            return (ModelHead(kind="classifier", input_size=hidden, output_size=labels, bias=True),)
        case "ForQuestionAnswering":
            return (ModelHead(kind="classifier", input_size=hidden, output_size=2, bias=True),)
        case _:
            return ()


def read_key_value_heads(reader: ConfigReader, heads: int, name: str = "num_key_value_heads") -> int:
    """Reads the key-value heads. Null means one per query head, absence the family's default, if any."""
    found = reader.read_optional_size(name)
    if found is None:
        return heads
    if heads % found:
        spelling = reader.resolve_spelling(name)
        raise build_invalid_error(spelling, f"{spelling} does not divide the query heads")
    return found


def read_window(reader: ConfigReader, kind: str) -> int | None:
    """Returns the tokens that a layer of this kind sees; None without a limit."""
    match kind:
        case "window":
            return reader.read_size("sliding_window")
        case "chunk":
            return reader.read_optional_size("attention_chunk_size")
        case _:
            return None


def _read_gate(reader: ConfigReader, heads: AttentionOptions) -> Literal["none", "head", "element"]:
    if heads.gate_names is None:
        return heads.gate if is_enabled(reader, heads.gated) else "none"
    value = reader.read_value(heads.gate_names)
    return "head" if value is True or value == "per-head" else "element"


def build_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Attention by heads."""
    heads = family.heads
    hidden, query = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    shared = (heads.key_value_heads or read_key_value_heads)(reader, query)
    bias = is_enabled(reader, heads.bias)
    size = reader.read_optional_size("head_dim")
    return (
        Attention(
            hidden_size=hidden,
            query_heads=query,
            key_value_heads=shared,
            head_size=size
            or compute_head_size(hidden, query, reader.resolve_spelling("num_attention_heads")),
            window_tokens=read_window(reader, kind),
            query_key_value_bias=bias,
            output_bias=bias if heads.output_bias is None else is_enabled(reader, heads.output_bias),
            query_key_norm=heads.norm if is_enabled(reader, heads.normed) else "none",
            query_key_norm_shift=heads.norm_shift and is_enabled(reader, heads.normed),
            gate=_read_gate(reader, heads),
            gate_bias=is_enabled(reader, heads.gate_bias),
            sinks=heads.sinks,
            output_norm=heads.output_norm,
            dropout=reader.has_dropout("attention_dropout"),
        ),
    )


def build_feed_forward(reader: ConfigReader, family: DecoderFamily) -> Layers:
    """The feed-forward of a dense layer."""
    return (
        FeedForward(
            hidden_size=reader.read_size("hidden_size"),
            inner_size=family.inner(reader),
            gated=family.gated,
            bias=is_enabled(reader, family.bias),
            inner_norm=family.inner_norm,
            activation_parameters=family.activation_parameters,
            dropout=family.drops and reader.has_dropout("residual_dropout"),
        ),
    )


def read_expert_counts(
    reader: ConfigReader, count: str = "num_experts", taken: str = "num_experts_per_tok"
) -> tuple[int, int]:
    """Experts to choose from and those that each token takes."""
    chosen, of = reader.read_size(taken), reader.read_size(count)
    if chosen > of:
        spelling = reader.resolve_spelling(taken)
        raise build_invalid_error(spelling, f"{spelling} exceeds the number of experts")
    return of, chosen


def _read_expert_groups(reader: ConfigReader, experts: int) -> tuple[int | None, int | None]:
    """Returns the groups of experts and those that a token takes; None where its choice is not limited."""
    names = ("n_group", "topk_group")
    groups, taken = (
        reader.read_size(name) if reader.has_value(name) else reader.read_value(name) for name in names
    )
    if not (isinstance(groups, int) and isinstance(taken, int) and taken < groups) or experts % groups:
        return None, None
    # The gates of DeepSeek-V2 name their method, of which one is limited to groups.
    return (None, None) if reader.read_value("topk_method") == "greedy" else (groups, taken)


def build_experts(reader: ConfigReader, layout: ExpertLayout) -> Layers:
    """The experts of a sparse layer."""
    count, taken = read_expert_counts(reader)
    inner = reader.read_size(layout.inner)
    shared = reader.read_count(layout.shared_size) if layout.shared_size else 0
    if isinstance(layout.shared_count, str):
        shared = inner * reader.read_count(layout.shared_count)
    elif layout.shared_count is not None:
        shared = inner * layout.shared_count
    groups, taken_groups = _read_expert_groups(reader, count)
    return (
        MixtureOfExperts(
            hidden_size=reader.read_size("hidden_size"),
            expert_count=count,
            experts_per_token=taken,
            expert_inner_size=inner,
            image_expert_inner_size=reader.read_size(layout.image_inner) if layout.image_inner else None,
            expert_groups=groups,
            groups_per_token=taken_groups,
            gated=layout.gated,
            bias=layout.bias,
            router_bias=layout.router_bias,
            latent_size=reader.read_optional_size(layout.latent) if layout.latent else None,
            shared_inner_size=shared or None,
            shared_bias=is_enabled(reader, layout.shared_bias) and shared > 0,
            shared_gate=layout.shared_gate and shared > 0,
        ),
    )


@dataclass(slots=True)
class _LayerCache:
    """The layers of a model, built once for each kind."""

    reader: ConfigReader
    family: DecoderFamily
    norm: Layers
    known: dict[str, Layers] = field(default_factory=dict)

    def build_layer(self, kind: str, *, sparse: bool) -> Layers:
        """The parts of one layer."""
        block = self.family.blocks.get(kind, self.family.block)
        parts = block(self.reader) if callable(block) else block
        found: list[SimpleLayer] = []
        for part in parts.split():
            found += self._get_part(part, kind, sparse=sparse)
        return tuple(found)

    def _get_part(self, part: str, kind: str, *, sparse: bool) -> Layers:
        name = f"{part} {kind} {sparse}"
        if name not in self.known:
            self.known[name] = self._build_part(part, kind, sparse=sparse)
        return self.known[name]

    def _build_part(self, part: str, kind: str, *, sparse: bool) -> Layers:
        if part in self.family.parts:
            return self.family.parts[part](self.reader, self.family, kind)
        match part:
            case "norm":
                return self.norm
            case "sparse_norm" | "latent_norm":
                norm = self.norm if part == "sparse_norm" else self._build_latent_norm()
                return norm if sparse else ()
            case "ffn":
                layout = self.family.experts
                return build_experts(self.reader, layout) if sparse and layout else self._build_dense()
            case "mixer" if kind in ("linear", "convolution"):
                return self._build_linear(kind)
            case _:
                return (self.family.attention or build_attention)(self.reader, self.family, kind)

    def _build_latent_norm(self) -> Layers:
        name = self.family.experts.latent if self.family.experts else None
        size = self.reader.read_optional_size(name) if name else None
        return (Normalization(size=size),) if size else ()

    def _build_dense(self) -> Layers:
        return build_feed_forward(self.reader, self.family)

    def _build_linear(self, kind: str) -> Layers:
        if self.family.linear is None:
            raise PlanningError(
                "CONFIG_FIELD_UNSUPPORTED",
                f"/{self.reader.resolve_spelling('layer_types')}",
                "this family has no layers without attention",
            )
        return self.family.linear(self.reader, self.family, kind)


def build_layers(reader: ConfigReader, family: DecoderFamily) -> tuple[ModelLayer, ...]:
    """The layers in order, equal neighbours as one block."""
    depth = reader.read_depth("num_hidden_layers")
    kinds = family.kinds(reader, depth)
    sparse = family.experts.layers(reader, depth) if family.experts else [False] * depth
    learned = is_enabled(reader, family.norm_learned)
    norm = Normalization(size=reader.read_size("hidden_size"), norm=family.norm, learned=learned)
    parts = _LayerCache(reader, family, (norm,))
    built: dict[tuple[str, bool], Layers] = {}
    for key in dict.fromkeys(zip(kinds, sparse, strict=True)):
        built[key] = parts.build_layer(key[0], sparse=key[1])
    blocks = build_blocks([built[key] for key in zip(kinds, sparse, strict=True)])
    return (*blocks, norm) if family.final_norm else blocks


def build_embeddings(reader: ConfigReader, family: DecoderFamily, size: int) -> ModelEmbeddings:
    """The token table, learned positions and the norm over their sum."""
    positions = reader.read_size("max_position_embeddings") if is_enabled(reader, family.positions) else 0
    return ModelEmbeddings(
        size=size,
        vocabulary_size=reader.read_size("vocab_size"),
        position_count=positions + family.position_offset if positions else 0,
        norm=family.embedding_norm,
        dropout=family.drops and reader.has_dropout("embedding_dropout"),
    )


def assemble_architecture(
    reader: ConfigReader, suffix: str, family: DecoderFamily, layers: tuple[ModelLayer, ...], size: int
) -> Architecture:
    """Tables, layers and heads of a model whose tokens are ``size`` wide."""
    vocabulary = reader.read_size("vocab_size")
    bias = is_enabled(reader, family.head_bias)
    heads = _build_heads(reader, suffix, size, vocabulary, bias=bias)
    generates = suffix in ("ForCausalLM", "LMHeadModel")
    tied = generates and family.ties and reader.read_flag("tie_word_embeddings")
    return Architecture(
        embeddings=build_embeddings(reader, family, size),
        layers=layers,
        heads=heads,
        tied=("language_model",) if tied else (),
    )


def build_architecture(reader: ConfigReader, suffix: str, family: DecoderFamily) -> Architecture:
    """The architecture that a configuration of ``family`` describes."""
    reader.refuse_flags("add_cross_attention", *family.refused)
    return assemble_architecture(
        reader, suffix, family, build_layers(reader, family), reader.read_size("hidden_size")
    )


def build_projected(reader: ConfigReader, suffix: str, family: DecoderFamily) -> Architecture:
    """OPT: positions as wide as the model, tokens as wide as ``word_embed_proj_dim``, matrices between."""
    hidden = reader.read_size("hidden_size")
    narrow = reader.read_size_or("word_embed_proj_dim", hidden)
    before = reader.read_flag("do_layer_norm_before", default=True)
    layers = build_layers(reader, family)
    if not before or reader.read_flag("_remove_final_layer_norm"):
        layers = layers[:-1]
    if narrow != hidden:
        # Positions are as wide as the model, not as the tokens, so their table is among the layers.
        positions = reader.read_size("max_position_embeddings") + family.position_offset
        family = replace(family, positions=False)
        layers = (
            EmbeddingTable(rows=positions, size=hidden),
            Linear(input_size=narrow, output_size=hidden),
            *layers,
            Linear(input_size=hidden, output_size=narrow),
        )
    return assemble_architecture(reader, suffix, family, layers, narrow)
