"""Storage format of a checkpoint's weights, from the ``quantization_config`` of its ``config.json``.

Supported are GPTQ, AWQ, AutoRound, FP8 (a tensor, a block), FBGEMM FP8, bitsandbytes, MXFP4,
compressed-tensors, ModelOpt (FP8, NVFP4), EETQ, HQQ and MLX, with their groups, zero points and the modules
that they leave alone, and the file types of llama.cpp. Embedding tables, norms and routers stay wide under
all of them but MLX and llama.cpp, heads unless the configuration packs them.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Final, NamedTuple

from service.formats import module_patterns as patterns
from service.planning.errors import PlanningError
from service.planning.hardware.storage import GGUF_FORMATS, MatrixPath, MatrixScheme, ModelFacts, WeightFormat
from service.planning.hardware.storage.named import (
    ALWAYS_WIDE,
    EXPERT_MODULES,
    INT8_COLUMNS,
    MXFP4,
    NF4,
    NF4_DOUBLE,
    NVFP4,
    WIDE,
    build_awq,
    build_fp8_blocks,
    build_fp8_tensor,
    build_gptq,
    build_scaled_columns,
)
from service.planning.precision import NumberFormat

_EXPERTS = ("mlp.experts", "block_sparse_moe.experts", "feed_forward.experts", "mixer.experts")
_SHARED = ("mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert", "mixer.shared_experts")
_FORWARD = ("mlp", "feed_forward", "ffn", "mixer")
_LINEAR = ("linear_attn", "self_attn")
_SELF = ("self_attn", "attn", "attention", "self_attention")


def _join_names(parents: Iterable[str], *names: str) -> tuple[str, ...]:
    return tuple(f"{parent}.{name}" for parent in parents for name in names)


MODULE_NAMES: Mapping[str, tuple[str, ...]] = {
    "attention.query": _join_names(_SELF, "q_proj", "qkv_proj", "c_attn", "query_key_value", "wq"),
    "attention.key": _join_names(_SELF, "k_proj", "qkv_proj", "c_attn", "query_key_value", "wk"),
    "attention.value": _join_names(_SELF, "v_proj", "qkv_proj", "c_attn", "query_key_value", "wv"),
    "attention.output": _join_names(_SELF, "o_proj", "out_proj", "c_proj", "dense", "wo"),
    "attention.index_query": _join_names(_SELF, "indexer.q_proj", "index_q_proj"),
    "attention.index_key": _join_names(_SELF, "indexer.k_proj", "index_k_proj"),
    "latent_attention.query": _join_names(_SELF, "q_proj"),
    "latent_attention.query_down": _join_names(_SELF, "q_a_proj", "fused_qkv_a_proj"),
    "latent_attention.query_up": _join_names(_SELF, "q_b_proj"),
    "latent_attention.key_value_down": _join_names(_SELF, "kv_a_proj_with_mqa", "fused_qkv_a_proj"),
    "latent_attention.key_value_up": _join_names(_SELF, "kv_b_proj"),
    "latent_attention.output": _join_names(_SELF, "o_proj"),
    "attention.gate": _join_names(_SELF, "q_proj", "g_proj", "gate_proj"),
    "latent_attention.gate": _join_names(_SELF, "g_proj", "gate_proj"),
    "latent_attention.index_query": _join_names(_SELF, "indexer.wq_b"),
    "latent_attention.index_key": _join_names(_SELF, "indexer.wk"),
    "latent_attention.index_weight": _join_names(_SELF, "indexer.weights_proj"),
    "compressed_attention.query_down": _join_names(_SELF, "q_a_proj", "wq_a"),
    "compressed_attention.query_up": _join_names(_SELF, "q_b_proj", "wq_b"),
    "compressed_attention.key_value": _join_names(_SELF, "kv_proj", "wkv"),
    "compressed_attention.output_down": _join_names(_SELF, "o_a_proj", "wo_a"),
    "compressed_attention.output_up": _join_names(_SELF, "o_b_proj", "wo_b"),
    "compressed_attention.index_query": _join_names(
        _SELF, "compressor.indexer.q_b_proj", "indexer.q_b_proj", "indexer.wq_b"
    ),
    "linear_attention.query_key_value": _join_names(_LINEAR, "in_proj_qkvz", "in_proj_qkv", "q_proj"),
    "linear_attention.gate": _join_names(_LINEAR, "in_proj_qkvz", "in_proj_z", "g_proj"),
    "linear_attention.step": _join_names(_LINEAR, "b_proj"),
    "linear_attention.forget_down": _join_names(_LINEAR, "f_a_proj"),
    "linear_attention.forget_up": _join_names(_LINEAR, "f_b_proj"),
    "linear_attention.gate_down": _join_names(_LINEAR, "g_a_proj"),
    "linear_attention.gate_up": _join_names(_LINEAR, "g_b_proj"),
    "linear_attention.step_and_decay": _join_names(_LINEAR, "in_proj_ba", "in_proj"),
    "linear_attention.output": _join_names(_LINEAR, "out_proj", "o_proj"),
    "state_space.input": _join_names(("mixer", "mamba"), "in_proj"),
    "state_space.output": _join_names(("mixer", "mamba"), "out_proj"),
    "state_space.state_projection": _join_names(("mixer", "mamba"), "x_proj"),
    "state_space.step": _join_names(("mixer", "mamba"), "dt_proj"),
    "feed_forward.gate": _join_names(_FORWARD, "gate_proj", "gate_up_proj", "w1"),
    "feed_forward.up": _join_names(_FORWARD, "up_proj", "gate_up_proj", "w3", "c_fc", "fc1", "dense_h_to_4h"),
    "feed_forward.down": _join_names(_FORWARD, "down_proj", "w2", "c_proj", "fc2", "dense_4h_to_h"),
    "mixture_of_experts.router": ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router"),
    "mixture_of_experts.expert_gate": _join_names(_EXPERTS, "0.gate_proj", "gate_up_proj", "0.w1"),
    "mixture_of_experts.expert_up": _join_names(_EXPERTS, "0.up_proj", "gate_up_proj", "0.w3"),
    "mixture_of_experts.expert_down": _join_names(_EXPERTS, "0.down_proj", "down_proj", "0.w2"),
    "mixture_of_experts.shared_router": ("mlp.shared_expert_gate",),
    **{
        f"mixture_of_experts.shared_{name}": _join_names(_SHARED, f"{name}_proj")
        for name in ("gate", "up", "down")
    },
}
"""Names of the matrices of a layer in published checkpoints, below the layer's own name."""

