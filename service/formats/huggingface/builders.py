"""Families that one description does not suffice for: their layers are listed individually in a file."""

from collections.abc import Mapping

from service.formats.huggingface import ngrams, patterns
from service.formats.huggingface.decoders import (
    AttentionOptions,
    DecoderFamily,
    ExpertLayout,
    assemble_architecture,
    build_architecture,
    build_layers,
    read_key_value_heads,
)
from service.formats.huggingface.mixers import gemma, recurrent, residuals
from service.formats.huggingface.reader import (
    ConfigReader,
    build_blocks,
    build_invalid_error,
    collapse_layer_lists,
    compute_head_size,
)
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture, LayerBlock, ModelLayer
from service.planning.models.layers import (
    Attention,
    EmbeddingTable,
    FeedForward,
    LearnedVectors,
    Linear,
    Normalization,
    SimpleLayer,
)


def build_nemotron_h(reader: ConfigReader, suffix: str) -> Architecture:
    """Nemotron-H: each layer is one norm and one of Mamba 2, attention, feed-forward or experts."""
    kinds = patterns.list_nemotron_kinds(reader)
    if reader.read_flag("mlp_bias") and reader.has_value("moe_latent_size"):
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED", "/mlp_bias", "a bias of latent experts is not known here"
        )
    width, shared = "moe_intermediate_size", "moe_shared_expert_intermediate_size"
    family = DecoderFamily(
        heads=AttentionOptions(bias=False),
        linear=recurrent.build_nemotron_mamba,
        kinds=lambda _reader, _depth: kinds,
        blocks={"mlp": "norm ffn", "moe": "norm ffn", "full": "norm mixer", "linear": "norm mixer"},
        gated=False,
        experts=ExpertLayout(
            inner=width,
            layers=lambda _reader, _depth: [kind == "moe" for kind in kinds],
            gated=False,
            shared_size=shared,
            shared_bias="mlp_bias",
            latent="moe_latent_size",
        ),
    )
    counted = ConfigReader(
        {**reader.config, "num_hidden_layers": len(kinds)}, reader.defaults, reader.names, reader.defaulted
    )
    return build_architecture(counted, suffix, family)


def build_hyper_connected(reader: ConfigReader, suffix: str, family: DecoderFamily) -> Architecture:
    """DeepSeek-V4 and Hy4: in front of the last norm their streams become one."""
    hidden, streams = reader.read_size("hidden_size"), reader.read_size("hc_mult")
    *blocks, norm = build_layers(reader, family)
    joined = Linear(input_size=streams * hidden, output_size=streams, bias=True)
    layers = (*blocks, joined, LearnedVectors(purpose="scale", rows=1, size=1), norm)
    return assemble_architecture(reader, suffix, family, layers, hidden)


def build_ngram_decoder(reader: ConfigReader, suffix: str, family: DecoderFamily) -> Architecture:
    """Qwen3.8-Flash-Next: tables of n-grams in front, and behind a mixture of the streams for a norm."""
    behind = ngrams.build_gated_residual(reader, family, "", injects=False)
    layers = (*ngrams.build_ngram_tables(reader), *build_layers(reader, family), *behind)
    return assemble_architecture(reader, suffix, family, layers, reader.read_size("hidden_size"))


