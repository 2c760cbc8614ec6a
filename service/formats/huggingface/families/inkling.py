"""Inkling: most layers see a window by heads of their own, and each has four short convolutions.

Keys, values and the outputs of attention and feed-forward pass a convolution over a few tokens, channel by
channel. It is counted by its weights; its work and the tokens that it keeps of a request are left out.
"""

from dataclasses import replace

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import (
    AttentionOptions,
    DecoderFamily,
    ExpertLayout,
    Layers,
    build_architecture,
    build_attention,
    build_experts,
    build_feed_forward,
)
from service.formats.huggingface.parts import build_unsupported_error
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture
from service.planning.models.layers import Attention, LearnedVectors, Linear

_PERIOD = 6
"""Layers of which one sees everything."""

_KINDS = {"hybrid": "full", "hybrid_sliding": "window"}
_WINDOWED = {
    "num_attention_heads": "swa_num_attention_heads",
    "num_key_value_heads": "swa_num_key_value_heads",
    "head_dim": "swa_head_dim",
}
"""Members that layers with a window have of their own."""


def _list_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """By ``layer_types``, else a window in ``local_layer_ids``, else in all but every sixth."""
    words = reader.read_words("layer_types", depth)
    if words is not None:
        if not _KINDS.keys() >= set(words):
            raise build_unsupported_error("layer_types", f"only {' and '.join(_KINDS)} are known")
        return [_KINDS[word] for word in words]
    if reader.has_value("local_layer_ids"):
        windowed = reader.read_indexes("local_layer_ids")
        return ["window" if index in windowed else "full" for index in range(depth)]
    return ["window" if (index + 1) % _PERIOD else "full" for index in range(depth)]


def _list_layers(reader: ConfigReader, depth: int) -> list[str]:
    """The kind of each layer, and whether it has experts."""
    sparse = patterns.build_sparse_after_dense("dense_mlp_idx")(reader, depth)
    return [
        f"{kind} {'sparse' if experts else 'dense'}"
        for kind, experts in zip(_list_kinds(reader, depth), sparse, strict=True)
    ]


def _build_short_convolution(reader: ConfigReader, channels: int, count: int = 1) -> LearnedVectors:
    rows = reader.read_size("conv_kernel_size")
    return LearnedVectors(purpose="layer_scale", rows=rows, size=channels, count=count)


def _build_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Attention by heads, whose scores have a term of the distance that each token weighs for itself."""
    seen = kind.split(maxsplit=1)[0]
    if seen == "window":
        own = {name: reader.read_size(windowed) for name, windowed in _WINDOWED.items()}
        reader = replace(reader, config={**reader.config, **own})
    (plain,) = build_attention(reader, family, seen)
    if not isinstance(plain, Attention):
        return (plain,)
    rank = reader.read_size("d_rel")
    extent = reader.read_size("sliding_window" if seen == "window" else "rel_extent")
    return (
        plain,
        _build_short_convolution(reader, plain.key_value_heads * plain.head_size, 2),
        Linear(input_size=plain.hidden_size, output_size=plain.query_heads * rank),
        LearnedVectors(purpose="relative_positions", rows=rank, size=extent),
    )


def _build_inner(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """A feed-forward or experts, scaled as a whole; a router scores the experts that all tokens take too."""
    scale = LearnedVectors(purpose="scale", size=1)
    if kind.endswith("dense"):
        return (*build_feed_forward(reader, family), scale)
    shared = reader.read_count("n_shared_experts")
    scores = (Linear(input_size=reader.read_size("hidden_size"), output_size=shared),) if shared else ()
    return (*build_experts(reader, ExpertLayout(shared_count="n_shared_experts")), *scores, scale)


def _build_behind(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    del family, kind
    return (_build_short_convolution(reader, reader.read_size("hidden_size")),)


INKLING = DecoderFamily(
    heads=AttentionOptions(bias=False, norm="head"),
    attention=_build_attention,
    kinds=_list_layers,
    block="norm mixer convolution norm ffn convolution",
    parts={"ffn": _build_inner, "convolution": _build_behind},
    bias=False,
    embedding_norm="rms",
    ties=False,
)


def build_inkling(reader: ConfigReader, suffix: str) -> Architecture:
    """Inkling, whose published files call the inner width of experts that of a dense layer."""
    reader.refuse_flags("q_bias", "o_bias")
    for name in ("use_sconv", "use_embed_norm", "use_global_scale"):
        if not reader.read_flag(name, default=True):
            raise build_unsupported_error(name, "only known where it is true")
    config = dict(reader.config)
    if config.get("dense_intermediate_size") is not None:
        config["moe_intermediate_size"] = reader.read_size("intermediate_size")
        config["intermediate_size"] = reader.read_size("dense_intermediate_size")
    return build_architecture(replace(reader, config=config), suffix, INKLING)
