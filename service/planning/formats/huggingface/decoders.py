"""Decoder families: GPT-2, and the pre-norm decoders that descend from Llama."""

from collections.abc import Callable, Mapping
from typing import Literal

from service.planning.architecture import Architecture, Block, Embeddings, Head
from service.planning.formats.huggingface.reader import (
    ConfigReader,
    Family,
    as_blocks,
    head_size,
    invalid,
)
from service.planning.layers import Attention, FeedForward, MixtureOfExperts, Normalization, SimpleLayer

_CLASSES = (
    "ForCausalLM",
    "Model",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
)


def _heads(reader: ConfigReader, suffix: str, hidden: int, vocabulary: int) -> tuple[Head, ...]:
    match suffix:
        case "ForCausalLM" | "LMHeadModel":
            return (Head(kind="language_model", input_size=hidden, output_size=vocabulary),)
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


FeedForwardOfLayer = Callable[[int], FeedForward | MixtureOfExperts]


def _decoder(
    reader: ConfigReader, suffix: str, attention: list[Attention], feed_forward: FeedForwardOfLayer
) -> Architecture:
    hidden = reader.size("hidden_size")
    vocabulary = reader.size("vocab_size")
    norm = Normalization(size=hidden)
    contents: list[tuple[SimpleLayer, ...]] = [
        (norm, layer, norm, feed_forward(index)) for index, layer in enumerate(attention)
    ]
    heads = _heads(reader, suffix, hidden, vocabulary)
    tied = suffix == "ForCausalLM" and reader.flag("tie_word_embeddings")
    return Architecture(
        embeddings=Embeddings(size=hidden, vocabulary_size=vocabulary),
        layers=(*as_blocks(contents), norm),
        heads=heads,
        tied=("language_model",) if tied else (),
    )


def _attention(
    reader: ConfigReader,
    windows: list[int | None],
    *,
    bias: bool = False,
    output_bias: bool = False,
    query_key_norm: Literal["none", "head"] = "none",
    head_size_default: int | None = None,
) -> list[Attention]:
    """The attention of each layer, which differ by their window only."""
    hidden = reader.size("hidden_size")
    heads = reader.size("num_attention_heads")
    key_value_heads = heads
    # Null means one per query head; a field left out means the default of the family, if it has one.
    if "num_key_value_heads" not in reader.config:
        key_value_heads = reader.defaults.get("num_key_value_heads", heads)
        if key_value_heads != heads:
            reader.defaulted.append("num_key_value_heads")
    elif reader.states("num_key_value_heads"):
        key_value_heads = reader.size("num_key_value_heads")
    if heads % key_value_heads:
        raise invalid("num_key_value_heads", "num_key_value_heads does not divide the query heads")
    size = reader.optional_size("head_dim") or head_size_default
    shared = {
        window: Attention(
            hidden_size=hidden,
            query_heads=heads,
            key_value_heads=key_value_heads,
            head_size=size or head_size(hidden, heads, "num_attention_heads"),
            window_tokens=window,
            query_key_value_bias=bias,
            output_bias=output_bias,
            query_key_norm=query_key_norm,
            dropout=reader.drops("attention_dropout"),
        )
        for window in set(windows)
    }
    return [shared[window] for window in windows]


def _no_window(reader: ConfigReader) -> list[int | None]:
    return [None] * reader.depth("num_hidden_layers")


def _window_everywhere(reader: ConfigReader) -> list[int | None]:
    """Mistral's rule: null is no window, a field left out is the family's."""
    window: int | None = None
    if "sliding_window" in reader.config:
        window = reader.optional_size("sliding_window")
    elif "sliding_window" in reader.defaults:
        window = reader.size("sliding_window")
    return [window] * reader.depth("num_hidden_layers")


def _window_in_late_layers(reader: ConfigReader) -> list[int | None]:
    """Qwen's rule: a switch, and the layers from ``max_window_layers`` on or as listed."""
    depth = reader.depth("num_hidden_layers")
    if not reader.flag("use_sliding_window"):
        return [None] * depth
    window = reader.size("sliding_window")
    kinds = reader.config.get("layer_types")
    if kinds is not None:
        if not isinstance(kinds, list) or len(kinds) != depth:
            raise invalid("layer_types", "layer_types must name a kind for every layer")
        return [window if kind == "sliding_attention" else None for kind in kinds]
    first = reader.size("max_window_layers")
    return [window if index >= first else None for index in range(depth)]


def _gated(reader: ConfigReader, *, bias: bool = False) -> FeedForward:
    return FeedForward(
        hidden_size=reader.size("hidden_size"),
        inner_size=reader.size("intermediate_size"),
        gated=True,
        bias=bias,
    )


def _llama(reader: ConfigReader, suffix: str) -> Architecture:
    bias = reader.flag("attention_bias")
    attention = _attention(reader, _no_window(reader), bias=bias, output_bias=bias)
    gated = _gated(reader, bias=reader.flag("mlp_bias"))
    return _decoder(reader, suffix, attention, lambda _: gated)


def _mistral(reader: ConfigReader, suffix: str) -> Architecture:
    gated = _gated(reader)
    return _decoder(reader, suffix, _attention(reader, _window_everywhere(reader)), lambda _: gated)


def _mixtral(reader: ConfigReader, suffix: str) -> Architecture:
    experts = MixtureOfExperts(
        hidden_size=reader.size("hidden_size"),
        expert_count=reader.size("num_local_experts"),
        experts_per_token=reader.size("num_experts_per_tok"),
        expert_inner_size=reader.size("intermediate_size"),
    )
    return _decoder(reader, suffix, _attention(reader, _window_everywhere(reader)), lambda _: experts)


