"""Format of keys and values."""

from collections.abc import Mapping

from service.formats.quantization.modules import build_invalid_error
from service.formats.quantization.reader import QuantizationReader
from service.planning.errors import PlanningError
from service.planning.precision import NumberFormat

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


def read_cache(reader: QuantizationReader) -> NumberFormat | None:
    """Returns the format of keys and values: a scheme (compressed-tensors) or an algorithm (ModelOpt)."""
    inner = reader.fields.get("quantization")
    if isinstance(inner, Mapping):
        reader = QuantizationReader(inner, f"{reader.pointer}/quantization")
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
        raise build_invalid_error(pointer, "must be an object")
    algorithm, pointer = reader.fields.get("kv_cache_quant_algo"), f"{reader.pointer}/kv_cache_quant_algo"
    if not isinstance(algorithm, str | None) or algorithm not in _CACHE_ALGORITHMS:
        known = ", ".join(str(name) for name in _CACHE_ALGORITHMS if name)
        raise PlanningError(
            "QUANTIZATION_UNKNOWN", pointer, f"this algorithm is not known; known are {known}"
        )
    return _CACHE_ALGORITHMS[algorithm]
