"""Kinds of layers: the rules by which configurations lay out windows, experts and hybrids."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from service.formats.huggingface.reader import LARGEST_DEPTH, ConfigReader, build_invalid_error
from service.planning.errors import PlanningError

LARGEST_COMPRESSION = 2**20
"""Largest number of tokens that one entry of a compressed cache may stand for."""

LayerKindsPattern: TypeAlias = Callable[[ConfigReader, int], list[str]]
"""The kind of each layer: ``full``, ``window``, ``chunk``, ``linear``, ``convolution`` or ``hybrid``."""

SparseLayersPattern: TypeAlias = Callable[[ConfigReader, int], list[bool]]
"""Returns for each layer true if it has experts in place of one feed-forward."""

KINDS = {
    "full_attention": "full",
    "attention": "full",
    "indexed_attention": "full",
    "compressed_attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunk",
    "linear_attention": "linear",
    "mamba": "linear",
    "mamba2": "linear",
    "recurrent": "linear",
    "conv": "convolution",
    "hybrid": "hybrid",
}


def read_layer_kinds(reader: ConfigReader, depth: int) -> list[str] | None:
    """The kinds that ``layer_types`` names; ``None`` when it is left out."""
    words = reader.read_words("layer_types", depth)
    if words is None:
        return None
    unknown = sorted(set(words) - KINDS.keys())
    if unknown:
        raise PlanningError(
            "CONFIG_FIELD_UNSUPPORTED",
            f"/{reader.resolve_spelling('layer_types')}",
            f"a kind of layer is not known here; known are {', '.join(KINDS)}",
        )
    return [KINDS[word] for word in words]


def list_full_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Full attention everywhere."""
    del reader
    return ["full"] * depth


def list_linear_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """No attention at all."""
    del reader
    return ["linear"] * depth


def list_window_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """A window everywhere if there is one: Mistral's rule."""
    return (
        read_layer_kinds(reader, depth)
        or ["window" if reader.read_optional_size("sliding_window") else "full"] * depth
    )


def list_late_window_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """A switch, and the layers from ``max_window_layers`` on or as listed: Qwen's rule."""
    if not reader.read_flag("use_sliding_window"):
        return ["full"] * depth
    kinds = read_layer_kinds(reader, depth)
    if kinds:
        return kinds
    first = reader.read_count("max_window_layers")
    return ["window" if index >= first else "full" for index in range(depth)]


def build_periodic_kinds(field: str, period: int, other: str = "window") -> LayerKindsPattern:
    """Each ``period``-th layer is full, the rest are ``other``; null or 0 makes all of them full."""

    def list_kinds(reader: ConfigReader, depth: int) -> list[str]:
        named = read_layer_kinds(reader, depth)
        if named:
            return named
        if other == "window" and not reader.read_optional_size("sliding_window"):
            return ["full"] * depth
        step = reader.read_size_or(field, period)
        return [other if (index + 1) % step else "full" for index in range(depth)]

    return list_kinds


def build_default_kinds(kind: str) -> LayerKindsPattern:
    """As listed, else all of one kind."""
    return lambda reader, depth: read_layer_kinds(reader, depth) or [kind] * depth


def list_alternating_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """MiniMax: full attention in the even layers."""
    return read_layer_kinds(reader, depth) or ["linear" if index % 2 else "full" for index in range(depth)]


def list_offset_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Jamba: full attention once in ``attn_layer_period`` layers."""
    period, offset = reader.read_size("attn_layer_period"), reader.read_count("attn_layer_offset")
    return ["full" if index % period == offset else "linear" for index in range(depth)]


def list_mimo_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """MiMo: the first layer and each sixth are full."""
    kinds = ["window" if index and (index + 1) % 6 else "full" for index in range(depth)]
    return read_layer_kinds(reader, depth) or kinds


def list_distinct_last_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """The last layer is of a kind of its own."""
    del reader
    return ["full"] * (depth - 1) + ["last"]


def list_zamba_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Zamba: attention before the layers ``attn_layer_offset`` of each period, counted from the third on."""
    named = read_layer_kinds(reader, depth)
    if named:
        return named
    period, offset = reader.read_size("attn_layer_period"), reader.read_count("attn_layer_offset")
    kinds = ["linear", "linear", "hybrid"]
    kinds += ["hybrid" if index % period == offset else "linear" for index in range(depth - 3)]
    return kinds[:depth]