_LAYER_PREFIX = re.compile(
    r"^(?:(?:language_model\.)?model\.(?:language_model\.)?layers|transformer\.h|backbone\.layers|layers)\."
)
_EXPRESSION_PARENTS = ("model.layers", "language_model.model.layers", "model.language_model.layers")
_HEAD_NAMES = ("lm_head",)
_NGRAM_TABLE = "ngram_embedding"

_MOST_LISTED = 5000
_MOST_WORK = 500_000
"""Bound on the work: distinguished layers, times the elements of all patterns and a constant for the rest."""
_WORK_OF_PATTERNS = 1000
"""Constant for the names of a layer, if there are patterns."""
_WORK_OF_A_LIST = 100
"""Constant for the lookup of the names in a list."""


@lru_cache(maxsize=1024)
def _split_module(module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the names of a module: any part of its name, and the paths from the layer down."""
    parts = module.split(".")
    inner = (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
    return tuple(inner), ("", *(".".join(parts[:j]) for j in range(1, len(parts) + 1)))


@dataclass(frozen=True)
class _ModulePatterns:
    """A list of modules: names or ends of names, globs, and ``re:`` expressions."""

    names: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    def merge_with(self, other: "_ModulePatterns") -> "_ModulePatterns":
        """Returns the union of both lists."""
        return _ModulePatterns(
            self.names | other.names, self.globs + other.globs, self.expressions + other.expressions
        )

    @property
    def by_layer(self) -> bool:
        """Returns true if the list may distinguish single layers."""
        named = any(name[:1].isdigit() for name in self.names)
        return named or bool(self.expressions) or any(re.search(r"\d", glob) for glob in self.globs)

    @cached_property
    def sequences(self) -> tuple[patterns.PatternSequence, ...]:
        """Elements of the patterns."""
        return *self._glob_sequences, *self._expression_sequences

    @cached_property
    def _glob_sequences(self) -> tuple[patterns.PatternSequence, ...]:
        return tuple(chain.from_iterable(map(patterns.parse_glob, self.globs)))

    @cached_property
    def _expression_sequences(self) -> tuple[patterns.PatternSequence, ...]:
        return tuple(chain.from_iterable(map(patterns.parse_expression, self.expressions)))

    @cached_property
    def _globs(self) -> patterns.PatternSet:
        return patterns.PatternSet(self._glob_sequences)

    @cached_property
    def _expressions(self) -> patterns.PatternSet:
        return patterns.PatternSet(self._expression_sequences)

    @cached_property
    def _of_layers(self) -> Mapping[str, frozenset[str]]:
        """Names below each single layer that the list mentions."""
        found: dict[str, set[str]] = {}
        for name in self.names:
            layer, _, below = name.partition(".")
            found.setdefault(layer, set()).add(below)
        return {layer: frozenset(below) for layer, below in found.items()}

    @cached_property
    def _states(self) -> dict[str, tuple[int, ...]]:
        return {}

    @cached_property
    def _known(self) -> dict[tuple[Hashable, str], bool]:
        return {}

    def build_layer_key(self, layer: str) -> Hashable:
        """Returns a key of ``layer``: the list treats layers with the same key alike."""
        states = self._states.get(layer)
        if states is None:
            states = self._states[layer] = tuple(self._enter_layer(layer))
        return layer if layer in self._of_layers else "", states

    def _enter_layer(self, layer: str) -> Iterable[int]:
        """Yields the states of the patterns before the name of a module."""
        within = f"{layer}." if layer else ""
        yield self._globs.advance_state(self._globs.start, within) if self.globs else 0
        if self.expressions:
            for parent in _EXPRESSION_PARENTS if layer else ("",):
                start = self._expressions.advance_state(
                    self._expressions.start, f"{parent}." if parent else ""
                )
                yield self._expressions.advance_state(start, within)

    def has_module(self, layer: str, module: str) -> bool:
        """Returns true if ``module`` of ``layer`` (empty outside layers) is in the list."""
        key = (self.build_layer_key(layer), module)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._has_name(layer, module) or self._has_pattern_match(layer, module)
        return known

    def _has_name(self, layer: str, module: str) -> bool:
        inner, above = _split_module(module)
        of_layer = self._of_layers.get(layer) if layer else None
        return not self.names.isdisjoint(inner) or bool(of_layer and not of_layer.isdisjoint(above))

    def _has_pattern_match(self, layer: str, module: str) -> bool:
        glob, *expressed = self._states[layer]
        return self._globs.is_match(self._globs.advance_state(glob, module)) or any(
            self._expressions.is_match(self._expressions.advance_state(state, module)) for state in expressed
        )


def _parse_modules(entries: object, pointer: str) -> _ModulePatterns:
    if entries is None:
        return _ModulePatterns()
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise _build_invalid_error(pointer, "must be a list of module names")
    if len(entries) > _MOST_LISTED:
        raise _build_invalid_error(pointer, f"must not be longer than {_MOST_LISTED}")
    plain = [entry for entry in entries if not entry.startswith("re:")]
    short = [_LAYER_PREFIX.sub("", entry.removesuffix(".weight")) for entry in plain]
    modules = _ModulePatterns(
        names=frozenset(entry for entry in short if "*" not in entry),
        globs=tuple(entry for entry in short if "*" in entry),
        expressions=tuple(entry.removeprefix("re:") for entry in entries if entry.startswith("re:")),
    )
    _check_patterns(modules, pointer)
    return modules


def _check_patterns(modules: _ModulePatterns, pointer: str) -> None:
    """Refuses patterns that are not supported or would take long, because callers send them."""
    many = f"holds patterns of more than {patterns.MOST_ELEMENTS} characters, alternatives written out"
    if sum(map(len, (*modules.globs, *modules.expressions))) > patterns.MOST_ELEMENTS:
        raise _build_invalid_error(pointer, many)
    elements = 0
    for expression in modules.expressions:
        try:
            elements += patterns.count_elements(patterns.parse_expression(expression))
        except patterns.PatternError as error:
            raise _build_invalid_error(pointer, f"holds an expression that {error}") from error
        if elements > patterns.MOST_ELEMENTS:
            raise _build_invalid_error(pointer, many)


def _build_invalid_error(pointer: str, detail: str) -> PlanningError:
    return PlanningError("CONFIG_FIELD_INVALID", pointer, f"{pointer.rsplit('/', 1)[-1]} {detail}")


class _SchemeRules(NamedTuple):
    """Schemes by module, first match first, and the modules that are left alone."""

    schemes: tuple[tuple[_ModulePatterns | None, MatrixScheme], ...]
    """Schemes by module; None stands for every matrix."""
    ignored: _ModulePatterns
    compute: NumberFormat
    experts_only: bool = False
    experts: MatrixScheme | None = None
    """Scheme of routed experts, where it differs from that of the other matrices."""
    head: bool = False
    """True if the language-model head is packed unless it is ignored."""
    table: bool = False
    """True if the token table is packed, and with it a head that is tied to it."""
    lookups: MatrixScheme | None = None
    """Scheme of tables of n-grams, where it differs from that of the token table."""

    def select_scheme(self, layer: str, names: Sequence[str]) -> MatrixScheme:
        """Returns the scheme of a matrix that may be called by any of ``names``."""
        if any(self.ignored.has_module(layer, name) for name in names):
            return WIDE
        for modules, scheme in self.schemes:
            if modules is None or any(modules.has_module(layer, name) for name in names):
                return scheme
        return WIDE

    @property
    def module_lists(self) -> tuple[_ModulePatterns, ...]:
        """Returns every list of modules."""
        return self.ignored, *(modules for modules, _ in self.schemes if modules)

    def check_work(self, layers: int, pointer: str) -> None:
        """Refuses lists and patterns that take long to evaluate for every layer that they distinguish."""
        lists = self.module_lists
        elements = sum(patterns.count_elements(modules.sequences) for modules in lists)
        asked = max(1, layers) if any(modules.by_layer for modules in lists) else 1
        work = len(lists) * _WORK_OF_A_LIST + (elements and elements + _WORK_OF_PATTERNS)
        if asked * work > _MOST_WORK:
            raise _build_invalid_error(
                pointer, f"has lists and patterns that are too long for {asked} layers"
            )


class _QuantizationReader(NamedTuple):
    """The fields of one quantisation configuration."""

    fields: Mapping[str, object]
    pointer: str

    def read_integer(self, *names: str, default: int | None = None, least: int = 1) -> int:
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1_000_000:  # noqa: PLR2004
                raise _build_invalid_error(
                    f"{self.pointer}/{name}", f"must be an integer of at least {least}"
                )
            return value
        if default is None:
            raise PlanningError(
                "CONFIG_FIELD_MISSING", f"{self.pointer}/{names[0]}", f"{names[0]} is missing"
            )
        return default

    def read_flag(self, *names: str, default: bool = False) -> bool:
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, bool):
                return value
            if value is not None:
                raise _build_invalid_error(f"{self.pointer}/{name}", "must be true or false")
        return default

    def read_modules(self, *names: str) -> _ModulePatterns:
        found = _ModulePatterns()
        for name in names:
            found = found.merge_with(_parse_modules(self.fields.get(name), f"{self.pointer}/{name}"))
        return found

    def read_block(self, name: str) -> tuple[int, int] | None:
        value = self.fields.get(name)
        if value is None:
            return None
        sides = value if isinstance(value, list) else []
        if len(sides) != 2 or not all(type(side) is int and 0 < side <= 1_000_000 for side in sides):  # noqa: PLR2004
            raise _build_invalid_error(f"{self.pointer}/{name}", "must be two positive integers")
        return sides[0], sides[1]


_WIDEST_INTEGER = 8


def _read_bits(reader: _QuantizationReader, *names: str, default: int | None = None) -> int:
    bits = reader.read_integer(*names, default=default)
    if bits > _WIDEST_INTEGER:
        raise _build_invalid_error(f"{reader.pointer}/{names[0]}", "must be at most 8")
    return bits


def _read_gptq(reader: _QuantizationReader) -> _SchemeRules:
    scheme = build_gptq(_read_bits(reader, "bits"), reader.read_integer("group_size", default=128, least=-1))
    dynamic = reader.fields.get("dynamic")
    named = [str(name) for name in dynamic] if isinstance(dynamic, Mapping) else []
    excluded = [f"re:{name.removeprefix('-:')}" for name in named if name.startswith("-:")]
    ignored = reader.read_modules("modules_to_not_convert").merge_with(
        _parse_modules(excluded, f"{reader.pointer}/dynamic")
    )
    return _SchemeRules(((None, scheme),), ignored, NumberFormat.INT4, head=reader.read_flag("lm_head"))


def _read_awq(reader: _QuantizationReader) -> _SchemeRules:
    scheme = build_awq(
        _read_bits(reader, "bits", "w_bit", default=4),
        reader.read_integer("group_size", "q_group_size", default=128, least=-1),
        zero_point=reader.read_flag("zero_point", default=True),
    )
    return _SchemeRules(((None, scheme),), reader.read_modules("modules_to_not_convert"), NumberFormat.INT4)


def _read_auto_round(reader: _QuantizationReader) -> _SchemeRules:
    bits = _read_bits(reader, "bits", default=4)
    group = reader.read_integer("group_size", default=128, least=-1)
    packing = reader.fields.get("packing_format") or "auto_round:auto_gptq"
    scheme = (
        build_awq(bits, group) if "awq" in str(packing) else build_gptq(bits, group)._replace(input_bytes=0.0)
    )
    return _SchemeRules(((None, scheme),), reader.read_modules("modules_to_not_convert"), NumberFormat.INT4)


def _read_fp8(reader: _QuantizationReader) -> _SchemeRules:
    block = reader.read_block("weight_block_size")
    static = reader.fields.get("activation_scheme") == "static"
    # The file gives columns of a block first; both sides are equal in every published checkpoint.
    scheme = build_fp8_blocks(block[1], block[0]) if block else build_fp8_tensor(static=static)
    ignored = reader.read_modules("modules_to_not_convert", "ignored_layers")
    experts = reader.fields.get("expert_dtype")
    if experts not in (None, "fp4", "fp8"):
        raise _build_invalid_error(f"{reader.pointer}/expert_dtype", "known values are fp4 and fp8")
    packed = MXFP4 if experts == "fp4" else None
    lookups = _read_converted_tables(reader)
    return _SchemeRules(((None, scheme),), ignored, NumberFormat.FP8, experts=packed, lookups=lookups)


def _read_converted_tables(reader: _QuantizationReader) -> MatrixScheme | None:
    """Returns the scheme of the tables of n-grams that are in FP8 with one scale; None if they are not.

    Other embeddings are refused, because the name does not say which table of a model they are.
    """
    name = "modules_to_convert"
    found = reader.read_modules(name)
    if found.globs or found.expressions or any(n.split(".")[-1] != _NGRAM_TABLE for n in found.names):
        raise _build_invalid_error(f"{reader.pointer}/{name}", f"may name {_NGRAM_TABLE} alone")
    return build_fp8_tensor() if found.names else None


def _read_fbgemm(reader: _QuantizationReader) -> _SchemeRules:
    ignored = reader.read_modules("modules_to_not_convert")
    return _SchemeRules(((None, build_scaled_columns(8, 32.0)),), ignored, NumberFormat.FP8)


def _read_bitsandbytes(reader: _QuantizationReader) -> _SchemeRules:
    ignored = reader.read_modules("llm_int8_skip_modules")
    if reader.read_flag("load_in_4bit", "_load_in_4bit"):
        double = reader.read_flag("bnb_4bit_use_double_quant")
        return _SchemeRules(((None, NF4_DOUBLE if double else NF4),), ignored, NumberFormat.INT4)
    if reader.read_flag("load_in_8bit", "_load_in_8bit"):
        return _SchemeRules(((None, INT8_COLUMNS),), ignored, NumberFormat.INT8)
    raise PlanningError(
        "QUANTIZATION_UNKNOWN",
        f"{reader.pointer}/load_in_4bit",
        "neither load_in_4bit nor load_in_8bit is set",
    )


def _read_mxfp4(reader: _QuantizationReader) -> _SchemeRules:
    ignored = reader.read_modules("modules_to_not_convert")
    return _SchemeRules(((None, MXFP4),), ignored, NumberFormat.FP4, experts_only=True)


def _read_eetq(reader: _QuantizationReader) -> _SchemeRules:
    ignored = reader.read_modules("modules_to_not_convert")
    return _SchemeRules(((None, build_scaled_columns(8, 16.0)),), ignored, NumberFormat.INT8)


def _read_hqq(reader: _QuantizationReader) -> _SchemeRules:
    given = reader.fields.get("quant_config", reader.fields)
    inner = given.get("weight_quant_params") if isinstance(given, Mapping) else None
    if not isinstance(inner, Mapping):
        raise PlanningError(
            "CONFIG_FIELD_MISSING", f"{reader.pointer}/quant_config", "weight_quant_params is missing"
        )
    fields = _QuantizationReader(inner, f"{reader.pointer}/quant_config/weight_quant_params")
    bits = _read_bits(fields, "nbits")
    scheme = MatrixScheme(bits, 16.0, 16.0, fields.read_integer("group_size", default=64))
    return _SchemeRules(((None, scheme),), reader.read_modules("skip_modules"), NumberFormat.INT4)


_MODELOPT = {
    "FP8": (build_fp8_tensor(static=True), NumberFormat.FP8),
    "FP8_PER_CHANNEL_PER_TOKEN": (build_scaled_columns(8, 32.0), NumberFormat.FP8),
    "FP8_PB_WO": (build_fp8_blocks(128, 128), NumberFormat.FP8),
    "NVFP4": (NVFP4, NumberFormat.FP4),
    "NVFP4_AWQ": (NVFP4, NumberFormat.FP4),
    "W4A16_AWQ": (build_awq(4, 128, zero_point=False), NumberFormat.INT4),
    "W8A8_SQ_PER_CHANNEL": (build_scaled_columns(8, 32.0), NumberFormat.INT8),
}


def _read_modelopt(reader: _QuantizationReader) -> _SchemeRules:
    inner = reader.fields.get("quantization")
    if isinstance(inner, Mapping):
        reader = _QuantizationReader(inner, f"{reader.pointer}/quantization")
    algorithm = reader.fields.get("quant_algo")
    if algorithm not in _MODELOPT:
        raise PlanningError(
            "QUANTIZATION_UNKNOWN",
            f"{reader.pointer}/quant_algo",
            f"this algorithm is not known; known are {', '.join(_MODELOPT)}",
        )
    scheme, compute = _MODELOPT[str(algorithm)]
    ignored = reader.read_modules("ignore", "exclude_modules")
    return _SchemeRules(((None, scheme),), ignored, compute, head=True)


def _read_group_scheme(reader: _QuantizationReader) -> tuple[MatrixScheme, NumberFormat]:
    """The scheme of the ``weights`` of one group of compressed-tensors."""
    bits, kind = _read_bits(reader, "num_bits"), reader.fields.get("type", "int")
    strategy = reader.fields.get("strategy") or ("group" if reader.fields.get("group_size") else "tensor")
    zero = 0.0 if reader.read_flag("symmetric", default=True) else float(bits)
    narrow = bits <= 4  # noqa: PLR2004
    if kind == "float":
        compute = NumberFormat.FP4 if narrow else NumberFormat.FP8
    else:
        compute = NumberFormat.INT4 if narrow else NumberFormat.INT8
    match strategy:
        case "tensor":
            return MatrixScheme(bits, matrix_bytes=4.0), compute
        case "channel":
            return MatrixScheme(bits, 16.0, zero), compute
        case "block":
            sides = reader.read_block("block_structure") or (128, 128)
            return MatrixScheme(bits, 32.0, zero, sides[1], sides[0]), compute
        case "tensor_group":
            size = reader.read_integer("group_size", default=16)
            return MatrixScheme(bits, 8.0, zero, size, matrix_bytes=8.0), compute
        case "group":
            size = reader.read_integer("group_size")
            # Four-bit floats in groups of 32 are MXFP4, whose scale is an exponent.
            scale = 8.0 if kind == "float" and narrow else 16.0
            return MatrixScheme(bits, scale, zero, size), compute
        case _:
            raise PlanningError(
                "QUANTIZATION_UNKNOWN", f"{reader.pointer}/strategy", "this strategy is not known"
            )


_CLASSES = frozenset({"Linear", "ParallelLinear"})


def _read_compressed_tensors(reader: _QuantizationReader) -> _SchemeRules:
    groups = reader.fields.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise PlanningError(
            "CONFIG_FIELD_MISSING", f"{reader.pointer}/config_groups", "config_groups is missing"
        )
    schemes: list[tuple[_ModulePatterns | None, MatrixScheme]] = []
    compute = NumberFormat.BF16
    for name, group in groups.items():
        pointer = f"{reader.pointer}/config_groups/{name}"
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            raise PlanningError("CONFIG_FIELD_MISSING", f"{pointer}/weights", "weights is missing")
        scheme, compute = _read_group_scheme(_QuantizationReader(weights, f"{pointer}/weights"))
        targets = group.get("targets")
        everything = targets is None or (isinstance(targets, list) and bool(_CLASSES & {*map(str, targets)}))
        modules = None if everything else _parse_modules(targets, f"{pointer}/targets")
        schemes.append((modules, scheme))
    # A group of named modules comes before one of a class.
    schemes.sort(key=lambda entry: entry[0] is None)
    return _SchemeRules(tuple(schemes), reader.read_modules("ignore"), compute, head=True)


MLX: Final = "mlx"
"""Method of a configuration of MLX, which states groups and bits and no method."""


def _read_mlx(reader: _QuantizationReader) -> _SchemeRules:
    scheme = MatrixScheme(_read_bits(reader, "bits"), 16.0, 16.0, reader.read_integer("group_size"))
    if reader.fields.get("mode", "affine") != "affine":
        detail = "this mode is not known; known is affine"
        raise PlanningError("QUANTIZATION_UNKNOWN", f"{reader.pointer}/mode", detail)
    return _SchemeRules(((None, scheme),), _ModulePatterns(), NumberFormat.INT4, head=True, table=True)


_METHODS: Mapping[str, Callable[[_QuantizationReader], _SchemeRules]] = {
    "gptq": _read_gptq,
    "awq": _read_awq,
    "auto-round": _read_auto_round,
    "fp8": _read_fp8,
    "fbgemm_fp8": _read_fbgemm,
    "bitsandbytes": _read_bitsandbytes,
    "mxfp4": _read_mxfp4,
    "eetq": _read_eetq,
    "hqq": _read_hqq,
    MLX: _read_mlx,
    "modelopt": _read_modelopt,
    "modelopt_fp4": _read_modelopt,
    "compressed-tensors": _read_compressed_tensors,
}


_AWQ_SAVES_ONCE = (4, 47)
"""Release of transformers beside which AutoAWQ (0.2.7) began to write a tied head once."""


def _copies_tied_head(method: str, config: Mapping[str, object]) -> bool:
    """Returns true if the files contain a tied head in addition to the table.

    Qwen2.5-1.5B-Instruct-AWQ is 1.61 GB and not 1.14, the second file of Qwen3-4B-FP8 (778 MB) is its head
    alone; those of GPTQ contain it once.
    """
    saved = re.match(r"(\d{1,9})\.(\d{1,9})", str(config.get("transformers_version", "")))
    older = saved is None or (int(saved[1]), int(saved[2])) < _AWQ_SAVES_ONCE
    return method == "fp8" or (method == "awq" and older)


def read_checkpoint_format(config: Mapping[str, object], layers: int = 1) -> WeightFormat | None:
    """Returns the weight format of the checkpoint of ``config`` for so many layers; None if it is not stated.

    Raises :class:`PlanningError` whose pointer names the invalid field inside the configuration.
    """
    found = _find_config(config)
    if found is None:
        return None
    pointer, fields = found
    method = fields.get("quant_method")
    if method is None and ("quant_algo" in fields or "quantization" in fields):
        method = "modelopt"
    elif method is None and "group_size" in fields and "bits" in fields:
        method = MLX
    elif method == "gguf":
        return _find_file_type(fields, pointer)
    reader = _METHODS.get(str(method))
    if reader is None:
        raise PlanningError(
            "QUANTIZATION_UNKNOWN",
            f"{pointer}/quant_method",
            f"this method is not known; known are {', '.join(sorted(_METHODS))}",
        )
    copies = _copies_tied_head(str(method), {**config, **fields})
    rules = reader(_QuantizationReader(fields, pointer))
    rules.check_work(layers, pointer)
    cache = _read_cache(_QuantizationReader(fields, pointer))
    return replace(_build_format(str(method), rules, copies_tied_head=copies), cache=cache)


def _find_file_type(fields: Mapping[str, object], pointer: str) -> WeightFormat:
    found = GGUF_FORMATS.get(f"gguf_{fields.get('file_type')}")
    if found is None:
        detail = "this file type of llama.cpp is not known"
        raise PlanningError("QUANTIZATION_UNKNOWN", f"{pointer}/file_type", detail)
    return found


_CACHE_ALGORITHMS: Mapping[object, NumberFormat | None] = {
    None: None,
    "FP8": NumberFormat.FP8,
    "INT8": NumberFormat.INT8,
    "NVFP4": NumberFormat.FP4,
}
"""Values of ``kv_cache_quant_algo`` of ModelOpt."""
_CACHE_SCHEMES: Mapping[tuple[str, int], NumberFormat] = {
    ("float", 8): NumberFormat.FP8,
    ("int", 8): NumberFormat.INT8,
    ("float", 4): NumberFormat.FP4,
    ("int", 4): NumberFormat.INT4,
}
"""Type and bits of a ``kv_cache_scheme``."""


def _read_cache(reader: _QuantizationReader) -> NumberFormat | None:
    """Returns the format of keys and values: a scheme (compressed-tensors) or an algorithm (ModelOpt)."""
    inner = reader.fields.get("quantization")
    if isinstance(inner, Mapping):
        reader = _QuantizationReader(inner, f"{reader.pointer}/quantization")
    scheme, pointer = reader.fields.get("kv_cache_scheme"), f"{reader.pointer}/kv_cache_scheme"
    if isinstance(scheme, Mapping):
        kind, bits = scheme.get("type", "int"), scheme.get("num_bits")
        if isinstance(kind, str) and isinstance(bits, int) and (kind, bits) in _CACHE_SCHEMES:
            return _CACHE_SCHEMES[kind, bits]
        known = ", ".join(f"{name} of {size} bits" for name, size in _CACHE_SCHEMES)
        raise PlanningError(
            "QUANTIZATION_UNKNOWN", pointer, f"this format of a cache is not known; known are {known}"
        )
    if scheme is not None:
        raise _build_invalid_error(pointer, "must be an object")
    algorithm, pointer = reader.fields.get("kv_cache_quant_algo"), f"{reader.pointer}/kv_cache_quant_algo"
    if not isinstance(algorithm, str | None) or algorithm not in _CACHE_ALGORITHMS:
        known = ", ".join(str(name) for name in _CACHE_ALGORITHMS if name)
        raise PlanningError(
            "QUANTIZATION_UNKNOWN", pointer, f"this algorithm is not known; known are {known}"
        )
    return _CACHE_ALGORITHMS[algorithm]


def find_quantization(config: Mapping[str, object]) -> dict[str, object] | None:
    """Returns the quantization that a published ``config`` states, with the release that wrote it.

    None without one. Raises :class:`PlanningError` for one that is no object.
    """
    found = _find_config(config)
    if found is None:
        return None
    release = {name: config[name] for name in ("transformers_version",) if name in config}
    return {**release, **found[1]}


def _find_config(config: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
    inner = config.get("text_config")
    places = [("", config)]
    if isinstance(inner, Mapping):
        places.append(("/text_config", inner))
    for parent, holder in places:
        for name in ("quantization_config", "compression_config"):
            fields = holder.get(name)
            if isinstance(fields, Mapping):
                # DeepSeek-V4 states the format of its experts beside the object.
                beside = {field: holder[field] for field in ("expert_dtype",) if field in holder}
                return f"{parent}/{name}", {**beside, **fields}
            if fields is not None:
                raise _build_invalid_error(f"{parent}/{name}", "must be an object")
    return None


def _build_format(method: str, rules: _SchemeRules, *, copies_tied_head: bool) -> WeightFormat:
    def select_scheme(place: MatrixPath, facts: ModelFacts) -> MatrixScheme:
        del facts
        if place.module in ALWAYS_WIDE or (rules.experts_only and place.module not in EXPERT_MODULES):
            return WIDE
        if rules.experts is not None and place.module in EXPERT_MODULES:
            return rules.experts
        return rules.select_scheme(str(place.layer), MODULE_NAMES.get(place.module, (place.module,)))

    def select_head_scheme(facts: ModelFacts, size: int) -> MatrixScheme:
        del size
        # A tied head is the token table.
        is_packed = rules.head and (rules.table or not facts.tied)
        return rules.select_scheme("", _HEAD_NAMES) if is_packed else WIDE

    def select_table_scheme(facts: ModelFacts, size: int) -> MatrixScheme:
        del facts, size
        return rules.schemes[-1][1] if rules.table else WIDE

    def build_layer_key(layer: int, facts: ModelFacts) -> Hashable:
        del facts
        return tuple(modules.build_layer_key(str(layer)) for modules in rules.module_lists)

    return WeightFormat(
        name=method,
        compute=rules.compute,
        mean_bits=(rules.experts or rules.schemes[-1][1]).element_bits,
        scheme_of=select_scheme,
        head=select_head_scheme,
        table=select_table_scheme,
        lookups=rules.lookups,
        layer_key=build_layer_key if any(modules.by_layer for modules in rules.module_lists) else None,
        copies_tied_head=copies_tied_head,
    )
