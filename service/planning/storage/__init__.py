"""How checkpoints and engines store weights: bits of an element, scales beside them, what stays wide."""

from service.planning.storage.gguf import GGUF_FORMATS
from service.planning.storage.named import NAMED_FORMATS, PLAIN_FORMATS
from service.planning.storage.scheme import MatrixScheme, ModelFacts, Place, WeightFormat

__all__ = [
    "GGUF_FORMATS",
    "NAMED_FORMATS",
    "PLAIN_FORMATS",
    "MatrixScheme",
    "ModelFacts",
    "Place",
    "WeightFormat",
]