_ZAMBA_2 = ["linear"] + (["linear"] * 5 + ["hybrid"]) * 7 + ["linear"] * 4
_ZAMBA_2 += ["hybrid"] + ["linear"] * 3 + ["hybrid"] + ["linear"] * 2


def list_zamba_2_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Zamba 2: as listed, else the order of the 2.7B model."""
    named = read_layer_kinds(reader, depth)
    if named is None and depth != len(_ZAMBA_2):
        raise PlanningError(
            "CONFIG_FIELD_MISSING", "/layers_block_type", "the kinds of the layers are missing"
        )
    return named or _ZAMBA_2


def list_olmo_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """OLMo hybrid: a full layer in four, the last one if there is none."""
    kinds = build_periodic_kinds("", 4, "linear")(reader, depth)
    return kinds if "full" in kinds else [*kinds[:-1], "full"]


def list_convolution_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """LFM3: full attention, convolution, a window, convolution; the first layer is a convolution."""
    period = ("window", "convolution", "full", "convolution")
    kinds = ["convolution" if index == 0 else period[index % 4] for index in range(depth)]
    return read_layer_kinds(reader, depth) or kinds


def list_kimi_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Kimi Linear: as ``linear_attn_config`` numbers the layers from 1, else every fourth after the first."""
    named = read_layer_kinds(reader, depth)
    if named:
        return named
    nested = reader.config.get("linear_attn_config")
    if isinstance(nested, Mapping) and "full_attn_layers" in nested:
        full_layers = ConfigReader(nested, {}).read_indexes("full_attn_layers")
        return ["full" if index + 1 in full_layers else "linear" for index in range(depth)]
    return ["full" if index and not index % 4 else "linear" for index in range(depth)]


def build_indexed_kinds(field: str, other: str) -> LayerKindsPattern:
    """Full attention in the layers that a field numbers."""

    def list_kinds(reader: ConfigReader, depth: int) -> list[str]:
        named = read_layer_kinds(reader, depth)
        if named:
            return named
        if field not in reader.config and other == "convolution":
            return ["full"] * depth
        indexes = reader.read_indexes(field)
        return ["full" if index in indexes else other for index in range(depth)]

    return list_kinds


def build_repeated_kinds(field: str, default: tuple[str, ...]) -> LayerKindsPattern:
    """A list of kinds that is repeated over the layers: RecurrentGemma."""

    def list_kinds(reader: ConfigReader, depth: int) -> list[str]:
        words = reader.config.get(field, list(default))
        if not isinstance(words, list) or not words or not set(words) <= {"recurrent", "attention"}:
            raise build_invalid_error(field, f"{field} must be a list of recurrent and attention")
        return ["linear" if words[index % len(words)] == "recurrent" else "window" for index in range(depth)]

    return list_kinds


def mark_all_sparse(reader: ConfigReader, depth: int) -> list[bool]:
    """Experts in every layer."""
    del reader
    return [True] * depth


def _read_known_words(reader: ConfigReader, name: str, depth: int, known: Iterable[str]) -> list[str] | None:
    words = reader.read_words(name, depth)
    if words is not None and not set(words) <= set(known):
        raise build_invalid_error(name, f"known {name} are {', '.join(known)}")
    return words


def _read_marks(marks: list[object], depth: int, name: str) -> list[bool]:
    if len(marks) < depth or not all(isinstance(mark, int) and mark in (0, 1) for mark in marks):
        raise build_invalid_error(name, f"{name} must be 0 or 1 for every layer")
    return [bool(mark) for mark in marks[:depth]]


