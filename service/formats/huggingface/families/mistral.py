"""The decoder of Mistral Large 4: latent attention over tokens that a scorer picks."""

from collections.abc import Mapping

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import (
    SPELLINGS,
    DecoderFamily,
    ExpertLayout,
    Layers,
    assemble_architecture,
    build_layers,
)
from service.formats.huggingface.parts import build_unsupported_error
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily, build_invalid_error
from service.planning.models.architecture import Architecture
from service.planning.models.layers import LatentAttention, LearnedVectors, Normalization

_PERIOD = 4
"""Layers of which one has no positions where ``no_rope_layers`` does not mark them."""

_OWN_SCORERS = 2
"""First layers that always have a scorer of their own."""

_LETTERS = {"F": "full", "S": "shared"}
_DEFAULTS: Mapping[str, ConfigDefault] = {
    "vocab_size": 204_800,
    "hidden_size": 6144,
    "intermediate_size": 24_576,
    "moe_intermediate_size": 6144,
    "num_hidden_layers": 72,
    "num_attention_heads": 64,
    "n_shared_experts": 1,
    "n_routed_experts": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "qk_nope_head_dim": 64,
    "n_group": 1,
    "topk_group": 1,
    "num_experts_per_tok": 4,
    "max_position_embeddings": 1_048_576,
    "attention_bias": False,
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "tie_word_embeddings": False,
}


def _list_positions(reader: ConfigReader, depth: int) -> list[bool]:
    """True for each layer whose heads carry positions."""
    marks = reader.config.get("no_rope_layers")
    if marks is None:
        period = reader.read_size_or("no_rope_layer_interval", _PERIOD)
        return [bool((index + 1) % period) for index in range(depth)]
    if not isinstance(marks, list) or len(marks) != depth or not all(mark in (0, 1) for mark in marks):
        raise build_invalid_error("no_rope_layers", "no_rope_layers must be 0 or 1 for every layer")
    return [bool(mark) for mark in marks]


def _list_scorers(reader: ConfigReader, depth: int) -> list[str]:
    """Scorers of layers: ``full`` for one of its own, ``shared`` for that of an earlier layer."""
    words = reader.read_words("indexer_types", depth)
    pattern = reader.config.get("index_topk_pattern")
    if words is None and pattern is not None:
        if not isinstance(pattern, str | list) or len(pattern) != depth:
            raise build_invalid_error("index_topk_pattern", "index_topk_pattern must name every layer")
        words = [_LETTERS.get(str(item), str(item)) for item in pattern]
    if words is None:
        step, first = (
            reader.read_size_or("index_topk_freq", 1),
            reader.read_size_or("index_skip_topk_offset", _OWN_SCORERS),
        )
        return ["shared" if max(index - first + 1, 0) % step else "full" for index in range(depth)]
    if not {"full", "shared"}.issuperset(words) or words[0] != "full":
        raise build_unsupported_error(
            "indexer_types", "only full, which the first layer has to be, and shared are known"
        )
    return words


def _list_kinds(reader: ConfigReader, depth: int) -> list[str]:
    sources = reader.config.get("kv_source_layers")
    if sources is not None and sources != list(range(depth)):
        raise build_unsupported_error(
            "kv_source_layers", "only known where each layer keeps what it reads, 0 to the last one"
        )
    positions = _list_positions(reader, depth)
    return [
        f"{scorer} {'rotated' if rotated else 'plain'}"
        for scorer, rotated in zip(_list_scorers(reader, depth), positions, strict=True)
    ]


def _build_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Latent attention whose scores are scaled by head, and a scorer that reads the state of the layer."""
    del family
    scorer, _, positions = kind.partition(" ")
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    rotary = reader.read_size("qk_rope_head_dim")
    plain = reader.read_size("qk_nope_head_dim")
    if positions == "plain":
        plain, rotary = plain + rotary, 0
    index_heads = reader.read_size("index_n_heads") if scorer == "full" else None
    attention = LatentAttention(
        hidden_size=hidden,
        query_heads=heads,
        key_value_rank=reader.read_size("kv_lora_rank"),
        rotary_head_size=rotary,
        plain_head_size=plain,
        value_head_size=reader.read_size("v_head_dim"),
        index_heads=index_heads,
        index_head_size=reader.read_size("index_head_dim") if scorer == "full" else None,
        index_tokens=reader.read_size("index_topk"),
        bias=reader.read_flag("attention_bias"),
    )
    layers = (attention, LearnedVectors(purpose="scale", rows=2, size=heads))
    if index_heads is None:
        return layers
    return (
        *layers,
        Normalization(size=hidden, norm="layer"),
        LearnedVectors(purpose="scale", rows=2, size=index_heads),
    )


_DECODER = DecoderFamily(
    attention=_build_attention,
    kinds=_list_kinds,
    bias=False,
    experts=ExpertLayout(
        layers=patterns.build_sparse_after_dense("first_k_dense_replace", 1), shared_count="n_shared_experts"
    ),
)


def _build_text(reader: ConfigReader, suffix: str) -> Architecture:
    """The layers, which share a learned factor of the frequency of each pair that rotates in a head."""
    hidden, pairs = reader.read_size("hidden_size"), reader.read_size("qk_rope_head_dim") // 2
    factors = LearnedVectors(purpose="scale", rows=1, size=pairs)
    layers = (factors, *build_layers(reader, _DECODER))
    return assemble_architecture(reader, suffix, _DECODER, layers, hidden)


MISTRAL_LARGE_TEXT = ModelFamily(
    prefix="MistralLarge4",
    build=_build_text,
    classes=("TextModel",),
    unnamed_class="TextModel",
    context_field="max_position_embeddings",
    defaults=_DEFAULTS,
    names=SPELLINGS,
)
"""The decoder inside of Mistral Large 4."""
