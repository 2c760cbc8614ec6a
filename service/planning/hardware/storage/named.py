"""Weight formats by name: plain widths, and the layouts of quantisation tools at their usual settings.

Layouts: GPTQ (Frantar et al. 2022) and AWQ (Lin et al. 2023) as AutoGPTQ and AutoAWQ pack them; FP8 with one
scale per tensor, per column or per block of 128 x 128 (DeepSeek-V3 2024, section 3.3.2); LLM.int8 and NF4
(Dettmers et al. 2022, 2023; double quantisation stores the scales in 8 bit and an FP32 scale for 256 of
them); MXFP4 (OCP Microscaling 1.0: 32 elements share an 8-bit exponent); NVFP4 (16 elements share an FP8
scale, a matrix an FP32 one).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.planning.hardware.storage.scheme import MatrixPath, MatrixScheme, ModelFacts, WeightFormat
from service.planning.precision import ELEMENT_BITS, NumberFormat

WIDE: Final = MatrixScheme(16.0)

ALWAYS_WIDE: Final = frozenset(
    {
        "mixture_of_experts.router",
        "mixture_of_experts.shared_router",
        "latent_attention.index_pool_gate",
        "compressed_attention.compressor_key_value",
        "compressed_attention.compressor_gate",
        "compressed_attention.index_key_value",
        "compressed_attention.index_gate",
        "compressed_attention.index_weight",
    }
)
"""Matrices that quantisation tools and engines leave in high precision: they choose experts, weigh the tokens
of an entry, or choose entries.
"""

EXPERT_MODULES: Final = frozenset(f"mixture_of_experts.expert_{name}" for name in ("gate", "up", "down"))


def build_gptq(bits: int, group: int) -> MatrixScheme:
    """Builds packed integers, a 16-bit scale and zero point per group, and the group of each input."""
    return MatrixScheme(bits, 16.0, bits, max(group, 0), input_bytes=4.0)


def build_awq(bits: int, group: int, *, zero_point: bool = True) -> MatrixScheme:
    """Builds packed integers with a 16-bit scale and, if asymmetric, a packed zero point per group."""
    return MatrixScheme(bits, 16.0, bits if zero_point else 0.0, max(group, 0))


def build_fp8_tensor(*, static: bool = False) -> MatrixScheme:
    """Builds one FP32 scale per matrix, and one of its input where that is static."""
    return MatrixScheme(8.0, matrix_bytes=8.0 if static else 4.0)


def build_scaled_columns(bits: int, scale_bits: float) -> MatrixScheme:
    """Builds a scale for every output."""
    return MatrixScheme(bits, scale_bits)


def build_fp8_blocks(inputs: int, outputs: int) -> MatrixScheme:
    """Builds one FP32 scale per block."""
    return MatrixScheme(8.0, 32.0, 0.0, inputs, outputs)


INT8_COLUMNS: Final = build_scaled_columns(8, 32.0)
NF4: Final = MatrixScheme(4.0, 32.0, 0.0, 64, matrix_bytes=64.0)
NF4_DOUBLE: Final = MatrixScheme(4.0, 8.0 + 32.0 / 256.0, 0.0, 64, matrix_bytes=64.0 + 1024.0 + 4.0)
MXFP4: Final = MatrixScheme(4.0, 8.0, 0.0, 32)
NVFP4: Final = MatrixScheme(4.0, 8.0, 0.0, 16, matrix_bytes=8.0)


def build_uniform_format(
    name: str,
    scheme: MatrixScheme,
    compute: NumberFormat,
    *,
    wide: MatrixScheme = WIDE,
    experts_only: bool = False,
    copies_tied_head: bool = False,
) -> WeightFormat:
    """Builds a format that packs all matrices inside blocks, or all routed experts, alike."""

    def select_scheme(place: MatrixPath, facts: ModelFacts) -> MatrixScheme:
        del facts
        packed = place.module in EXPERT_MODULES if experts_only else place.module not in ALWAYS_WIDE
        return scheme if packed else wide

    def select_outer_scheme(facts: ModelFacts, size: int) -> MatrixScheme:
        del facts, size
        return wide

    groups = max(1, scheme.group_inputs) * max(1, scheme.group_outputs)
    overhead = (scheme.scale_bits + scheme.zero_bits) / groups if scheme.group_inputs else 0.0
    return WeightFormat(
        name=name,
        compute=compute,
        mean_bits=scheme.element_bits + overhead,
        scheme_of=select_scheme,
        head=select_outer_scheme,
        table=select_outer_scheme,
        wide_bits=wide.element_bits,
        copies_tied_head=copies_tied_head,
    )


PLAIN_FORMATS: Final[Mapping[NumberFormat, WeightFormat]] = {
    number_format: build_uniform_format(
        number_format.value,
        MatrixScheme(float(bits)),
        number_format,
        wide=MatrixScheme(float(max(bits, ELEMENT_BITS[NumberFormat.BF16]))),
    )
    for number_format, bits in ELEMENT_BITS.items()
}
"""Formats of elements without scales; below 16 bit only matrices inside blocks are narrow."""

PADDED_INPUTS: Final = 256
"""Multiple to which vLLM's kernels pad the inputs of MXFP4 experts."""


def pad_expert_inputs(weight_format: WeightFormat) -> WeightFormat:
    """Returns the format as laid out by an engine whose kernels pad the inputs of experts."""

    def select_scheme(place: MatrixPath, facts: ModelFacts) -> MatrixScheme:
        scheme = weight_format.scheme_of(place, facts)
        packed = place.module in EXPERT_MODULES and scheme.element_bits < WIDE.element_bits
        return scheme._replace(padded_inputs=PADDED_INPUTS) if packed else scheme

    return replace(weight_format, scheme_of=select_scheme)


_F8, _I8, _F4, _I4 = NumberFormat.FP8, NumberFormat.INT8, NumberFormat.FP4, NumberFormat.INT4

NAMED_FORMATS: Final[Mapping[str, WeightFormat]] = {
    item.name: item
    for item in (
        build_uniform_format("fp8_tensor", build_fp8_tensor(), _F8),
        build_uniform_format("fp8_channel", build_scaled_columns(8, 16.0), _F8),
        build_uniform_format("fp8_block_128", build_fp8_blocks(128, 128), _F8, copies_tied_head=True),
        build_uniform_format("fbgemm_fp8", build_scaled_columns(8, 32.0), _F8),
        build_uniform_format("int8_channel", build_scaled_columns(8, 16.0), _I8),
        build_uniform_format("gptq_int4_g128", build_gptq(4, 128), _I4),
        build_uniform_format("gptq_int8_g128", build_gptq(8, 128), _I4),
        build_uniform_format("awq_int4_g128", build_awq(4, 128), _I4, copies_tied_head=True),
        build_uniform_format("bnb_int8", INT8_COLUMNS, _I8),
        build_uniform_format("bnb_nf4", NF4, _I4),
        build_uniform_format("bnb_nf4_double_quant", NF4_DOUBLE, _I4),
        build_uniform_format("mxfp4", MXFP4, _F4, experts_only=True),
        build_uniform_format("nvfp4", NVFP4, _F4),
    )
}

MXFP4_ENGINE_FORMAT: Final = pad_expert_inputs(NAMED_FORMATS["mxfp4"])
