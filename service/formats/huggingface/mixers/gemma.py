"""Parts of Gemma 3n and 4."""

from dataclasses import replace

from service.formats.huggingface.decoders import (
    DecoderFamily,
    Layers,
    build_attention,
    build_feed_forward,
    read_expert_counts,
    read_key_value_heads,
)
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.layers import (
    Attention,
    FeedForward,
    LearnedVectors,
    Linear,
    MixtureOfExperts,
    Normalization,
)


def build_gemma_4_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Gemma 4: wider heads in full layers, values that are the keys, keys and values of earlier layers."""
    del family
    wide = kind.startswith("full")
    heads = reader.read_size("num_attention_heads")
    count = read_key_value_heads(reader, heads)
    same = wide and reader.read_flag("attention_k_eq_v")
    if same:
        count = reader.read_size_or("num_global_key_value_heads", count)
    own: str = "key_as_value" if same else "own"
    bias = reader.read_flag("attention_bias")
    return (
        Attention(
            hidden_size=reader.read_size("hidden_size"),
            query_heads=heads,
            key_value_heads=count,
            head_size=reader.read_size_or("global_head_dim", 512) if wide else reader.read_size("head_dim"),
            window_tokens=None if wide else reader.read_size("sliding_window"),
            key_value="shared" if kind.endswith("shared") else own,  # type: ignore[arg-type]
            query_key_value_bias=bias,
            output_bias=bias,
            query_key_norm="head",
            dropout=reader.has_dropout("attention_dropout"),
        ),
    )


def build_gemma_4_feed_forward(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """The dense feed-forward, twice as wide in sharing layers if so switched, and experts beside it."""
    (dense,) = build_feed_forward(reader, family)
    hidden = reader.read_size("hidden_size")
    if isinstance(dense, FeedForward) and kind.endswith("shared") and reader.read_flag("use_double_wide_mlp"):
        dense = FeedForward(hidden_size=hidden, inner_size=2 * dense.inner_size, gated=True)
    if not reader.read_flag("enable_moe_block"):
        return (dense,)
    count, taken = read_expert_counts(reader)
    sparse = MixtureOfExperts(
        hidden_size=hidden,
        expert_count=count,
        experts_per_token=taken,
        expert_inner_size=reader.read_size("moe_intermediate_size"),
        router_scales=True,
    )
    norm = Normalization(size=hidden)
    return (dense, norm, norm, sparse, norm)


def build_gemma_4_token_input(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Projection of each layer's own embedding table of tokens."""
    del family, kind
    hidden, width = reader.read_size("hidden_size"), reader.read_count("hidden_size_per_layer_input")
    if not width:
        return ()
    return (
        Linear(input_size=hidden, output_size=width),
        Linear(input_size=width, output_size=hidden),
        Normalization(size=hidden),
    )


def build_gemma_3n_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Gemma 3n: the last layers read the keys and values of earlier ones."""
    (plain,) = build_attention(reader, family, kind.removesuffix(" shared"))
    if kind.endswith("shared") and isinstance(plain, Attention):
        return (replace(plain, key_value="shared"),)
    return (plain,)


def build_gemma_3n_token_input(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """As in Gemma 4, but the norm stands where there is no table, too."""
    norm = Normalization(size=reader.read_size("hidden_size"))
    return build_gemma_4_token_input(reader, family, kind) or (norm,)


def build_laurel(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Augmented residual of Gemma 3n (LAuReL): a product of low rank beside attention."""
    del family, kind
    hidden, rank = reader.read_size("hidden_size"), reader.read_size("laurel_rank")
    return (
        Linear(input_size=hidden, output_size=rank),
        Linear(input_size=rank, output_size=hidden),
        Normalization(size=hidden),
    )


def build_alternating_updates(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Alternating updates of Gemma 3n (AltUp, Baykal et al. 2023): what mixes the streams around a layer."""
    del family, kind
    hidden, streams = reader.read_size("hidden_size"), reader.read_size("altup_num_inputs")
    return (
        Normalization(size=hidden),
        Linear(input_size=hidden, output_size=streams),
        Linear(input_size=streams, output_size=streams**2),
        Linear(input_size=streams, output_size=streams),
        LearnedVectors(purpose="scale", rows=1, size=hidden),
    )