def list_block_scorer_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """MiniMax-M3: layers whose scorer picks blocks of tokens are called sparse."""
    words = _read_known_words(reader, "layer_types", depth, ("full_attention", "minimax_m3_sparse"))
    if words is not None:
        return ["sparse" if word == "minimax_m3_sparse" else "full" for word in words]
    stated = reader.read_value("sparse_attention_config")
    marks = stated.get("sparse_attention_freq") if isinstance(stated, Mapping) else None
    if marks is None:
        return ["full"] * depth
    if not isinstance(marks, list):
        raise build_invalid_error("sparse_attention_config", "sparse_attention_freq must be a list")
    return ["sparse" if mark else "full" for mark in _read_marks(marks, depth, "sparse_attention_config")]


def build_sparse_after_dense(field: str, default: int = 0) -> SparseLayersPattern:
    """As ``mlp_layer_types`` lists them, else experts in all but the first layers."""

    def mark_sparse(reader: ConfigReader, depth: int) -> list[bool]:
        words = _read_known_words(reader, "mlp_layer_types", depth, ("dense", "sparse"))
        if words is not None:
            return [word == "sparse" for word in words]
        marks = reader.read_value("moe_layer_freq")
        if isinstance(marks, list):
            return _read_marks(marks, depth, "moe_layer_freq")
        if marks not in (None, 1):
            raise PlanningError(
                "CONFIG_FIELD_UNSUPPORTED", "/moe_layer_freq", "only a moe_layer_freq of 1 is known here"
            )
        first = reader.read_count(field) if reader.read_value(field) is not None else default
        return [index >= first for index in range(depth)]

    return mark_sparse


def mark_stepped_sparse(reader: ConfigReader, depth: int) -> list[bool]:
    """Qwen: every ``decoder_sparse_step``-th layer that ``mlp_only_layers`` does not list."""
    step = reader.read_size_or("decoder_sparse_step", 1)
    dense = reader.read_indexes("mlp_only_layers")
    experts = reader.read_count("num_experts") > 0
    return [experts and index not in dense and not (index + 1) % step for index in range(depth)]


def mark_periodic_sparse(reader: ConfigReader, depth: int) -> list[bool]:
    """Jamba: once in ``expert_layer_period`` layers."""
    period, offset = reader.read_size("expert_layer_period"), reader.read_count("expert_layer_offset")
    return [index % period == offset for index in range(depth)]


def mark_interval_sparse(reader: ConfigReader, depth: int) -> list[bool]:
    """ERNIE: every ``moe_layer_interval``-th layer between two of them."""
    step, first = reader.read_size("moe_layer_interval"), reader.read_count("moe_layer_start_index")
    last = reader.read_value("moe_layer_end_index")
    if last in (None, -1):
        last = depth - 1
    if not isinstance(last, int):
        raise build_invalid_error("moe_layer_end_index", "moe_layer_end_index must be an integer")
    return [not (index + 1) % step and first <= index <= last for index in range(depth)]


def mark_interleaved_sparse(reader: ConfigReader, depth: int) -> list[bool]:
    """Llama 4: the layers that ``moe_layers`` lists, else every ``interleave_moe_layer_step``-th."""
    if reader.has_value("moe_layers"):
        layers = reader.read_indexes("moe_layers")
        return [index in layers for index in range(depth)]
    step = reader.read_size("interleave_moe_layer_step")
    return [not (index + 1) % step for index in range(depth)]


def list_dots_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """dots.llm1: a window from ``max_window_layers`` on, if there is one."""
    first = reader.read_count("max_window_layers")
    sized = reader.read_optional_size("sliding_window") is not None
    return read_layer_kinds(reader, depth) or [
        "window" if sized and index >= first else "full" for index in range(depth)
    ]


def list_spread_scorer_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Hy4: a scorer in the first layer, and from the second on in every fourth."""
    if reader.has_value("indexer_types"):
        return list_scorer_kinds(reader, depth)
    return ["shared" if index and (index - 1) % 4 else "full" for index in range(depth)]


def list_scorer_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Sparse attention: layers that take the tokens of an earlier layer's scorer are called shared."""
    named = reader.read_words("indexer_types", depth) or ["full"] * depth
    return ["shared" if name == "shared" else "full" for name in named]


