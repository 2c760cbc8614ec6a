"""GGUF files of llama.cpp: block formats, and the mixture of them that a file type gives each tensor.

Block sizes are those of ggml (bytes of a block, elements of a block). The mixtures restate the choices of
llama.cpp's quantiser without an importance matrix: attention values, the down projection and the output
matrix take wider formats, some only in the first and last eighth of the layers and every third between. Rows
whose length is no multiple of 256 fall back to formats of 32 elements. Vectors and routers are FP32.
"""

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Final

from service.planning.hardware.storage.scheme import MatrixPath, MatrixScheme, ModelFacts, WeightFormat
from service.planning.precision import NumberFormat

BLOCKS: Final[Mapping[str, tuple[int, int]]] = {
    "f32": (4, 1),
    "f16": (2, 1),
    "q4_0": (18, 32),
    "q4_1": (20, 32),
    "q5_0": (22, 32),
    "q5_1": (24, 32),
    "q8_0": (34, 32),
    "q2_k": (84, 256),
    "q3_k": (110, 256),
    "q4_k": (144, 256),
    "q5_k": (176, 256),
    "q6_k": (210, 256),
    "iq1_s": (50, 256),
    "iq1_m": (56, 256),
    "iq2_xxs": (66, 256),
    "iq2_xs": (74, 256),
    "iq2_s": (82, 256),
    "iq3_xxs": (98, 256),
    "iq3_s": (110, 256),
    "iq4_nl": (18, 32),
    "iq4_xs": (136, 256),
    "mxfp4": (17, 32),
    "tq1_0": (54, 256),
    "tq2_0": (66, 256),
}
"""Bytes and elements of a block."""

_SCHEMES = {name: MatrixScheme(8.0 * size / count) for name, (size, count) in BLOCKS.items()}
_NARROW_ROWS = {"q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0", "tq1_0": "f16", "tq2_0": "f16"}

FILE_TYPES: Final[Mapping[str, str]] = {
    "f16": "f16",
    "q4_0": "q4_0",
    "q4_1": "q4_1",
    "q5_0": "q5_0",
    "q5_1": "q5_1",
    "q8_0": "q8_0",
    "q2_k": "q2_k",
    "q2_k_s": "q2_k",
    "q3_k_s": "q3_k",
    "q3_k_m": "q3_k",
    "q3_k_l": "q3_k",
    "q4_k_s": "q4_k",
    "q4_k_m": "q4_k",
    "q5_k_s": "q5_k",
    "q5_k_m": "q5_k",
    "q6_k": "q6_k",
    "iq1_s": "iq1_s",
    "iq1_m": "iq1_m",
    "iq2_xxs": "iq2_xxs",
    "iq2_xs": "iq2_xs",
    "iq2_s": "iq2_xs",
    "iq2_m": "iq2_s",
    "iq3_xxs": "iq3_xxs",
    "iq3_xs": "iq3_s",
    "iq3_s": "iq3_s",
    "iq3_m": "iq3_s",
    "iq4_nl": "iq4_nl",
    "iq4_xs": "iq4_xs",
    "tq1_0": "tq1_0",
    "tq2_0": "tq2_0",
    "mxfp4_moe": "q8_0",
}
"""Block format of most tensors of a file of each type."""

_LOW = frozenset({"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m"})
_FEW_HEADS = 4.0
_MIXTRAL_EXPERTS = 8
_LLAMA_70B_LAYERS = 80


def _use_more_bits(layer: int, depth: int) -> bool:
    eighth = depth // 8
    return layer < eighth or layer >= 7 * depth // 8 or (layer - eighth) % 3 == 2  # noqa: PLR2004


_VALUES: Final = {
    "q2_k": ("q4_k", "q3_k"),
    "q2_k_s": ("q4_k", "q2_k"),
    "q3_k_m": ("q4_k", "q4_k"),
    "q3_k_l": ("q5_k", "q5_k"),
    "iq3_xxs": ("q4_k", "iq3_s"),
    "iq3_xs": ("q4_k", "iq3_s"),
    "iq3_s": ("q4_k", "iq3_s"),
    "iq3_m": ("q4_k", "q4_k"),
    "iq4_nl": ("q5_k", "iq4_nl"),
    "iq4_xs": ("q5_k", "iq4_xs"),
    **dict.fromkeys(_LOW, ("q4_k", "q2_k")),
}
"""Block formats of attention values: with four or more query heads per value head, and with fewer."""

_FIRST_VALUES: Final = {"q3_k_m": (2, "q5_k"), "q4_k_s": (4, "q5_k")}
"""Number of first layers with another block format of attention values, and that format."""

