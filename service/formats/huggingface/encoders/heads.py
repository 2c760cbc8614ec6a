"""Parts behind the encoder of a class, by name: transform and logits, pooler, dense, labels."""

from enum import StrEnum

from service.formats.huggingface.parts import build_classifier, build_language_head, build_pooler
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import ModelHead


class HeadPart(StrEnum):
    """A part behind the encoder: transform and logits, a pooler, a dense layer, or labels."""

    LABELS = "labels"
    TOKENWISE_LABELS = "token labels"
    TWO = "two"
    ONE = "one"
    WORDS = "words"
    POOLER = "pooler"
    DENSE = "dense"
    EACH = "one for each token"


def build_heads(
    reader: ConfigReader, parts: tuple[HeadPart, ...], hidden: int, embedding: int, *, second_bias: bool
) -> tuple[ModelHead, ...]:
    """Builds the parts behind the encoder of a class, in order."""
    made = {
        HeadPart.POOLER: lambda: build_pooler(hidden),
        HeadPart.DENSE: lambda: build_pooler(hidden),
        HeadPart.WORDS: lambda: build_language_head(
            embedding, reader.read_size("vocab_size"), bias=True, second_bias=second_bias
        ),
        HeadPart.LABELS: lambda: build_classifier(hidden, reader.count_labels()),
        HeadPart.TOKENWISE_LABELS: lambda: build_classifier(hidden, reader.count_labels(), per_token=True),
        HeadPart.TWO: lambda: build_classifier(hidden, 2),
        HeadPart.ONE: lambda: build_classifier(hidden, 1),
        HeadPart.EACH: lambda: build_classifier(hidden, 1, per_token=True),
    }
    return tuple(made[name]() for name in parts)
