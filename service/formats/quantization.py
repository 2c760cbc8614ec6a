"""How a checkpoint stores its weights, from the ``quantization_config`` of its ``config.json``.

Read are GPTQ, AWQ, AutoRound, FP8 (a tensor, a block), FBGEMM FP8, bitsandbytes, MXFP4, compressed-tensors,
ModelOpt (FP8, NVFP4), EETQ and HQQ, with their groups, zero points and the modules they leave alone.
Embedding tables, norms and routers stay wide under all of them, heads unless the configuration packs them.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from service.formats import module_patterns as patterns
from service.planning.errors import PlanningError
from service.planning.hardware.storage import MatrixScheme, ModelFacts, Place, WeightFormat
from service.planning.hardware.storage.named import (
    ALWAYS_WIDE,
    EXPERT_MODULES,
    INT8_COLUMNS,
    MXFP4,
    NF4,
    NF4_DOUBLE,
    NVFP4,
    WIDE,
    awq,
    fp8_blocks,
    fp8_tensor,
    gptq,
    scaled_columns,
)
from service.planning.precision import NumberFormat

_EXPERTS = ("mlp.experts", "block_sparse_moe.experts", "feed_forward.experts", "mixer.experts")
_SHARED = ("mlp.shared_experts", "mlp.shared_expert", "feed_forward.shared_expert", "mixer.shared_experts")
_FORWARD = ("mlp", "feed_forward", "ffn", "mixer")
_LINEAR = ("linear_attn", "self_attn")
_SELF = ("self_attn", "attn", "attention", "self_attention")


def _under(parents: Iterable[str], *names: str) -> tuple[str, ...]:
    return tuple(f"{parent}.{name}" for parent in parents for name in names)


MODULE_NAMES: Mapping[str, tuple[str, ...]] = {
    "attention.query": _under(_SELF, "q_proj", "qkv_proj", "c_attn", "query_key_value", "wq"),
    "attention.key": _under(_SELF, "k_proj", "qkv_proj", "c_attn", "query_key_value", "wk"),
    "attention.value": _under(_SELF, "v_proj", "qkv_proj", "c_attn", "query_key_value", "wv"),
    "attention.output": _under(_SELF, "o_proj", "out_proj", "c_proj", "dense", "wo"),
    "latent_attention.query": _under(_SELF, "q_proj"),
    "latent_attention.query_down": _under(_SELF, "q_a_proj", "fused_qkv_a_proj"),
    "latent_attention.query_up": _under(_SELF, "q_b_proj"),
    "latent_attention.key_value_down": _under(_SELF, "kv_a_proj_with_mqa", "fused_qkv_a_proj"),
    "latent_attention.key_value_up": _under(_SELF, "kv_b_proj"),
    "latent_attention.output": _under(_SELF, "o_proj"),
    "attention.gate": _under(_SELF, "q_proj", "g_proj", "gate_proj"),
    "latent_attention.gate": _under(_SELF, "g_proj", "gate_proj"),
    "latent_attention.index_query": _under(_SELF, "indexer.wq_b"),
    "latent_attention.index_key": _under(_SELF, "indexer.wk"),
    "latent_attention.index_weight": _under(_SELF, "indexer.weights_proj"),
    "linear_attention.query_key_value": _under(_LINEAR, "in_proj_qkvz", "in_proj_qkv", "q_proj"),
    "linear_attention.gate": _under(_LINEAR, "in_proj_qkvz", "in_proj_z", "g_proj"),
    "linear_attention.step": _under(_LINEAR, "b_proj"),
    "linear_attention.forget_down": _under(_LINEAR, "f_a_proj"),
    "linear_attention.forget_up": _under(_LINEAR, "f_b_proj"),
    "linear_attention.gate_down": _under(_LINEAR, "g_a_proj"),
    "linear_attention.gate_up": _under(_LINEAR, "g_b_proj"),
    "linear_attention.step_and_decay": _under(_LINEAR, "in_proj_ba", "in_proj"),
    "linear_attention.output": _under(_LINEAR, "out_proj", "o_proj"),
    "state_space.input": _under(("mixer", "mamba"), "in_proj"),
    "state_space.output": _under(("mixer", "mamba"), "out_proj"),
    "state_space.state_projection": _under(("mixer", "mamba"), "x_proj"),
    "state_space.step": _under(("mixer", "mamba"), "dt_proj"),
    "feed_forward.gate": _under(_FORWARD, "gate_proj", "gate_up_proj", "w1"),
    "feed_forward.up": _under(_FORWARD, "up_proj", "gate_up_proj", "w3", "c_fc", "fc1", "dense_h_to_4h"),
    "feed_forward.down": _under(_FORWARD, "down_proj", "w2", "c_proj", "fc2", "dense_4h_to_h"),
    "mixture_of_experts.router": ("mlp.gate", "mlp.router", "block_sparse_moe.gate", "feed_forward.router"),
    "mixture_of_experts.expert_gate": _under(_EXPERTS, "0.gate_proj", "gate_up_proj", "0.w1"),
    "mixture_of_experts.expert_up": _under(_EXPERTS, "0.up_proj", "gate_up_proj", "0.w3"),
    "mixture_of_experts.expert_down": _under(_EXPERTS, "0.down_proj", "down_proj", "0.w2"),
    "mixture_of_experts.shared_router": ("mlp.shared_expert_gate",),
    **{
        f"mixture_of_experts.shared_{name}": _under(_SHARED, f"{name}_proj")
        for name in ("gate", "up", "down")
    },
}
"""What published checkpoints call the matrices of a layer, below the layer's own name."""