_DOWNS: Final = {"q2_k": "q3_k", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_xxs": "q3_k"}
"""Block format of down projections."""

_FIRST_DOWNS: Final = {
    "q2_k_s": (8, "q4_k"),
    "q3_k_m": (16, "q5_k"),
    "q4_k_s": (8, "q5_k"),
    "iq3_xxs": (8, "q4_k"),
    "iq3_m": (8, "q4_k"),
    "iq4_nl": (8, "q5_k"),
    "iq4_xs": (8, "q5_k"),
    **dict.fromkeys(_LOW, (8, "q2_k")),
}
"""Divisor of the depth that gives the first layers with another down projection, and that format."""

_MORE_BITS: Final = frozenset({"q4_k_m", "q5_k_m"})


def _select_value_block(file_type: str, base: str, place: MatrixPath, facts: ModelFacts) -> str:
    """Block format of the attention values."""
    if facts.expert_count == _MIXTRAL_EXPERTS:
        return "q8_0"
    shared = facts.query_heads_per_key_value_head >= _FEW_HEADS
    block = _VALUES.get(file_type, (base, base))[0 if shared else 1]
    layers, first = _FIRST_VALUES.get(file_type, (0, base))
    if place.layer < layers:
        block = first
    if file_type in _MORE_BITS and _use_more_bits(place.layer, place.depth):
        block = "q6_k"
    if facts.depth == _LLAMA_70B_LAYERS and block in ("q3_k", "q4_k"):
        block = "q5_k"
    return block


def _build_layer_key(file_type: str, layer: int, facts: ModelFacts) -> Hashable:
    """Returns the properties that the block formats of a layer depend on."""
    values, _ = _FIRST_VALUES.get(file_type, (0, ""))
    one_in, _ = _FIRST_DOWNS.get(file_type, (0, ""))
    is_first_down = bool(one_in) and layer < facts.depth // one_in
    return layer < values, is_first_down, file_type in _MORE_BITS and _use_more_bits(layer, facts.depth)


def _select_down_block(file_type: str, base: str, place: MatrixPath) -> str:
    """Block format of the down projection."""
    one_in, first = _FIRST_DOWNS.get(file_type, (0, base))
    if one_in and place.layer < place.depth // one_in:
        return first
    if file_type in _MORE_BITS and _use_more_bits(place.layer, place.depth):
        return "q6_k"
    return _DOWNS.get(file_type, base)


def _select_output_block(file_type: str, base: str, facts: ModelFacts) -> str:
    if facts.expert_count == _MIXTRAL_EXPERTS and file_type in (
        "q2_k",
        "q3_k_s",
        "q3_k_m",
        "q4_k_s",
        "q4_k_m",
        "iq3_xxs",
        "iq3_s",
        "iq3_m",
        "iq4_nl",
        "iq4_xs",
    ):
        return "q5_k"
    return {"q2_k": "q3_k", "iq3_xxs": "iq3_s", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}.get(
        file_type, "iq2_xxs" if file_type in ("iq1_s", "iq1_m") else base
    )


def _select_key_block(file_type: str, base: str, facts: ModelFacts) -> str:
    if facts.expert_count == _MIXTRAL_EXPERTS:
        return "q8_0"
    return {"iq3_xxs": "iq2_s", "iq3_xs": "iq3_xxs"}.get(file_type, base)


def _fit_scheme(block: str, inputs: int) -> MatrixScheme:
    """Returns the scheme of the block format, or of the narrower one that the row's length allows."""
    if inputs % BLOCKS[block][1]:
        block = _NARROW_ROWS.get(block, "iq4_nl")
        if inputs % BLOCKS[block][1]:
            block = "f16"
    return _SCHEMES[block]


_DOWN_MODULES: Final = frozenset(
    {"feed_forward.down", "mixture_of_experts.expert_down", "mixture_of_experts.shared_down"}
)


def _select_scheme(file_type: str, place: MatrixPath, facts: ModelFacts) -> MatrixScheme:
    base = FILE_TYPES[file_type]
    module = place.module
    if module in ("mixture_of_experts.router", "mixture_of_experts.shared_router"):
        return _SCHEMES["f32"]
    if file_type == "mxfp4_moe":
        return _fit_scheme("mxfp4" if ".expert_" in module else base, place.inputs)
    block = base
    if module.endswith((".value", ".key_value_up")):
        block = _select_value_block(file_type, base, place, facts)
    elif module.endswith(".key"):
        block = _select_key_block(file_type, base, facts)
    elif module in _DOWN_MODULES:
        block = _select_down_block(file_type, base, place)
    elif module == "attention.output":
        block = _select_output_block(file_type, base, facts)
    return _fit_scheme(block, place.inputs)


def _select_head_scheme(file_type: str, facts: ModelFacts, inputs: int) -> MatrixScheme:
    del facts
    base = FILE_TYPES[file_type]
    if base in ("f16", "q8_0"):
        block = base
    elif file_type in _LOW or file_type == "iq3_xxs":
        block = "q5_k"
    else:
        block = "q6_k"
    if inputs % BLOCKS[block][1]:
        block = "q8_0"
    return _SCHEMES[block]


def _select_table_scheme(file_type: str, facts: ModelFacts, inputs: int) -> MatrixScheme:
    if facts.tied:
        return _select_head_scheme(file_type, facts, inputs)
    block = FILE_TYPES[file_type]
    if file_type in ("iq2_s", "iq2_m", "iq3_xxs"):
        block = "iq3_s"
    elif file_type in _LOW:
        block = "q2_k"
    elif block in ("tq1_0", "tq2_0"):
        block = "q4_k"
    return _fit_scheme(block, inputs)


GGUF_FORMATS: Final[Mapping[str, WeightFormat]] = {
    f"gguf_{file_type}": WeightFormat(
        name=f"gguf_{file_type}",
        compute=NumberFormat.INT4 if base != "f16" else NumberFormat.FP16,
        mean_bits=_SCHEMES[base].element_bits,
        scheme_of=partial(_select_scheme, file_type),
        head=partial(_select_head_scheme, file_type),
        table=partial(_select_table_scheme, file_type),
        wide_bits=32.0,
        layer_key=partial(_build_layer_key, file_type),
    )
    for file_type, base in FILE_TYPES.items()
}
