"""Methods of quantization, each with the fields that it states."""

from collections.abc import Callable, Mapping
from typing import Final

from service.formats.quantization.compressed_tensors import read_compressed_tensors
from service.formats.quantization.modules import ModulePatterns, build_invalid_error, parse_modules
from service.formats.quantization.reader import QuantizationReader, read_bits
from service.formats.quantization.rules import SchemeRules
from service.planning.errors import PlanningError
from service.planning.hardware.storage import MatrixScheme
from service.planning.hardware.storage.named import (
    INT8_COLUMNS,
    MXFP4,
    NF4,
    NF4_DOUBLE,
    NVFP4,
    build_awq,
    build_fp8_blocks,
    build_fp8_tensor,
    build_gptq,
    build_scaled_columns,
)
from service.planning.precision import NumberFormat

_NGRAM_TABLE = "ngram_embedding"


def _read_gptq(reader: QuantizationReader) -> SchemeRules:
    scheme = build_gptq(read_bits(reader, "bits"), reader.read_integer("group_size", default=128, least=-1))
    dynamic = reader.fields.get("dynamic")
    named = [str(name) for name in dynamic] if isinstance(dynamic, Mapping) else []
    excluded = [f"re:{name.removeprefix('-:')}" for name in named if name.startswith("-:")]
    ignored = reader.read_modules("modules_to_not_convert").merge_with(
        parse_modules(excluded, f"{reader.pointer}/dynamic")
    )
    return SchemeRules(((None, scheme),), ignored, NumberFormat.INT4, head=reader.read_flag("lm_head"))


def _read_awq(reader: QuantizationReader) -> SchemeRules:
    scheme = build_awq(
        read_bits(reader, "bits", "w_bit", default=4),
        reader.read_integer("group_size", "q_group_size", default=128, least=-1),
        zero_point=reader.read_flag("zero_point", default=True),
    )
    return SchemeRules(((None, scheme),), reader.read_modules("modules_to_not_convert"), NumberFormat.INT4)


def _read_auto_round(reader: QuantizationReader) -> SchemeRules:
    bits = read_bits(reader, "bits", default=4)
    group = reader.read_integer("group_size", default=128, least=-1)
    packing = reader.fields.get("packing_format") or "auto_round:auto_gptq"
    scheme = (
        build_awq(bits, group) if "awq" in str(packing) else build_gptq(bits, group)._replace(input_bytes=0.0)
    )
    return SchemeRules(((None, scheme),), reader.read_modules("modules_to_not_convert"), NumberFormat.INT4)


def _read_fp8(reader: QuantizationReader) -> SchemeRules:
    block = reader.read_block("weight_block_size")
    static = reader.fields.get("activation_scheme") == "static"
    # The file gives columns of a block first; both sides are equal in every published checkpoint.
    scheme = build_fp8_blocks(block[1], block[0]) if block else build_fp8_tensor(static=static)
    ignored = reader.read_modules("modules_to_not_convert", "ignored_layers")
    experts = reader.fields.get("expert_dtype")
    if experts not in (None, "fp4", "fp8"):
        raise build_invalid_error(f"{reader.pointer}/expert_dtype", "known values are fp4 and fp8")
    packed = MXFP4 if experts == "fp4" else None
    lookups = _read_converted_tables(reader)
    return SchemeRules(((None, scheme),), ignored, NumberFormat.FP8, experts=packed, lookups=lookups)


def _read_converted_tables(reader: QuantizationReader) -> MatrixScheme | None:
    """Returns the scheme of the tables of n-grams that are in FP8 with one scale; None if they are not.

    Other embeddings are refused, because the name does not say which table of a model they are.
    """
    name = "modules_to_convert"
    found = reader.read_modules(name)
    if found.globs or found.expressions or any(n.split(".")[-1] != _NGRAM_TABLE for n in found.names):
        raise build_invalid_error(f"{reader.pointer}/{name}", f"may name {_NGRAM_TABLE} alone")
    return build_fp8_tensor() if found.names else None


def _read_fbgemm(reader: QuantizationReader) -> SchemeRules:
    ignored = reader.read_modules("modules_to_not_convert")
    return SchemeRules(((None, build_scaled_columns(8, 32.0)),), ignored, NumberFormat.FP8)