_POOLED = {
    "linear_attention": "linear",
    "full_attention": "full",
    "indexed_attention": "full",
    "deepseek_sparse_attention": "full",
}


def list_pooled_scorer_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """GLM-5.3-Flash: attention in every fourth layer, with a scorer of its own or that of an earlier one."""
    words = _read_known_words(reader, "layer_types", depth, _POOLED)
    if words is None:
        words = ["linear_attention" if (index + 1) % 4 else "full_attention" for index in range(depth)]
    return [
        scorer if _POOLED[word] == "full" else "linear"
        for word, scorer in zip(words, list_scorer_kinds(reader, depth), strict=True)
    ]


_COMPRESSED = {
    "sliding_attention": "window",
    "compressed_sparse_attention": "sparse",
    "heavily_compressed_attention": "compressed",
}
_RATIOS = {0: "window", 1: "window", 4: "sparse", 128: "compressed"}
_RATES = {
    "sparse": ("compressed_sparse_attention", "compress_rate_csa", 4),
    "compressed": ("heavily_compressed_attention", "compress_rate_hca", 128),
}


def list_compressed_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """DeepSeek-V4: layers by name, else by the tokens of an entry, else a scorer in every other layer."""
    words = _read_known_words(reader, "layer_types", depth, _COMPRESSED)
    if words is not None:
        return [_COMPRESSED[word] for word in words]
    ratios = reader.read_value("compress_ratios")
    if ratios is None:
        return ["sparse" if index % 2 and index > 1 else "compressed" for index in range(depth)]
    if not isinstance(ratios, list) or len(ratios) < depth:
        raise build_invalid_error("compress_ratios", "compress_ratios must give one number for every layer")
    # Further numbers are those of layers of multi-token prediction.
    if not all(isinstance(each, int) and each in _RATIOS for each in ratios):
        raise build_invalid_error(
            "compress_ratios", f"known compress_ratios are {', '.join(map(str, _RATIOS))}"
        )
    return [_RATIOS[each] for each in ratios[:depth]]


def read_compression(reader: ConfigReader, kind: str) -> int:
    """Tokens that an entry of a compressed layer stands for."""
    name, legacy, default = _RATES[kind]
    rates = reader.read_value("compress_rates")
    found = rates.get(name) if isinstance(rates, Mapping) else None
    if found is None:
        return reader.read_size_or(legacy, default)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= LARGEST_COMPRESSION:
        raise build_invalid_error(
            "compress_rates", f"{name} must be an integer from 1 to {LARGEST_COMPRESSION}"
        )
    return found


def list_chunk_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Llama 4: chunks wherever positions rotate, which ``no_rope_layers`` marks with 1."""
    named = read_layer_kinds(reader, depth)
    if named:
        return named
    marks = reader.read_value("no_rope_layers")
    if not marks:
        period = reader.read_size("no_rope_layer_interval")
        return ["chunk" if (index + 1) % period else "full" for index in range(depth)]
    if not isinstance(marks, list) or len(marks) != depth:
        raise build_invalid_error("no_rope_layers", "no_rope_layers must mark every layer")
    return ["chunk" if mark else "full" for mark in marks]


def list_cohere_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Cohere 2 with experts: dense first layers have a period of their own."""
    named = read_layer_kinds(reader, depth)
    if named:
        return named
    first = reader.read_count("first_k_dense_replace")
    ahead, behind = (
        reader.read_size("prefix_dense_sliding_window_pattern"),
        reader.read_size("sliding_window_pattern"),
    )
    if first > depth:
        raise build_invalid_error("first_k_dense_replace", "first_k_dense_replace must be at most the layers")
    steps = [(index + 1) % ahead for index in range(first)]
    steps += [(index + 1) % behind for index in range(depth - first)]
    return ["window" if step else "full" for step in steps]


