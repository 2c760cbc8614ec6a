"""BERT and those of its descendants that one description of differences suffices for."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from service.formats.huggingface.encoders.heads import HeadPart, build_heads
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_unsupported_error,
    read_activation_function,
)
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelLayer
from service.planning.models.layers import SimpleLayer

SHARED_CLASSES: Mapping[str, tuple[HeadPart, ...]] = {
    "Model": (HeadPart.POOLER,),
    "ForMaskedLM": (HeadPart.WORDS,),
    "ForSequenceClassification": (HeadPart.POOLER, HeadPart.LABELS),
    "ForMultipleChoice": (HeadPart.POOLER, HeadPart.ONE),
    "ForTokenClassification": (HeadPart.TOKENWISE_LABELS,),
    "ForQuestionAnswering": (HeadPart.TOKENWISE_LABELS,),
}
_BERT_CLASSES = {
    **SHARED_CLASSES,
    "ForPreTraining": (HeadPart.WORDS, HeadPart.POOLER, HeadPart.TWO),
    "LMHeadModel": (HeadPart.WORDS,),
    "ForNextSentencePrediction": (HeadPart.POOLER, HeadPart.TWO),
}
ROBERTA_CLASSES = {**SHARED_CLASSES, "ForSequenceClassification": (HeadPart.DENSE, HeadPart.LABELS)}


class EncoderFamily(NamedTuple):
    """Differences of one kind of encoder from BERT."""

    classes: Mapping[str, tuple[HeadPart, ...]]
    hidden: str = "hidden_size"
    heads: str = "num_attention_heads"
    depth: str = "num_hidden_layers"
    inner: str = "intermediate_size"
    hidden_dropout: str = "hidden_dropout_prob"
    attention_dropout: str = "attention_probs_dropout_prob"
    positions: bool = True
    token_types: bool = True
    narrow_embeddings: bool = False
    always_projects: bool = False
    relative_buckets: bool = False
    second_bias: bool = True
    shares_layers: bool = False
    gated: bool = False
    bias: bool = True
    gate_bias: bool = True
    """False if of a gated feed-forward only the last matrix has a bias."""
    function: str = "hidden_act"
    usual_function: str = "gelu"


BERT = EncoderFamily(_BERT_CLASSES)
ROBERTA = EncoderFamily(ROBERTA_CLASSES)
_MOST_INNER = 16


def is_original_format(config: Mapping[str, object]) -> bool:
    """Returns true for the ``bert_config.json`` of the original release, which names no type."""
    return {"type_vocab_size", "num_hidden_layers", "hidden_dropout_prob"} <= config.keys()


def build_encoder(kind: EncoderFamily, reader: ConfigReader, suffix: str) -> Architecture:
    """Builds the encoder of a class: attention and feed-forward, a norm behind each."""
    reader.refuse_flags("is_decoder", "add_cross_attention")
    hidden, heads = reader.read_size(kind.hidden), reader.read_size(kind.heads)
    drops = reader.has_dropout(kind.hidden_dropout, default=0.1)
    embedding = reader.read_size("embedding_size") if kind.narrow_embeddings else hidden
    biased = kind.bias and kind.gate_bias
    layers: tuple[SimpleLayer, ...] = (
        build_attention(
            hidden,
            heads,
            bias=kind.bias,
            output_bias=kind.bias,
            dropout=reader.has_dropout(kind.attention_dropout, default=0.1),
            score_bias=kind.relative_buckets,
            heads_field=kind.heads,
        ),
        build_norm(hidden),
        build_mlp(
            hidden,
            reader.read_size(kind.inner),
            gated=kind.gated,
            bias=biased,
            function=read_activation_function(reader, kind.function, kind.usual_function),
            dropout=drops,
        ),
        *((build_learned_vectors("bias", hidden),) if kind.bias and not biased else ()),
        build_norm(hidden),
    )
    parts = kind.classes[suffix]
    tied = HeadPart.WORDS in parts and reader.read_flag("tie_word_embeddings", default=True)
    front: tuple[ModelLayer, ...] = ()
    if kind.always_projects or embedding != hidden:
        front = (build_linear(embedding, hidden),)
    if kind.relative_buckets:
        buckets = reader.read_size("relative_attention_num_buckets")
        front = (*front, build_learned_vectors("relative_positions", heads, buckets))
    behind: tuple[ModelLayer, ...] = ()
    if HeadPart.WORDS in parts:
        # The head's transform runs on every token before the logits.
        behind = (build_linear(hidden, embedding), build_norm(embedding))
    if HeadPart.EACH in parts:
        behind = (build_linear(hidden, hidden),)
    return Architecture(
        embeddings=ModelEmbeddings(
            size=embedding,
            vocabulary_size=reader.read_size("vocab_size"),
            position_count=reader.read_size("max_position_embeddings") if kind.positions else 0,
            token_type_count=reader.read_count("type_vocab_size") if kind.token_types else 0,
            norm="layer",
            dropout=drops,
        ),
        layers=(*front, *_repeat_layers(reader, kind, layers), *behind),
        heads=build_heads(reader, parts, hidden, embedding, second_bias=kind.second_bias and not tied),
        tied=("language_model",) if tied else (),
    )


def _repeat_layers(
    reader: ConfigReader, kind: EncoderFamily, layers: tuple[SimpleLayer, ...]
) -> tuple[ModelLayer, ...]:
    depth = reader.read_depth(kind.depth)
    if not kind.shares_layers:
        return (LayerBlock(layers=layers, count=depth),)
    groups, inner = reader.read_size_or("num_hidden_groups", 1), reader.read_size_or("inner_group_num", 1)
    if groups > depth:
        raise build_unsupported_error("num_hidden_groups", "more groups than layers are not supported")
    if inner > _MOST_INNER:
        raise build_unsupported_error(
            "inner_group_num", f"inner_group_num above {_MOST_INNER} is not supported"
        )
    inside = layers * inner
    # Layer i is a repetition of group i x groups / depth; every group is run in a row.
    counts = Counter(index * groups // depth for index in range(depth)).values()
    blocks: list[ModelLayer] = []
    for count in counts:
        blocks.append(LayerBlock(layers=inside))
        if count > 1:
            blocks.append(LayerBlock(layers=inside, reused=True, count=count - 1))
    return tuple(blocks)