_LAYER_PREFIX = re.compile(
    r"^(?:(?:language_model\.)?model\.(?:language_model\.)?layers|transformer\.h|backbone\.layers|layers)\."
)
_EXPRESSION_PARENTS = ("model.layers", "language_model.model.layers", "model.language_model.layers")
_HEAD_NAMES = ("lm_head",)

_MOST_LISTED = 5000
_MOST_WORK = 500_000
"""Layers that are told apart, times the elements of all patterns and what stands for the rest of the work."""
_WORK_OF_PATTERNS = 1000
"""Of a layer's names themselves, where there are patterns."""
_WORK_OF_A_LIST = 100
"""Of looking them up in a list."""


@lru_cache(maxsize=1024)
def _parts(module: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What may be named of a module: any part of its name, and from the layer down."""
    parts = module.split(".")
    inner = (".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
    return tuple(inner), ("", *(".".join(parts[:j]) for j in range(1, len(parts) + 1)))


@dataclass(frozen=True)
class _Modules:
    """A list of modules: names or ends of names, globs, and ``re:`` expressions."""

    names: frozenset[str] = frozenset()
    globs: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    def plus(self, other: "_Modules") -> "_Modules":
        """Both lists."""
        return _Modules(
            self.names | other.names, self.globs + other.globs, self.expressions + other.expressions
        )

    @property
    def by_layer(self) -> bool:
        """Whether single layers may be told apart."""
        named = any(name[:1].isdigit() for name in self.names)
        return named or bool(self.expressions) or any(re.search(r"\d", glob) for glob in self.globs)

    @cached_property
    def sequences(self) -> tuple[patterns.Sequence, ...]:
        """What the patterns are made of."""
        return *self._globbed, *self._expressed

    @cached_property
    def _globbed(self) -> tuple[patterns.Sequence, ...]:
        return tuple(chain.from_iterable(map(patterns.glob_sequences, self.globs)))

    @cached_property
    def _expressed(self) -> tuple[patterns.Sequence, ...]:
        return tuple(chain.from_iterable(map(patterns.expression_sequences, self.expressions)))

    @cached_property
    def _globs(self) -> patterns.Patterns:
        return patterns.Patterns(self._globbed)

    @cached_property
    def _expressions(self) -> patterns.Patterns:
        return patterns.Patterns(self._expressed)

    @cached_property
    def _of_layers(self) -> Mapping[str, frozenset[str]]:
        """Names of single layers and of what is below them, by layer."""
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

    def key(self, layer: str) -> Hashable:
        """What the list says of ``layer``: of layers of one key it says the same."""
        states = self._states.get(layer)
        if states is None:
            states = self._states[layer] = tuple(self._entered(layer))
        return layer if layer in self._of_layers else "", states

    def _entered(self, layer: str) -> Iterable[int]:
        """Where the patterns have come to in front of the name of a module."""
        within = f"{layer}." if layer else ""
        yield self._globs.after(self._globs.start, within) if self.globs else 0
        if self.expressions:
            for parent in _EXPRESSION_PARENTS if layer else ("",):
                start = self._expressions.after(self._expressions.start, f"{parent}." if parent else "")
                yield self._expressions.after(start, within)

    def hold(self, layer: str, module: str) -> bool:
        """Whether ``module`` of ``layer`` (empty outside layers) is in the list."""
        key = (self.key(layer), module)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._name(layer, module) or self._match(layer, module)
        return known

    def _name(self, layer: str, module: str) -> bool:
        inner, above = _parts(module)
        of_layer = self._of_layers.get(layer) if layer else None
        return not self.names.isdisjoint(inner) or bool(of_layer and not of_layer.isdisjoint(above))

    def _match(self, layer: str, module: str) -> bool:
        glob, *expressed = self._states[layer]
        return self._globs.hold(self._globs.after(glob, module)) or any(
            self._expressions.hold(self._expressions.after(state, module)) for state in expressed
        )


def _modules(entries: object, pointer: str) -> _Modules:
    if entries is None:
        return _Modules()
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise _invalid(pointer, "must be a list of module names")
    if len(entries) > _MOST_LISTED:
        raise _invalid(pointer, f"must not be longer than {_MOST_LISTED}")
    plain = [entry for entry in entries if not entry.startswith("re:")]
    short = [_LAYER_PREFIX.sub("", entry.removesuffix(".weight")) for entry in plain]
    modules = _Modules(
        names=frozenset(entry for entry in short if "*" not in entry),
        globs=tuple(entry for entry in short if "*" in entry),
        expressions=tuple(entry.removeprefix("re:") for entry in entries if entry.startswith("re:")),
    )
    _check_patterns(modules, pointer)
    return modules


def _check_patterns(modules: _Modules, pointer: str) -> None:
    """Callers send the patterns: what is not read here, and what would take long, is refused."""
    many = f"holds patterns of more than {patterns.MOST_ELEMENTS} characters, alternatives written out"
    if sum(map(len, (*modules.globs, *modules.expressions))) > patterns.MOST_ELEMENTS:
        raise _invalid(pointer, many)
    elements = 0
    for expression in modules.expressions:
        try:
            elements += patterns.element_count(patterns.expression_sequences(expression))
        except patterns.PatternError as error:
            raise _invalid(pointer, f"holds an expression that {error}") from error
        if elements > patterns.MOST_ELEMENTS:
            raise _invalid(pointer, many)


def _invalid(pointer: str, detail: str) -> PlanningError:
    return PlanningError("CONFIG_FIELD_INVALID", pointer, f"{pointer.rsplit('/', 1)[-1]} {detail}")


class _Rules(NamedTuple):
    """Schemes by module, first match first, and the modules that are left alone."""

    schemes: tuple[tuple[_Modules | None, MatrixScheme], ...]
    """None stands for every matrix."""
    ignored: _Modules
    compute: NumberFormat
    experts_only: bool = False
    head: bool = False
    """Whether the language-model head is packed unless it is ignored."""

    def of(self, layer: str, names: Sequence[str]) -> MatrixScheme:
        """The scheme of a matrix that may be called by any of ``names``."""
        if any(self.ignored.hold(layer, name) for name in names):
            return WIDE
        for modules, scheme in self.schemes:
            if modules is None or any(modules.hold(layer, name) for name in names):
                return scheme
        return WIDE

    @property
    def listed(self) -> tuple[_Modules, ...]:
        """Every list of modules."""
        return self.ignored, *(modules for modules, _ in self.schemes if modules)

    def check_work(self, layers: int, pointer: str) -> None:
        """Refuse lists and patterns that take long to ask for every layer that they tell apart."""
        lists = self.listed
        elements = sum(patterns.element_count(modules.sequences) for modules in lists)
        asked = max(1, layers) if any(modules.by_layer for modules in lists) else 1
        work = len(lists) * _WORK_OF_A_LIST + (elements and elements + _WORK_OF_PATTERNS)
        if asked * work > _MOST_WORK:
            raise _invalid(pointer, f"has lists and patterns that are too long for {asked} layers")


class _Reader(NamedTuple):
    """The fields of one quantisation configuration."""

    fields: Mapping[str, object]
    pointer: str

    def integer(self, *names: str, default: int | None = None, least: int = 1) -> int:
        for name in names:
            value = self.fields.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 1_000_000:  # noqa: PLR2004
                raise _invalid(f"{self.pointer}/{name}", f"must be an integer of at least {least}")
            return value
        if default is None:
            raise PlanningError(
                "CONFIG_FIELD_MISSING", f"{self.pointer}/{names[0]}", f"{names[0]} is missing"
            )
        return default

    def flag(self, *names: str, default: bool = False) -> bool:
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, bool):
                return value
            if value is not None:
                raise _invalid(f"{self.pointer}/{name}", "must be true or false")
        return default

    def modules(self, *names: str) -> _Modules:
        found = _Modules()
        for name in names:
            found = found.plus(_modules(self.fields.get(name), f"{self.pointer}/{name}"))
        return found

    def block(self, name: str) -> tuple[int, int] | None:
        value = self.fields.get(name)
        if value is None:
            return None
        sides = value if isinstance(value, list) else []
        if len(sides) != 2 or not all(type(side) is int and 0 < side <= 1_000_000 for side in sides):  # noqa: PLR2004
            raise _invalid(f"{self.pointer}/{name}", "must be two positive integers")
        return sides[0], sides[1]


_WIDEST_INTEGER = 8


def _bits(reader: _Reader, *names: str, default: int | None = None) -> int:
    bits = reader.integer(*names, default=default)
    if bits > _WIDEST_INTEGER:
        raise _invalid(f"{reader.pointer}/{names[0]}", "must be at most 8")
    return bits


def _gptq(reader: _Reader) -> _Rules:
    scheme = gptq(_bits(reader, "bits"), reader.integer("group_size", default=128, least=-1))
    dynamic = reader.fields.get("dynamic")
    named = [str(name) for name in dynamic] if isinstance(dynamic, Mapping) else []
    excluded = [f"re:{name.removeprefix('-:')}" for name in named if name.startswith("-:")]
    ignored = reader.modules("modules_to_not_convert").plus(_modules(excluded, f"{reader.pointer}/dynamic"))
    return _Rules(((None, scheme),), ignored, NumberFormat.INT4, head=reader.flag("lm_head"))


def _awq(reader: _Reader) -> _Rules:
    scheme = awq(
        _bits(reader, "bits", "w_bit", default=4),
        reader.integer("group_size", "q_group_size", default=128, least=-1),
        zero_point=reader.flag("zero_point", default=True),
    )
    return _Rules(((None, scheme),), reader.modules("modules_to_not_convert"), NumberFormat.INT4)


def _auto_round(reader: _Reader) -> _Rules:
    bits = _bits(reader, "bits", default=4)
    group = reader.integer("group_size", default=128, least=-1)
    packing = reader.fields.get("packing_format") or "auto_round:auto_gptq"
    scheme = awq(bits, group) if "awq" in str(packing) else gptq(bits, group)._replace(input_bytes=0.0)
    return _Rules(((None, scheme),), reader.modules("modules_to_not_convert"), NumberFormat.INT4)


def _fp8(reader: _Reader) -> _Rules:
    block = reader.block("weight_block_size")
    static = reader.fields.get("activation_scheme") == "static"
    # The file gives columns of a block first; both sides are equal in every published checkpoint.
    scheme = fp8_blocks(block[1], block[0]) if block else fp8_tensor(static=static)
    ignored = reader.modules("modules_to_not_convert", "ignored_layers")
    return _Rules(((None, scheme),), ignored, NumberFormat.FP8)


def _fbgemm(reader: _Reader) -> _Rules:
    ignored = reader.modules("modules_to_not_convert")
    return _Rules(((None, scaled_columns(8, 32.0)),), ignored, NumberFormat.FP8)


def _bitsandbytes(reader: _Reader) -> _Rules:
    ignored = reader.modules("llm_int8_skip_modules")
    if reader.flag("load_in_4bit", "_load_in_4bit"):
        double = reader.flag("bnb_4bit_use_double_quant")
        return _Rules(((None, NF4_DOUBLE if double else NF4),), ignored, NumberFormat.INT4)
    if reader.flag("load_in_8bit", "_load_in_8bit"):
        return _Rules(((None, INT8_COLUMNS),), ignored, NumberFormat.INT8)
    raise PlanningError(
        "QUANTIZATION_UNKNOWN",
        f"{reader.pointer}/load_in_4bit",
        "neither load_in_4bit nor load_in_8bit is set",
    )


def _mxfp4(reader: _Reader) -> _Rules:
    ignored = reader.modules("modules_to_not_convert")
    return _Rules(((None, MXFP4),), ignored, NumberFormat.FP4, experts_only=True)


def _eetq(reader: _Reader) -> _Rules:
    ignored = reader.modules("modules_to_not_convert")
    return _Rules(((None, scaled_columns(8, 16.0)),), ignored, NumberFormat.INT8)


def _hqq(reader: _Reader) -> _Rules:
    given = reader.fields.get("quant_config", reader.fields)
    inner = given.get("weight_quant_params") if isinstance(given, Mapping) else None
    if not isinstance(inner, Mapping):
        raise PlanningError(
            "CONFIG_FIELD_MISSING", f"{reader.pointer}/quant_config", "weight_quant_params is missing"
        )
    fields = _Reader(inner, f"{reader.pointer}/quant_config/weight_quant_params")
    bits = _bits(fields, "nbits")
    scheme = MatrixScheme(bits, 16.0, 16.0, fields.integer("group_size", default=64))
    return _Rules(((None, scheme),), reader.modules("skip_modules"), NumberFormat.INT4)


_MODELOPT = {
    "FP8": (fp8_tensor(static=True), NumberFormat.FP8),
    "FP8_PER_CHANNEL_PER_TOKEN": (scaled_columns(8, 32.0), NumberFormat.FP8),
    "FP8_PB_WO": (fp8_blocks(128, 128), NumberFormat.FP8),
    "NVFP4": (NVFP4, NumberFormat.FP4),
    "NVFP4_AWQ": (NVFP4, NumberFormat.FP4),
    "W4A16_AWQ": (awq(4, 128, zero_point=False), NumberFormat.INT4),
    "W8A8_SQ_PER_CHANNEL": (scaled_columns(8, 32.0), NumberFormat.INT8),
}


def _modelopt(reader: _Reader) -> _Rules:
    inner = reader.fields.get("quantization")
    if isinstance(inner, Mapping):
        reader = _Reader(inner, f"{reader.pointer}/quantization")
    algorithm = reader.fields.get("quant_algo")
    if algorithm not in _MODELOPT:
        raise PlanningError(
            "QUANTIZATION_UNKNOWN",
            f"{reader.pointer}/quant_algo",
            f"this algorithm is not known; known are {', '.join(_MODELOPT)}",
        )
    scheme, compute = _MODELOPT[str(algorithm)]
    ignored = reader.modules("ignore", "exclude_modules")
    return _Rules(((None, scheme),), ignored, compute, head=True)


def _group_scheme(reader: _Reader) -> tuple[MatrixScheme, NumberFormat]:
    """The scheme of the ``weights`` of one group of compressed-tensors."""
    bits, kind = _bits(reader, "num_bits"), reader.fields.get("type", "int")
    strategy = reader.fields.get("strategy") or ("group" if reader.fields.get("group_size") else "tensor")
    zero = 0.0 if reader.flag("symmetric", default=True) else float(bits)
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
            sides = reader.block("block_structure") or (128, 128)
            return MatrixScheme(bits, 32.0, zero, sides[1], sides[0]), compute
        case "tensor_group":
            size = reader.integer("group_size", default=16)
            return MatrixScheme(bits, 8.0, zero, size, matrix_bytes=8.0), compute
        case "group":
            size = reader.integer("group_size")
            # Four-bit floats in groups of 32 are MXFP4, whose scale is an exponent.
            scale = 8.0 if kind == "float" and narrow else 16.0
            return MatrixScheme(bits, scale, zero, size), compute
        case _:
            raise PlanningError(
                "QUANTIZATION_UNKNOWN", f"{reader.pointer}/strategy", "this strategy is not known"
            )


_CLASSES = frozenset({"Linear", "ParallelLinear"})


def _compressed_tensors(reader: _Reader) -> _Rules:
    groups = reader.fields.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise PlanningError(
            "CONFIG_FIELD_MISSING", f"{reader.pointer}/config_groups", "config_groups is missing"
        )
    schemes: list[tuple[_Modules | None, MatrixScheme]] = []
    compute = NumberFormat.BF16
    for name, group in groups.items():
        pointer = f"{reader.pointer}/config_groups/{name}"
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping):
            raise PlanningError("CONFIG_FIELD_MISSING", f"{pointer}/weights", "weights is missing")
        scheme, compute = _group_scheme(_Reader(weights, f"{pointer}/weights"))
        targets = group.get("targets")
        everything = targets is None or (isinstance(targets, list) and bool(_CLASSES & {*map(str, targets)}))
        modules = None if everything else _modules(targets, f"{pointer}/targets")
        schemes.append((modules, scheme))
    # A group of named modules comes before one of a class.
    schemes.sort(key=lambda entry: entry[0] is None)
    return _Rules(tuple(schemes), reader.modules("ignore"), compute, head=True)


_METHODS: Mapping[str, Callable[[_Reader], _Rules]] = {
    "gptq": _gptq,
    "awq": _awq,
    "auto-round": _auto_round,
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "eetq": _eetq,
    "hqq": _hqq,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "compressed-tensors": _compressed_tensors,
}


_AWQ_SAVES_ONCE = (4, 47)
"""Release of transformers beside which AutoAWQ (0.2.7) began to write a tied head once."""


def _copies_tied_head(method: str, config: Mapping[str, object]) -> bool:
    """Whether the files hold a tied head beside the table.

    Qwen2.5-1.5B-Instruct-AWQ is 1.61 GB and not 1.14, the second file of Qwen3-4B-FP8 (778 MB) is its head
    alone; those of GPTQ hold it once.
    """
    saved = re.match(r"(\d{1,9})\.(\d{1,9})", str(config.get("transformers_version", "")))
    older = saved is None or (int(saved[1]), int(saved[2])) < _AWQ_SAVES_ONCE
    return method == "fp8" or (method == "awq" and older)


def checkpoint_format(config: Mapping[str, object], layers: int = 1) -> WeightFormat | None:
    """How the checkpoint of ``config`` stores the weights of so many layers; None where it does not say.

    Raises :class:`PlanningError` whose pointer names the field at fault inside the configuration.
    """
    found = _found(config)
    if found is None:
        return None
    pointer, fields = found
    method = fields.get("quant_method")
    if method is None and ("quant_algo" in fields or "quantization" in fields):
        method = "modelopt"
    reader = _METHODS.get(str(method))
    if reader is None:
        raise PlanningError(
            "QUANTIZATION_UNKNOWN",
            f"{pointer}/quant_method",
            f"this method is not known; known are {', '.join(sorted(_METHODS))}",
        )
    copies = _copies_tied_head(str(method), config)
    rules = reader(_Reader(fields, pointer))
    rules.check_work(layers, pointer)
    return _format(str(method), rules, copies_tied_head=copies)


def _found(config: Mapping[str, object]) -> tuple[str, Mapping[str, object]] | None:
    inner = config.get("text_config")
    places = [("", config)]
    if isinstance(inner, Mapping):
        places.append(("/text_config", inner))
    for parent, holder in places:
        for name in ("quantization_config", "compression_config"):
            fields = holder.get(name)
            if isinstance(fields, Mapping):
                return f"{parent}/{name}", fields
            if fields is not None:
                raise _invalid(f"{parent}/{name}", "must be an object")
    return None


def _format(method: str, rules: _Rules, *, copies_tied_head: bool) -> WeightFormat:
    def scheme_of(place: Place, facts: ModelFacts) -> MatrixScheme:
        del facts
        if place.module in ALWAYS_WIDE or (rules.experts_only and place.module not in EXPERT_MODULES):
            return WIDE
        return rules.of(str(place.layer), MODULE_NAMES.get(place.module, (place.module,)))

    def head(facts: ModelFacts, size: int) -> MatrixScheme:
        del size
        # A tied head is the token table, which no tool packs.
        return rules.of("", _HEAD_NAMES) if rules.head and not facts.tied else WIDE

    def table(facts: ModelFacts, size: int) -> MatrixScheme:
        del facts, size
        return WIDE

    def layer_key(layer: int, facts: ModelFacts) -> Hashable:
        del facts
        return tuple(modules.key(str(layer)) for modules in rules.listed)

    return WeightFormat(
        name=method,
        compute=rules.compute,
        mean_bits=rules.schemes[-1][1].element_bits,
        scheme_of=scheme_of,
        head=head,
        table=table,
        layer_key=layer_key if any(modules.by_layer for modules in rules.listed) else None,
        copies_tied_head=copies_tied_head,
    )