def _qwen2(reader: ConfigReader, suffix: str) -> Architecture:
    gated = _gated(reader)
    attention = _attention(reader, _window_in_late_layers(reader), bias=True)
    return _decoder(reader, suffix, attention, lambda _: gated)


def _qwen3_attention(reader: ConfigReader, head_size_default: int | None) -> list[Attention]:
    bias = reader.flag("attention_bias")
    return _attention(
        reader,
        _window_in_late_layers(reader),
        bias=bias,
        output_bias=bias,
        query_key_norm="head",
        head_size_default=head_size_default,
    )


def _qwen3(reader: ConfigReader, suffix: str) -> Architecture:
    gated = _gated(reader)
    return _decoder(reader, suffix, _qwen3_attention(reader, 128), lambda _: gated)


def _sparse_feed_forward(reader: ConfigReader, *, shared: bool) -> FeedForwardOfLayer:
    """Experts in every ``decoder_sparse_step``-th layer that ``mlp_only_layers`` does not list."""
    dense = _gated(reader)
    experts = MixtureOfExperts(
        hidden_size=reader.size("hidden_size"),
        expert_count=reader.size("num_experts"),
        experts_per_token=reader.size("num_experts_per_tok"),
        expert_inner_size=reader.size("moe_intermediate_size"),
        shared_inner_size=reader.size("shared_expert_intermediate_size") if shared else None,
        shared_gate=shared,
    )
    step = reader.size_or("decoder_sparse_step", 1)
    listed = reader.indexes("mlp_only_layers")
    return lambda index: dense if index in listed or (index + 1) % step else experts


def _qwen2_moe(reader: ConfigReader, suffix: str) -> Architecture:
    bias = reader.flag("qkv_bias", default=True)
    attention = _attention(reader, _window_in_late_layers(reader), bias=bias)
    return _decoder(reader, suffix, attention, _sparse_feed_forward(reader, shared=True))


def _qwen3_moe(reader: ConfigReader, suffix: str) -> Architecture:
    attention = _qwen3_attention(reader, None)
    return _decoder(reader, suffix, attention, _sparse_feed_forward(reader, shared=False))


def _gpt2(reader: ConfigReader, suffix: str) -> Architecture:
    reader.refuse("add_cross_attention")
    hidden, heads = reader.size("n_embd"), reader.size("n_head")
    vocabulary = reader.size("vocab_size")
    norm = Normalization(size=hidden, norm="layer")
    attention = Attention(
        hidden_size=hidden,
        query_heads=heads,
        key_value_heads=heads,
        head_size=head_size(hidden, heads, "n_head"),
        query_key_value_bias=True,
        output_bias=True,
        dropout=reader.drops("attn_pdrop", default=0.1),
    )
    feed_forward = FeedForward(
        hidden_size=hidden,
        inner_size=reader.size_or("n_inner", 4 * hidden),
        bias=True,
        dropout=reader.drops("resid_pdrop", default=0.1),
    )
    tied = suffix == "LMHeadModel" and reader.flag("tie_word_embeddings", default=True)
    block = Block(layers=(norm, attention, norm, feed_forward), count=reader.depth("n_layer"))
    return Architecture(
        embeddings=Embeddings(
            size=hidden,
            vocabulary_size=vocabulary,
            position_count=reader.size("n_positions"),
            dropout=reader.drops("embd_pdrop", default=0.1),
        ),
        layers=(block, norm),
        heads=_heads(reader, suffix, hidden, vocabulary),
        tied=("language_model",) if tied else (),
    )


def _family(prefix: str, build: Callable[[ConfigReader, str], Architecture], **defaults: int) -> Family:
    return Family(prefix, build, _CLASSES, "ForCausalLM", "max_position_embeddings", defaults)


FAMILIES: Mapping[str, Family] = {
    "gpt2": Family(
        "GPT2",
        _gpt2,
        ("LMHeadModel", *_CLASSES[1:]),
        "LMHeadModel",
        "n_positions",
        {"vocab_size": 50_257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12},
    ),
    "llama": _family(
        "Llama",
        _llama,
        vocab_size=32_000,
        hidden_size=4096,
        intermediate_size=11_008,
        num_hidden_layers=32,
        num_attention_heads=32,
        max_position_embeddings=2048,
    ),
    "mistral": _family(
        "Mistral",
        _mistral,
        vocab_size=32_000,
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131_072,
        sliding_window=4096,
    ),
    "mixtral": _family(
        "Mixtral",
        _mixtral,
        vocab_size=32_000,
        hidden_size=4096,
        intermediate_size=14_336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131_072,
        num_experts_per_tok=2,
        num_local_experts=8,
    ),
    "qwen2": _family(
        "Qwen2",
        _qwen2,
        vocab_size=151_936,
        hidden_size=4096,
        intermediate_size=22_016,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=32_768,
        sliding_window=4096,
        max_window_layers=28,
    ),
    "qwen2_moe": _family(
        "Qwen2Moe",
        _qwen2_moe,
        vocab_size=151_936,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=16,
        max_position_embeddings=32_768,
        sliding_window=4096,
        max_window_layers=28,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        num_experts_per_tok=4,
        num_experts=60,
    ),
    "qwen3": _family(
        "Qwen3",
        _qwen3,
        vocab_size=151_936,
        hidden_size=4096,
        intermediate_size=22_016,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=32_768,
        sliding_window=4096,
        max_window_layers=28,
    ),
    "qwen3_moe": _family(
        "Qwen3Moe",
        _qwen3_moe,
        vocab_size=151_936,
        hidden_size=2048,
        intermediate_size=6144,
        num_hidden_layers=24,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=32_768,
        sliding_window=4096,
        moe_intermediate_size=768,
        num_experts_per_tok=8,
        num_experts=128,
    ),
}
