"""BERT: a post-norm encoder with learned positions, and the heads of its classes."""

from collections.abc import Mapping

from service.planning.architecture import Architecture, Block, Embeddings, Head, Layer
from service.planning.formats.huggingface.reader import ConfigReader, Family, head_size
from service.planning.layers import Attention, FeedForward, Linear, Normalization

_POOLED = ("Model", "ForPreTraining", "ForNextSentencePrediction", "ForSequenceClassification")
_WORDS = ("ForPreTraining", "ForMaskedLM", "LMHeadModel")
_CLASSES = (*_POOLED, *_WORDS[1:], "ForMultipleChoice", "ForTokenClassification", "ForQuestionAnswering")


def is_original_format(config: Mapping[str, object]) -> bool:
    """Whether this is the ``bert_config.json`` of the original release, which names no type."""
    return {"type_vocab_size", "num_hidden_layers", "hidden_dropout_prob"} <= config.keys()


def _classifier(reader: ConfigReader, suffix: str, hidden: int) -> tuple[Head, ...]:
    match suffix:
        case "ForPreTraining" | "ForNextSentencePrediction":
            outputs = 2
        case "ForMultipleChoice":
            outputs = 1
        case "ForSequenceClassification" | "ForTokenClassification" | "ForQuestionAnswering":
            outputs = reader.labels()
        case _:
            return ()
    per_token = suffix in ("ForTokenClassification", "ForQuestionAnswering")
    return (
        Head(
            kind="classifier",
            input_size=hidden,
            output_size=outputs,
            bias=True,
            per="token" if per_token else "sequence",
        ),
    )


def _bert(reader: ConfigReader, suffix: str) -> Architecture:
    reader.refuse("is_decoder", "add_cross_attention")
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    vocabulary = reader.size("vocab_size")
    norm = Normalization(size=hidden, norm="layer")
    drops = reader.drops("hidden_dropout_prob", default=0.1)
    attention = Attention(
        hidden_size=hidden,
        query_heads=heads,
        key_value_heads=heads,
        head_size=head_size(hidden, heads, "num_attention_heads"),
        causal=False,
        query_key_value_bias=True,
        output_bias=True,
        dropout=reader.drops("attention_probs_dropout_prob", default=0.1),
    )
    feed_forward = FeedForward(
        hidden_size=hidden, inner_size=reader.size("intermediate_size"), bias=True, dropout=drops
    )
    block = Block(layers=(attention, norm, feed_forward, norm), count=reader.depth("num_hidden_layers"))
    tied = suffix in _WORDS and reader.flag("tie_word_embeddings", default=True)
    layers: tuple[Layer, ...] = (block,)
    head_list: tuple[Head, ...] = ()
    if suffix in _WORDS:
        # The head's transform runs on every token before the logits.
        layers = (block, Linear(input_size=hidden, output_size=hidden, bias=True), norm)
        head_list = (
            Head(
                kind="language_model",
                input_size=hidden,
                output_size=vocabulary,
                bias=True,
                second_bias=not tied,
            ),
        )
    if suffix in (*_POOLED, "ForMultipleChoice"):
        pooler = Head(kind="pooler", input_size=hidden, output_size=hidden, bias=True, per="sequence")
        head_list = (*head_list, pooler)
    return Architecture(
        embeddings=Embeddings(
            size=hidden,
            vocabulary_size=vocabulary,
            position_count=reader.size("max_position_embeddings"),
            token_type_count=reader.size("type_vocab_size"),
            norm="layer",
            dropout=drops,
        ),
        layers=layers,
        heads=head_list + _classifier(reader, suffix, hidden),
        tied=("language_model",) if tied else (),
    )


FAMILIES: Mapping[str, Family] = {
    "bert": Family(
        "Bert",
        _bert,
        _CLASSES,
        "Model",
        "max_position_embeddings",
        {
            "vocab_size": 30_522,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "max_position_embeddings": 512,
            "type_vocab_size": 2,
        },
    ),
}
