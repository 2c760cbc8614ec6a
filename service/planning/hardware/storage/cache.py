"""Formats of keys and values in a cache, with the scales that integers need."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from service.planning.precision import ELEMENT_BYTES, NumberFormat


class BlockFormat(StrEnum):
    """Block formats of ggml in which llama.cpp stores a cache."""

    Q8_0 = "q8_0"
    Q5_0 = "q5_0"
    Q4_0 = "q4_0"


class CacheFormat(NamedTuple):
    """Bytes of an element, and of the scales of one vector of one head."""

    element_bytes: float
    vector_bytes: float = 0.0


CACHE_FORMATS: Final[Mapping[NumberFormat | BlockFormat, CacheFormat]] = {
    **{number_format: CacheFormat(width) for number_format, width in ELEMENT_BYTES.items()},
    # One 16-bit scale per vector; four bits are asymmetric and add a zero point. FP8 caches scale a tensor.
    NumberFormat.INT8: CacheFormat(1.0, 2.0),
    NumberFormat.INT4: CacheFormat(0.5, 4.0),
    # NVFP4: an 8-bit scale for 16 elements.
    NumberFormat.FP4: CacheFormat(0.5 + 1.0 / 16),
    BlockFormat.Q8_0: CacheFormat(34 / 32),
    BlockFormat.Q5_0: CacheFormat(22 / 32),
    BlockFormat.Q4_0: CacheFormat(18 / 32),
}