def list_laguna_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Laguna: kinds as listed, else full, each with its own number of query heads where those are listed."""
    kinds = read_layer_kinds(reader, depth) or ["full"] * depth
    heads = reader.read_value("num_attention_heads_per_layer")
    if heads is None:
        return kinds
    name = "num_attention_heads_per_layer"
    if not isinstance(heads, list) or len(heads) != depth:
        raise build_invalid_error(name, f"{name} must have a number for every layer")
    if not all(isinstance(number, int) and 0 < number <= LARGEST_DEPTH for number in heads):
        raise build_invalid_error(name, f"{name} must be a list of positive integers")
    return [f"{kind} {number}" for kind, number in zip(kinds, heads, strict=True)]


def list_gpt_neo_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """GPT-Neo: ``[[["global", "local"], 12]]`` repeats two kinds twelve times."""
    groups = reader.config.get("attention_types")
    if groups is None:
        groups = [[["global", "local"], depth // 2]]
    kinds: list[str] = []
    try:
        for names, repeats in groups:  # type: ignore[attr-defined]
            if len(kinds) + len(names) * repeats > depth:
                raise build_invalid_error(
                    "attention_types", "attention_types must name a kind for every layer"
                )
            kinds += [{"global": "full", "local": "window"}[name] for name in names] * repeats
    except (KeyError, TypeError, ValueError) as error:
        raise build_invalid_error(
            "attention_types", "attention_types must list kinds with their repeats"
        ) from error
    if len(kinds) != depth:
        raise build_invalid_error("attention_types", "attention_types must name a kind for every layer")
    return kinds


_NEMOTRON = {"M": "linear", "*": "full", "-": "mlp", "E": "moe"}
_NEMOTRON_WORDS = {
    "linear_attention": "linear",
    "mamba": "linear",
    "full_attention": "full",
    "attention": "full",
    "mlp": "mlp",
    "moe": "moe",
}


def list_nemotron_kinds(reader: ConfigReader) -> list[str]:
    """Nemotron-H: a letter or a word a layer."""
    words = reader.config.get("layers_block_type", reader.config.get("layer_types"))
    letters = reader.config.get("hybrid_override_pattern")
    name, known = "layers_block_type", _NEMOTRON_WORDS
    if words is None and letters is not None:
        name, known, words = "hybrid_override_pattern", _NEMOTRON, letters
    if words is None:
        raise PlanningError("CONFIG_FIELD_MISSING", f"/{name}", "the kinds of the layers are missing")
    if not isinstance(words, list | str) or not words or len(words) > LARGEST_DEPTH:
        raise build_invalid_error(name, f"{name} must name a kind for every layer")
    if not all(isinstance(word, str) and word in known for word in words):
        raise build_invalid_error(name, f"a kind of layer is not known here; known are {' '.join(known)}")
    return [known[word] for word in words]


def list_gemma_4_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Gemma 4: a full layer in six, the last one always, and the last ones read what earlier ones keep."""
    kinds = read_layer_kinds(reader, depth) or [
        "window" if (index + 1) % 6 else "full" for index in range(depth)
    ]
    kinds[-1] = "full"
    return _mark_shared(reader, kinds)


def list_gemma_3n_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """Gemma 3n: a full layer in five, and the last ones read what earlier ones keep."""
    kinds = read_layer_kinds(reader, depth) or [
        "window" if (index + 1) % 5 else "full" for index in range(depth)
    ]
    return _mark_shared(reader, kinds)


def _mark_shared(reader: ConfigReader, kinds: list[str]) -> list[str]:
    """Marks the last layers, which keep no keys and values of their own."""
    depth, shared = len(kinds), reader.read_count("num_kv_shared_layers")
    if shared >= depth:
        raise build_invalid_error("num_kv_shared_layers", "num_kv_shared_layers must be less than the layers")
    own = depth - shared
    if not set(kinds[own:]) <= set(kinds[:own]):
        raise build_invalid_error(
            "num_kv_shared_layers", "no earlier layer of the kind keeps keys and values to share"
        )
    return [kind if index < own else f"{kind} shared" for index, kind in enumerate(kinds)]