def build_gemma_4(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 4, with the table that gives each layer an input of its own where there is one."""
    family = DecoderFamily(
        attention=gemma.build_gemma_4_attention,
        kinds=patterns.list_gemma_4_kinds,
        block="norm mixer norm norm ffn norm token_input",
        parts={"ffn": gemma.build_gemma_4_feed_forward, "token_input": gemma.build_gemma_4_token_input},
        bias=False,
    )
    layers = (*_build_token_inputs(reader), *build_layers(reader, family))
    return assemble_architecture(reader, suffix, family, layers, reader.read_size("hidden_size"))


def _build_token_inputs(reader: ConfigReader) -> tuple[ModelLayer, ...]:
    """The table that gives each layer an input of its own for each token, where there is one."""
    hidden, width = reader.read_size("hidden_size"), reader.read_count("hidden_size_per_layer_input")
    if not width:
        return ()
    all_layers = width * reader.read_depth("num_hidden_layers")
    return (
        EmbeddingTable(rows=reader.read_size("vocab_size_per_layer_input"), size=all_layers),
        Linear(input_size=hidden, output_size=all_layers),
        Normalization(size=width),
    )


def build_hunyuan_experts(reader: ConfigReader, suffix: str, family: DecoderFamily) -> Architecture:
    """Hunyuan with experts, whose published files state some numbers for every layer."""
    names = ("intermediate_size", "moe_intermediate_size", "moe_topk", "num_experts", "num_shared_expert")
    return build_architecture(collapse_layer_lists(reader, *names), suffix, family)


def build_gemma_3n(reader: ConfigReader, suffix: str) -> Architecture:
    """Gemma 3n: several streams of which one passes each layer, and an input of each layer's own."""
    family = DecoderFamily(
        heads=AttentionOptions(norm="head"),
        attention=gemma.build_gemma_3n_attention,
        kinds=patterns.list_gemma_3n_kinds,
        block="updates norm laurel mixer norm norm ffn norm token_input",
        parts={
            "laurel": gemma.build_laurel,
            "token_input": gemma.build_gemma_3n_token_input,
            "updates": gemma.build_alternating_updates,
        },
        bias=False,
    )
    reader = collapse_layer_lists(reader, "intermediate_size")
    hidden = reader.read_size("hidden_size")
    others = reader.read_size("altup_num_inputs") - 1
    # Matrices that make the other streams of the first, and the first of them.
    streams = (Linear(input_size=hidden, output_size=hidden, count=others),) if others else ()
    layers = (*_build_token_inputs(reader), *streams, *build_layers(reader, family), *streams)
    return assemble_architecture(reader, suffix, family, layers, hidden)


def build_kimi_linear(reader: ConfigReader, suffix: str, family: DecoderFamily) -> Architecture:
    """Kimi Linear, and Kimi K3, where each part and the head attend to what earlier blocks have added up."""
    *layers, norm = build_layers(reader, family)
    if reader.read_optional_size("attn_res_block_size"):
        layers += residuals.build_attention_residual(reader, family, "")
    return assemble_architecture(reader, suffix, family, (*layers, norm), reader.read_size("hidden_size"))


def build_zamba(reader: ConfigReader, suffix: str) -> Architecture:
    """Zamba: Mamba 1 with one transformer layer that several places share, before a matrix of their own."""
    hidden = reader.read_size("hidden_size")
    (mamba,) = recurrent.build_hybrid_mamba(reader, DecoderFamily(), "linear")
    wide = reader.read_optional_size("attention_hidden_size") or 2 * hidden
    heads = reader.read_size("num_attention_heads")
    size = reader.read_optional_size("attention_head_dim")
    size = size or compute_head_size(wide, heads, "num_attention_heads")
    shared = _build_shared_layer(reader, wide, size, bias=False)
    kinds = patterns.list_zamba_kinds(reader, reader.read_depth("num_hidden_layers"))
    matrix = (Linear(input_size=hidden, output_size=hidden),)
    return _assemble_shared(reader, suffix, kinds, shared, own=matrix, mamba=mamba)


def build_zamba_2(reader: ConfigReader, suffix: str) -> Architecture:
    """Zamba 2: Mamba 2 with ``num_mem_blocks`` shared layers in turn, and adapters of each place's own."""
    hidden = reader.read_size("hidden_size")
    wide, inner = 2 * hidden, reader.read_optional_size("intermediate_size") or 4 * hidden
    rank, bias = reader.read_size("adapter_rank"), reader.read_flag("add_bias_linear")
    size = compute_head_size(wide, reader.read_size("num_attention_heads"), "num_attention_heads")
    shared = _build_shared_layer(reader, wide, size, bias=bias)
    own = [Linear(input_size=hidden, output_size=rank), Linear(input_size=rank, output_size=2 * inner)]
    if reader.read_flag("use_shared_attention_adapter"):
        own += 3 * [Linear(input_size=wide, output_size=rank), Linear(input_size=rank, output_size=wide)]
    own.append(Linear(input_size=hidden, output_size=hidden))
    kinds = patterns.list_zamba_2_kinds(reader, reader.read_depth("num_hidden_layers"))
    turns, own_layers, mamba = (
        reader.read_size("num_mem_blocks"),
        tuple(own),
        recurrent.build_zamba_2_mamba(reader),
    )
    return _assemble_shared(reader, suffix, kinds, shared, turns=turns, own=own_layers, mamba=mamba)


def _build_shared_layer(reader: ConfigReader, wide: int, size: int, *, bias: bool) -> tuple[SimpleLayer, ...]:
    """Attention over hidden state and embedding side by side, then a feed-forward."""
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    inner = reader.read_optional_size("intermediate_size") or 4 * hidden
    return (
        Normalization(size=wide),
        Attention(
            hidden_size=wide,
            query_heads=heads,
            key_value_heads=read_key_value_heads(reader, heads),
            head_size=size,
            output_size=hidden,
            dropout=reader.has_dropout("attention_dropout"),
        ),
        Normalization(size=hidden),
        FeedForward(hidden_size=hidden, inner_size=inner, gated=True, bias=bias),
    )


def _assemble_shared(
    reader: ConfigReader,
    suffix: str,
    kinds: list[str],
    shared: tuple[SimpleLayer, ...],
    *,
    own: tuple[SimpleLayer, ...],
    mamba: SimpleLayer,
    turns: int = 1,
) -> Architecture:
    """The layers in order; behind the ``turns`` that shared ones take, they bring no weights."""
    if not reader.read_flag("tie_word_embeddings"):
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED",
            "/tie_word_embeddings",
            "the class shares no layer without tied tables; that is not known here",
        )
    hidden = reader.read_size("hidden_size")
    norm = Normalization(size=hidden)
    layers: list[ModelLayer] = []
    places = 0
    for kind in kinds:
        if kind == "hybrid":
            layers.append(LayerBlock(layers=shared, reused=places >= turns))
            layers.append(LayerBlock(layers=(*own, norm, mamba)))
            places += 1
        else:
            layers.append(LayerBlock(layers=(norm, mamba)))
    return assemble_architecture(reader, suffix, DecoderFamily(), (*layers, norm), hidden)


