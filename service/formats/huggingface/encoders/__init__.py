"""Text encoders: BERT and its descendants, which differ by tables, norms, biases and heads."""

from service.formats.huggingface.encoders.bert import is_original_format
from service.formats.huggingface.encoders.families import FAMILIES

__all__ = ["FAMILIES", "is_original_format"]