def _read_bitsandbytes(reader: QuantizationReader) -> SchemeRules:
    ignored = reader.read_modules("llm_int8_skip_modules")
    if reader.read_flag("load_in_4bit", "_load_in_4bit"):
        double = reader.read_flag("bnb_4bit_use_double_quant")
        return SchemeRules(((None, NF4_DOUBLE if double else NF4),), ignored, NumberFormat.INT4)
    if reader.read_flag("load_in_8bit", "_load_in_8bit"):
        return SchemeRules(((None, INT8_COLUMNS),), ignored, NumberFormat.INT8)
    raise PlanningError(
        "QUANTIZATION_UNKNOWN",
        f"{reader.pointer}/load_in_4bit",
        "neither load_in_4bit nor load_in_8bit is set",
    )


def _read_mxfp4(reader: QuantizationReader) -> SchemeRules:
    ignored = reader.read_modules("modules_to_not_convert")
    return SchemeRules(((None, MXFP4),), ignored, NumberFormat.FP4, experts_only=True)


def _read_eetq(reader: QuantizationReader) -> SchemeRules:
    ignored = reader.read_modules("modules_to_not_convert")
    return SchemeRules(((None, build_scaled_columns(8, 16.0)),), ignored, NumberFormat.INT8)


def _read_hqq(reader: QuantizationReader) -> SchemeRules:
    given = reader.fields.get("quant_config", reader.fields)
    inner = given.get("weight_quant_params") if isinstance(given, Mapping) else None
    if not isinstance(inner, Mapping):
        raise PlanningError(
            "CONFIG_FIELD_MISSING", f"{reader.pointer}/quant_config", "weight_quant_params is missing"
        )
    fields = QuantizationReader(inner, f"{reader.pointer}/quant_config/weight_quant_params")
    bits = read_bits(fields, "nbits")
    scheme = MatrixScheme(bits, 16.0, 16.0, fields.read_integer("group_size", default=64))
    return SchemeRules(((None, scheme),), reader.read_modules("skip_modules"), NumberFormat.INT4)


_MODELOPT = {
    "FP8": (build_fp8_tensor(static=True), NumberFormat.FP8),
    "FP8_PER_CHANNEL_PER_TOKEN": (build_scaled_columns(8, 32.0), NumberFormat.FP8),
    "FP8_PB_WO": (build_fp8_blocks(128, 128), NumberFormat.FP8),
    "NVFP4": (NVFP4, NumberFormat.FP4),
    "NVFP4_AWQ": (NVFP4, NumberFormat.FP4),
    "W4A16_AWQ": (build_awq(4, 128, zero_point=False), NumberFormat.INT4),
    "W8A8_SQ_PER_CHANNEL": (build_scaled_columns(8, 32.0), NumberFormat.INT8),
}


def _read_modelopt(reader: QuantizationReader) -> SchemeRules:
    inner = reader.fields.get("quantization")
    if isinstance(inner, Mapping):
        reader = QuantizationReader(inner, f"{reader.pointer}/quantization")
    algorithm = reader.fields.get("quant_algo")
    if algorithm not in _MODELOPT:
        raise PlanningError(
            "QUANTIZATION_UNKNOWN",
            f"{reader.pointer}/quant_algo",
            f"this algorithm is not known; known are {', '.join(_MODELOPT)}",
        )
    scheme, compute = _MODELOPT[str(algorithm)]
    ignored = reader.read_modules("ignore", "exclude_modules")
    return SchemeRules(((None, scheme),), ignored, compute, head=True)


MLX: Final = "mlx"
"""Method of a configuration of MLX, which states groups and bits and no method."""


def _read_mlx(reader: QuantizationReader) -> SchemeRules:
    scheme = MatrixScheme(read_bits(reader, "bits"), 16.0, 16.0, reader.read_integer("group_size"))
    if reader.fields.get("mode", "affine") != "affine":
        detail = "this mode is not known; known is affine"
        raise PlanningError("QUANTIZATION_UNKNOWN", f"{reader.pointer}/mode", detail)
    return SchemeRules(((None, scheme),), ModulePatterns(), NumberFormat.INT4, head=True, table=True)


METHODS: Mapping[str, Callable[[QuantizationReader], SchemeRules]] = {
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
    "compressed-tensors": read_compressed_tensors,
}
