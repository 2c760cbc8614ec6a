"""Text encoders: BERT and its descendants, which differ by tables, norms, biases and heads."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from service.formats.huggingface.parts import (
    attend,
    classifier,
    conv_in_time,
    function_named,
    learned,
    linear,
    mlp,
    norm,
    part,
    pooler,
    query_and_value_bias,
    unsupported,
    whole,
    word,
    words,
)
from service.formats.huggingface.reader import ConfigReader, Family, as_blocks
from service.planning.models.architecture import Architecture, Block, Embeddings, Head, Layer
from service.planning.models.layers import SimpleLayer

# What a class has behind its encoder, in words: transform and logits, pooler, dense, labels...
_LABELS, _TOKEN_LABELS, _TWO, _ONE = "labels", "token labels", "two", "one"
_WORDS, _POOLER, _DENSE, _EACH = "words", "pooler", "dense", "one for each token"
_SHARED_CLASSES: Mapping[str, tuple[str, ...]] = {
    "Model": (_POOLER,),
    "ForMaskedLM": (_WORDS,),
    "ForSequenceClassification": (_POOLER, _LABELS),
    "ForMultipleChoice": (_POOLER, _ONE),
    "ForTokenClassification": (_TOKEN_LABELS,),
    "ForQuestionAnswering": (_TOKEN_LABELS,),
}
_BERT_CLASSES = {
    **_SHARED_CLASSES,
    "ForPreTraining": (_WORDS, _POOLER, _TWO),
    "LMHeadModel": (_WORDS,),
    "ForNextSentencePrediction": (_POOLER, _TWO),
}
_ROBERTA_CLASSES = {**_SHARED_CLASSES, "ForSequenceClassification": (_DENSE, _LABELS)}


class Encoder(NamedTuple):
    """What distinguishes one kind of encoder from BERT."""

    classes: Mapping[str, tuple[str, ...]]
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
    function: str = "hidden_act"
    usual_function: str = "gelu"


_BERT = Encoder(_BERT_CLASSES)
_MOST_INNER = 16


def is_original_format(config: Mapping[str, object]) -> bool:
    """Whether this is the ``bert_config.json`` of the original release, which names no type."""
    return {"type_vocab_size", "num_hidden_layers", "hidden_dropout_prob"} <= config.keys()


def _heads(
    reader: ConfigReader, parts: tuple[str, ...], hidden: int, embedding: int, *, second_bias: bool
) -> tuple[Head, ...]:
    made = {
        _POOLER: lambda: pooler(hidden),
        _DENSE: lambda: pooler(hidden),
        _WORDS: lambda: words(embedding, reader.size("vocab_size"), bias=True, second_bias=second_bias),
        _LABELS: lambda: classifier(hidden, reader.labels()),
        _TOKEN_LABELS: lambda: classifier(hidden, reader.labels(), per_token=True),
        _TWO: lambda: classifier(hidden, 2),
        _ONE: lambda: classifier(hidden, 1),
        _EACH: lambda: classifier(hidden, 1, per_token=True),
    }
    return tuple(made[name]() for name in parts)


def _repeated(reader: ConfigReader, kind: Encoder, layers: tuple[SimpleLayer, ...]) -> tuple[Layer, ...]:
    depth = reader.depth(kind.depth)
    if not kind.shares_layers:
        return (Block(layers=layers, count=depth),)
    groups, inner = reader.size_or("num_hidden_groups", 1), reader.size_or("inner_group_num", 1)
    if groups > depth:
        raise unsupported("num_hidden_groups", "more groups than layers are not supported")
    if inner > _MOST_INNER:
        raise unsupported("inner_group_num", f"inner_group_num above {_MOST_INNER} is not supported")
    inside = layers * inner
    # Layer i is a repetition of group i x groups / depth; every group is run in a row.
    counts = Counter(index * groups // depth for index in range(depth)).values()
    blocks: list[Layer] = []
    for count in counts:
        blocks.append(Block(layers=inside))
        if count > 1:
            blocks.append(Block(layers=inside, reused=True, count=count - 1))
    return tuple(blocks)


def _encoder(kind: Encoder, reader: ConfigReader, suffix: str) -> Architecture:
    reader.refuse("is_decoder", "add_cross_attention")
    hidden, heads = reader.size(kind.hidden), reader.size(kind.heads)
    drops = reader.drops(kind.hidden_dropout, default=0.1)
    embedding = reader.size("embedding_size") if kind.narrow_embeddings else hidden
    layers: tuple[SimpleLayer, ...] = (
        attend(
            hidden,
            heads,
            bias=kind.bias,
            output_bias=kind.bias,
            dropout=reader.drops(kind.attention_dropout, default=0.1),
            score_bias=kind.relative_buckets,
            heads_field=kind.heads,
        ),
        norm(hidden),
        mlp(
            hidden,
            reader.size(kind.inner),
            gated=kind.gated,
            bias=kind.bias,
            function=function_named(reader, kind.function, kind.usual_function),
            dropout=drops,
        ),
        norm(hidden),
    )
    parts = kind.classes[suffix]
    tied = _WORDS in parts and reader.flag("tie_word_embeddings", default=True)
    front: tuple[Layer, ...] = ()
    if kind.always_projects or embedding != hidden:
        front = (linear(embedding, hidden),)
    if kind.relative_buckets:
        buckets = reader.size("relative_attention_num_buckets")
        front = (*front, learned("relative_positions", heads, buckets))
    behind: tuple[Layer, ...] = ()
    if _WORDS in parts:
        # The head's transform runs on every token before the logits.
        behind = (linear(hidden, embedding), norm(embedding))
    if _EACH in parts:
        behind = (linear(hidden, hidden),)
    return Architecture(
        embeddings=Embeddings(
            size=embedding,
            vocabulary_size=reader.size("vocab_size"),
            position_count=reader.size("max_position_embeddings") if kind.positions else 0,
            token_type_count=reader.size("type_vocab_size") if kind.token_types else 0,
            norm="layer",
            dropout=drops,
        ),
        layers=(*front, *_repeated(reader, kind, layers), *behind),
        heads=_heads(reader, parts, hidden, embedding, second_bias=kind.second_bias and not tied),
        tied=("language_model",) if tied else (),
    )


_MODERN_CLASSES: Mapping[str, tuple[str, ...]] = {
    "Model": (),
    "ForMaskedLM": (_WORDS,),
    "ForSequenceClassification": (_LABELS,),
    "ForMultipleChoice": (_ONE,),
    "ForTokenClassification": (_TOKEN_LABELS,),
    "ForQuestionAnswering": (_TOKEN_LABELS,),
}


def _modernbert_windows(reader: ConfigReader, depth: int) -> list[int | None]:
    """The whole sequence in every ``global_attn_every_n_layers``-th layer, else a window."""
    window = reader.size("local_attention")
    kinds = reader.config.get("layer_types")
    if kinds is None:
        every = reader.size("global_attn_every_n_layers")
        return [window if index % every else None for index in range(depth)]
    if not isinstance(kinds, list) or len(kinds) != depth:
        raise unsupported("layer_types", "layer_types must name a kind for every layer")
    return [window if kind == "sliding_attention" else None for kind in kinds]


def _modernbert(reader: ConfigReader, suffix: str) -> Architecture:
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    shift, bias = reader.flag("norm_bias"), reader.flag("attention_bias")
    feed_forward = mlp(hidden, reader.size("intermediate_size"), gated=True, bias=reader.flag("mlp_bias"))
    before = norm(hidden, shift=shift)
    windows = _modernbert_windows(reader, reader.depth("num_hidden_layers"))
    contents = [
        (
            *((before,) if index else ()),
            attend(hidden, heads, bias=bias, output_bias=bias, window=window),
            before,
            feed_forward,
        )
        for index, window in enumerate(windows)
    ]
    parts = _MODERN_CLASSES[suffix]
    tied = _WORDS in parts and reader.flag("tie_word_embeddings", default=True)
    behind: tuple[Layer, ...] = (before,)
    if parts:
        behind = (before, linear(hidden, hidden, bias=reader.flag("classifier_bias")), before)
    made = _heads(reader, parts, hidden, hidden, second_bias=False)
    if _WORDS in parts:
        bias = reader.flag("decoder_bias", default=True)
        made = (words(hidden, reader.size("vocab_size"), bias=bias),)
    return Architecture(
        embeddings=Embeddings(
            size=hidden, vocabulary_size=reader.size("vocab_size"), norm="layer" if shift else "rms"
        ),
        layers=(*as_blocks(contents), *behind),
        heads=made,
        tied=("language_model",) if tied else (),
    )


_DEBERTA_CLASSES: Mapping[str, tuple[str, ...]] = {
    "Model": (),
    "ForMaskedLM": (_WORDS,),
    "ForSequenceClassification": (_POOLER, _LABELS),
    "ForTokenClassification": (_TOKEN_LABELS,),
    "ForQuestionAnswering": (_TOKEN_LABELS,),
}


def _position_terms(reader: ConfigReader) -> frozenset[str]:
    """Which of ``c2p`` and ``p2c`` are scored; a list, or names between bars."""
    value = reader.config.get("pos_att_type") or []
    names = value.lower().split("|") if isinstance(value, str) else value
    if not isinstance(names, list):
        raise unsupported("pos_att_type", "pos_att_type must name c2p and p2c")
    terms = frozenset(str(name).strip() for name in names)
    if unknown := terms - {"c2p", "p2c", "p2p", "none"}:
        raise unsupported("pos_att_type", f"{min(unknown)} is not known")
    return terms


def _relative_projections(reader: ConfigReader, hidden: int, *, second: bool) -> tuple[SimpleLayer, ...]:
    if not reader.flag("relative_attention") or (second and reader.flag("share_att_key")):
        return ()
    terms = _position_terms(reader)
    made = []
    if "c2p" in terms:
        made.append(linear(hidden, hidden, bias=second))
    if "p2c" in terms:
        made.append(linear(hidden, hidden))
    return tuple(made)


def _relative_table(reader: ConfigReader, hidden: int, *, second: bool) -> tuple[Layer, ...]:
    normed = second and "layer_norm" in word(reader, "norm_rel_ebd", "none")
    behind: tuple[Layer, ...] = (norm(hidden),) if normed else ()
    if not reader.flag("relative_attention"):
        return behind
    # Zero or a negative number stands for as many as there are positions.
    most = reader.config.get("max_relative_positions", -1)
    if not isinstance(most, int) or most < 1:
        most = reader.size("max_position_embeddings")
    buckets = reader.config.get("position_buckets", -1) if second else -1
    if isinstance(buckets, int) and buckets > 0:
        most = buckets
    table = learned("relative_positions", hidden, 2 * most)
    return (table, *behind)


def _deberta(reader: ConfigReader, suffix: str, *, second: bool = False) -> Architecture:
    reader.refuse("talking_head")
    hidden, heads = reader.size("hidden_size"), reader.size("num_attention_heads")
    embedding = reader.size_or("embedding_size", hidden)
    drops = reader.drops("hidden_dropout_prob", default=0.1)
    positioned = reader.flag("position_biased_input", default=True)
    attention = attend(
        hidden,
        heads,
        bias=second,
        dropout=reader.drops("attention_probs_dropout_prob", default=0.1),
        score_bias=reader.flag("relative_attention"),
    )
    own: tuple[SimpleLayer, ...] = () if second else (query_and_value_bias(hidden),)
    layers = (
        attention,
        *own,
        *_relative_projections(reader, hidden, second=second),
        norm(hidden),
        mlp(hidden, reader.size("intermediate_size"), dropout=drops),
        norm(hidden),
    )
    kernel = whole(reader, "conv_kernel_size") if second else 0
    behind: tuple[Layer, ...] = _relative_table(reader, hidden, second=second)
    if kernel:
        groups = reader.size_or("conv_groups", 1)
        if groups > 1:
            raise unsupported("conv_groups", "conv_groups above 1 is not supported")
        behind = (*behind, part(conv_in_time(hidden, hidden, kernel), norm(hidden)))
    parts = _DEBERTA_CLASSES[suffix]
    tied = _WORDS in parts and reader.flag("tie_word_embeddings", default=True)
    if _WORDS in parts:
        behind = (*behind, linear(hidden, embedding), norm(embedding))
    front: tuple[Layer, ...] = (linear(embedding, hidden, bias=False),) if embedding != hidden else ()
    return Architecture(
        embeddings=Embeddings(
            size=embedding,
            vocabulary_size=reader.size("vocab_size"),
            position_count=reader.size("max_position_embeddings") if positioned else 0,
            token_type_count=whole(reader, "type_vocab_size"),
            norm="layer",
            dropout=drops,
        ),
        layers=(*front, Block(layers=layers, count=reader.depth("num_hidden_layers")), *behind),
        heads=_heads(reader, parts, hidden, embedding, second_bias=not tied),
        tied=("language_model",) if tied else (),
    )


_SIZES = {
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}


def _family(prefix: str, kind: Encoder, **defaults: int) -> Family:
    return Family(
        prefix,
        partial(_encoder, kind),
        tuple(kind.classes),
        "Model",
        "max_position_embeddings",
        {**_SIZES, **defaults},
    )


_ROBERTA = Encoder(_ROBERTA_CLASSES)

FAMILIES: Mapping[str, Family] = {
    "bert": _family("Bert", _BERT),
    "roberta": _family("Roberta", _ROBERTA, vocab_size=50_265),
    "xlm-roberta": _family("XLMRoberta", _ROBERTA),
    "camembert": _family("Camembert", _ROBERTA),
    "albert": _family(
        "Albert",
        Encoder(
            {
                **_SHARED_CLASSES,
                "ForPreTraining": (_WORDS, _POOLER, _LABELS),
            },
            narrow_embeddings=True,
            usual_function="gelu_new",
            always_projects=True,
            shares_layers=True,
        ),
        vocab_size=30_000,
        embedding_size=128,
        hidden_size=4096,
        num_attention_heads=64,
        intermediate_size=16_384,
    ),
    "electra": _family(
        "Electra",
        Encoder(
            {
                "Model": (),
                "ForPreTraining": (_EACH,),
                "ForMaskedLM": (_WORDS,),
                "ForSequenceClassification": (_DENSE, _LABELS),
                "ForTokenClassification": (_TOKEN_LABELS,),
                "ForQuestionAnswering": (_TOKEN_LABELS,),
            },
            narrow_embeddings=True,
            second_bias=False,
        ),
        embedding_size=128,
        hidden_size=256,
        num_attention_heads=4,
        intermediate_size=1024,
    ),
    "distilbert": Family(
        "DistilBert",
        partial(
            _encoder,
            Encoder(
                {
                    "Model": (),
                    "ForMaskedLM": (_WORDS,),
                    "ForSequenceClassification": (_DENSE, _LABELS),
                    "ForMultipleChoice": (_DENSE, _ONE),
                    "ForTokenClassification": (_TOKEN_LABELS,),
                    "ForQuestionAnswering": (_TOKEN_LABELS,),
                },
                hidden="dim",
                heads="n_heads",
                depth="n_layers",
                inner="hidden_dim",
                function="activation",
                hidden_dropout="dropout",
                attention_dropout="attention_dropout",
                token_types=False,
                second_bias=False,
            ),
        ),
        (
            "Model",
            "ForMaskedLM",
            "ForSequenceClassification",
            "ForMultipleChoice",
            "ForTokenClassification",
            "ForQuestionAnswering",
        ),
        "Model",
        "max_position_embeddings",
        {
            "vocab_size": 30_522,
            "max_position_embeddings": 512,
            "n_layers": 6,
            "n_heads": 12,
            "dim": 768,
            "hidden_dim": 3072,
        },
    ),
    "mpnet": _family(
        "MPNet",
        Encoder(_ROBERTA_CLASSES, token_types=False, relative_buckets=True),
        vocab_size=30_527,
        relative_attention_num_buckets=32,
    ),
    "nomic_bert": _family(
        "NomicBert",
        Encoder(
            {
                "Model": (),
                "ForMaskedLM": (_WORDS,),
                "ForSequenceClassification": (_POOLER, _LABELS),
                "ForTokenClassification": (_TOKEN_LABELS,),
            },
            positions=False,
            gated=True,
            bias=False,
        ),
        vocab_size=30_528,
        max_position_embeddings=2048,
    ),
    "modernbert": Family(
        "ModernBert",
        _modernbert,
        tuple(_MODERN_CLASSES),
        "Model",
        "max_position_embeddings",
        {
            "vocab_size": 50_368,
            "hidden_size": 768,
            "intermediate_size": 1152,
            "num_hidden_layers": 22,
            "num_attention_heads": 12,
            "max_position_embeddings": 8192,
            "local_attention": 128,
            "global_attn_every_n_layers": 3,
        },
    ),
    "deberta": Family(
        "Deberta",
        _deberta,
        tuple(_DEBERTA_CLASSES),
        "Model",
        "max_position_embeddings",
        {**_SIZES, "vocab_size": 50_265},
    ),
    "deberta-v2": Family(
        "DebertaV2",
        partial(_deberta, second=True),
        (*_DEBERTA_CLASSES,),
        "Model",
        "max_position_embeddings",
        {
            **_SIZES,
            "vocab_size": 128_100,
            "hidden_size": 1536,
            "num_hidden_layers": 24,
            "num_attention_heads": 24,
            "intermediate_size": 6144,
        },
    ),
}