def _compute_deci_width(reader: ConfigReader, hidden: int) -> int:
    """Two thirds of ``ffn_mult`` doubled times the width, rounded up to 256."""
    return -(-int(2 * reader.read_factor("ffn_mult") * hidden / 3) // 256) * 256


def _build_deci_layer(reader: ConfigReader, block: object, name: str) -> tuple[SimpleLayer, ...]:
    """One layer of a Llama-Nemotron: what is left of attention and feed-forward, each with its norm."""
    if not isinstance(block, Mapping):
        raise build_invalid_error(name, "each entry of block_configs describes a layer")
    hidden, norm = reader.read_size("hidden_size"), Normalization(size=reader.read_size("hidden_size"))
    parts: list[SimpleLayer] = []
    for part in ("attention", "ffn"):
        given = block.get(part)
        if not isinstance(given, Mapping):
            raise build_invalid_error(f"{name}/{part}", f"{part} is missing")
        inner = ConfigReader(given, {})
        if inner.read_flag("no_op"):
            continue
        parts.append(norm)
        if inner.read_flag("replace_with_linear"):
            parts.append(Linear(input_size=hidden, output_size=hidden))
        elif part == "ffn":
            width = _compute_deci_width(inner, hidden)
            parts.append(FeedForward(hidden_size=hidden, inner_size=width, gated=True))
        else:
            heads, shared = reader.read_size("num_attention_heads"), inner.read_size("n_heads_in_group")
            if heads % shared:
                raise build_invalid_error(
                    f"{name}/attention/n_heads_in_group", "does not divide the query heads"
                )
            size = reader.read_optional_size("head_dim") or compute_head_size(
                hidden, heads, "num_attention_heads"
            )
            window = inner.read_optional_size("window_length")
            parts.append(
                Attention(
                    hidden_size=hidden,
                    query_heads=heads,
                    key_value_heads=heads // shared,
                    head_size=size,
                    window_tokens=window,
                )
            )
    return tuple(parts)


def build_deci(reader: ConfigReader, suffix: str) -> Architecture:
    """Llama-Nemotron: Llama with layers that a search has narrowed, replaced or left out."""
    reader.refuse_flags("attention_bias", "mlp_bias")
    blocks = reader.config.get("block_configs")
    depth = reader.read_depth("num_hidden_layers")
    if not isinstance(blocks, list) or len(blocks) != depth:
        raise build_invalid_error("block_configs", "block_configs must describe every layer")
    contents = [
        _build_deci_layer(reader, block, f"block_configs/{index}") for index, block in enumerate(blocks)
    ]
    norm = Normalization(size=reader.read_size("hidden_size"))
    # A layer of which nothing is left does nothing.
    layers: tuple[ModelLayer, ...] = (*build_blocks([content for content in contents if content]), norm)
    return assemble_architecture(reader, suffix, DecoderFamily(), layers, reader.read_size("hidden_size"))
