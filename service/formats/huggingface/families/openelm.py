"""OpenELM: each layer has its own numbers of heads and its own inner width, which grow with depth."""

from service.formats.huggingface.decoders import DecoderFamily, assemble_architecture
from service.formats.huggingface.parts import build_unsupported_error, read_choice, read_numbers
from service.formats.huggingface.reader import ConfigReader, ModelFamily, build_blocks, build_invalid_error
from service.planning.models.architecture import Architecture, ModelLayer
from service.planning.models.layers import Attention, FeedForward, Normalization, SimpleLayer

_LEAST_SHARE = 0.9
"""Share of an inner width below which rounding goes up by a whole divisor."""

_LARGEST_FACTOR = 1000


def _read_heads(reader: ConfigReader, name: str, depth: int) -> tuple[int, ...]:
    heads = read_numbers(reader, name)
    if len(heads) != depth:
        raise build_invalid_error(name, f"{name} must have a number for every layer")
    return heads


def _list_inner_sizes(reader: ConfigReader, hidden: int, depth: int) -> list[int]:
    """The width times the factor of each layer, rounded to a multiple."""
    factors, divisor = reader.config.get("ffn_multipliers"), reader.read_size("ffn_dim_divisor")
    if not isinstance(factors, list) or len(factors) != depth:
        raise build_invalid_error("ffn_multipliers", "ffn_multipliers must have a factor for every layer")
    sizes = []
    for factor in factors:
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            raise build_invalid_error("ffn_multipliers", "ffn_multipliers must be numbers")
        if not 0 < factor <= _LARGEST_FACTOR:
            raise build_invalid_error("ffn_multipliers", f"factors lie above 0, at most {_LARGEST_FACTOR}")
        wanted = factor * hidden
        rounded = max(divisor, int(wanted + divisor / 2) // divisor * divisor)
        sizes.append(rounded + divisor if rounded < _LEAST_SHARE * wanted else rounded)
    return sizes


def _build_openelm(reader: ConfigReader, suffix: str) -> Architecture:
    """OpenELM."""
    read_choice(reader, "normalization_layer_name", "rms_norm", "rms_norm")
    if not reader.read_flag("ffn_with_glu", default=True):
        raise build_unsupported_error("ffn_with_glu", "only known where it is true")
    hidden, depth = reader.read_size("hidden_size"), reader.read_depth("num_hidden_layers")
    norm, normed = Normalization(size=hidden), reader.read_flag("normalize_qk_projections")
    query, shared = (_read_heads(reader, name, depth) for name in ("num_query_heads", "num_kv_heads"))
    contents: list[tuple[SimpleLayer, ...]] = []
    for heads, kept, inner in zip(query, shared, _list_inner_sizes(reader, hidden, depth), strict=True):
        if heads % kept:
            raise build_invalid_error("num_kv_heads", "num_kv_heads do not divide the query heads")
        attention = Attention(
            hidden_size=hidden,
            query_heads=heads,
            key_value_heads=kept,
            head_size=reader.read_size("head_dim"),
            query_key_norm="head" if normed else "none",
        )
        contents.append(
            (norm, attention, norm, FeedForward(hidden_size=hidden, inner_size=inner, gated=True))
        )
    layers: tuple[ModelLayer, ...] = (*build_blocks(contents), norm)
    return assemble_architecture(reader, suffix, DecoderFamily(), layers, hidden)


OPENELM = ModelFamily(
    prefix="OpenELM",
    build=_build_openelm,
    classes=("ForCausalLM", "Model"),
    unnamed_class="ForCausalLM",
    context_field="max_position_embeddings",
    defaults={"share_input_output_layers": True},
    names={
        "hidden_size": ("model_dim",),
        "num_hidden_layers": ("num_transformer_layers",),
        "max_position_embeddings": ("max_context_length",),
        "tie_word_embeddings": ("share_input_output_layers",),
    },
)
"""OpenELM, whose code is published beside its weights."""
