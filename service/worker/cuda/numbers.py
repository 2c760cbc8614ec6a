"""The numbers of ``kernels/random.cu``, recomputed on the host: any element, without the others."""

from typing import Any

import numpy as np

from service.protocol.work.base import DType

Bits = np.ndarray[Any, np.dtype[np.uint64]]
Values = np.ndarray[Any, Any]

GOLDEN = 0x9E3779B97F4A7C15
SCALE = 2.6428998893999523e-05
"""sqrt(3) / 65536, which makes the standard deviation 1."""
FP4_E2M1 = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
"""Numbers of fp4 e2m1 from 0 on, in order."""
PART = 2**14
"""Elements of a part; twice as fast as parts that do not fit the cache of a processor."""
WRITE_STEP = np.uint32(0x9E3779B9)
"""Odd, so that the words that ``stream_write`` writes do not repeat within 2^32."""

FILLS: dict[DType, str] = {
    "fp64": "fill_fp64",
    "fp32": "fill_fp32",
    "tf32": "fill_fp32",
    "bf16": "fill_bf16",
    "fp16": "fill_fp16",
    "fp8_e4m3": "fill_fp8_e4m3",
    "int8": "fill_int8",
}
NORMAL = "sum of four uniform numbers, mean 0, deviation 1"
NORMAL_INT8 = "sum of four uniform numbers, mean 0, deviation 18.5, rounded"
WHOLE = "whole numbers, uniform below 2^22, as fp32"


def generate_bits(seed: int, places: Values) -> Bits:
    """Returns 64 random bits for each position, by splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    z = np.uint64(seed % 2**64) + (np.asarray(places, np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)), np.uint64)


def derive_seed(seed: int, array: int) -> int:
    """Derives a seed for each array of a run, unrelated to the others."""
    return int(generate_bits(seed, np.array([array]))[0])


def _generate_centred_sums(seed: int, places: Values) -> Values:
    bits, low = generate_bits(seed, places), np.uint64(65535)
    parts = [(bits >> np.uint64(shift) & low).astype(np.int64) for shift in (0, 16, 32, 48)]
    return np.asarray(sum(parts) - 2 * 65535)


def generate_normal(dtype: DType, seed: int, places: Values) -> Values:
    """Returns values of a filled matrix as float64, exactly those that the device holds."""
    whole = _generate_centred_sums(seed, places)
    if dtype == "int8":
        return ((whole + 1024) >> 11).astype(np.float64)
    if dtype == "fp64":
        return whole * SCALE
    single = whole.astype(np.float32) * np.float32(SCALE)
    match dtype:
        case "bf16":
            single = round_to_bf16(single)
        case "fp16":
            single = single.astype(np.float16)
        case "fp8_e4m3":
            single = round_to_fp8_e4m3(single)
    return single.astype(np.float64)


def generate_normal_run(dtype: DType, seed: int, first: int, count: int) -> Values:
    """Returns values of neighbouring positions, computed in parts that stay in the cache."""
    found = np.empty(count)
    for start in range(0, count, PART):
        places = np.arange(first + start, first + min(start + PART, count), dtype=np.int64)
        found[start : start + PART] = generate_normal(dtype, seed, places)
    return found


def generate_elements(fill: str, seed: int, places: Values) -> Values:
    """Returns elements of a factor of 8 or 4 bits by the kernel that filled it, as float64."""
    if fill == "fill_fp4_e2m1":
        single = _generate_centred_sums(seed, places).astype(np.float32) * np.float32(SCALE)
        return round_to_fp4_e2m1(single)
    return generate_normal("fp8_e4m3", seed, places)


def generate_scales(fill: str, seed: int, places: Values) -> Values:
    """Returns scales of blocks by the kernel that filled them, as float64: 0.5 to 2."""
    bits = generate_bits(seed, places)
    match fill:
        case "fill_ue8m0":
            return np.asarray(2.0 ** ((bits % np.uint64(3)).astype(np.int64) - 1))
        case "fill_ue4m3":
            return np.asarray(_list_fp8_e4m3_values()[(bits % np.uint64(17)).astype(np.int64) + 0x30])
        case _:
            return np.asarray(0.5 + (bits >> np.uint64(44)).astype(np.float64) * 2.0**-20)


def generate_words(seed: int, places: Values) -> Values:
    """Returns words of eight elements of 4 bits, as the device holds them."""
    return np.asarray((generate_bits(seed, places) >> np.uint64(32)).astype(np.uint32))


def generate_group_scales(seed: int, places: Values) -> Values:
    """Returns scales of groups of elements of 4 bits, as float64: bf16 from 2^-7 to 2^-5."""
    codes = generate_bits(seed, places) % np.uint64(256) + np.uint64(0x3C00)
    return decode_bf16(codes).astype(np.float64)


def round_to_fp4_e2m1(values: Values) -> Values:
    """Rounds values to the nearest number of fp4 e2m1, ties to the even code (OCP Microscaling, 5.3.3)."""
    return _round_to_table(values, FP4_E2M1)


def generate_integers(seed: int, places: Values) -> Values:
    """Returns values of a filled stream array, fp32."""
    return np.asarray((generate_bits(seed, places) >> np.uint64(42)).astype(np.float32))


def generate_written_words(seed: int, places: Values) -> Values:
    """Returns words that ``stream_write`` writes, 32 bits."""
    low = np.uint32(seed % 2**32)
    return np.asarray(low + np.asarray(places).astype(np.uint32) * WRITE_STEP, np.uint32)


def round_to_bf16(values: Values) -> Values:
    """Rounds fp32 values to bf16, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def decode_bf16(bits: Values) -> Values:
    """Converts bf16 as the device stores it to fp32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _list_fp8_e4m3_values() -> Values:
    """Returns the 127 numbers from 0 on, in order (OCP 8-bit Floating Point Specification, 5.2)."""
    codes = np.arange(127)
    exponents, mantissas = codes >> 3, codes & 7
    normal = (1 + mantissas / 8) * 2.0 ** (exponents - 7.0)
    return np.asarray(np.where(exponents == 0, mantissas * 2.0**-9, normal))


def round_to_fp8_e4m3(values: Values) -> Values:
    """Rounds values to the nearest number of fp8 e4m3, ties to the even code."""
    return _round_to_table(values, _list_fp8_e4m3_values())


def _round_to_table(values: Values, table: Values) -> Values:
    middles = (table[1:] + table[:-1]) / 2
    sizes = np.abs(np.asarray(values, np.float64))
    codes = np.searchsorted(middles, sizes, side="left")
    # On a tie the search finds the lower code; the even one may be the next.
    tie = (codes < middles.size) & (middles[np.minimum(codes, middles.size - 1)] == sizes) & (codes % 2 == 1)
    return np.asarray(np.copysign(table[codes + tie], values))


def decode_fp8_e4m3(codes: Values) -> Values:
    """Converts fp8 e4m3 as the device stores it; NaN of the one code that is no number."""
    table = np.append(_list_fp8_e4m3_values(), np.nan)
    return np.asarray(np.where(codes >= 128, -1.0, 1.0) * table[codes & 127])  # noqa: PLR2004  # the sign bit
