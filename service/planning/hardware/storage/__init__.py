"""Storage of weights in checkpoints and engines: bits of an element, scales, and unpacked tensors."""

from service.planning.hardware.storage.cache import CACHE_FORMATS, BlockFormat, CacheFormat
from service.planning.hardware.storage.gguf import GGUF_FORMATS
from service.planning.hardware.storage.named import NAMED_FORMATS, PLAIN_FORMATS
from service.planning.hardware.storage.scheme import MatrixPath, MatrixScheme, ModelFacts, WeightFormat

__all__ = [
    "CACHE_FORMATS",
    "GGUF_FORMATS",
    "NAMED_FORMATS",
    "PLAIN_FORMATS",
    "BlockFormat",
    "CacheFormat",
    "MatrixPath",
    "MatrixScheme",
    "ModelFacts",
    "WeightFormat",
]
