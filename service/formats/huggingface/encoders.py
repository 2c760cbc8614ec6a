"""Text encoders: BERT and its descendants, which differ by tables, norms, biases and heads."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from service.formats.huggingface.parts import (
    build_attention,
    build_classifier,
    build_language_head,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_pooler,
    build_query_value_bias,
    build_time_convolution,
    build_unsupported_error,
    read_activation_function,
    read_choice,
    read_count_or_zero,
)
from service.formats.huggingface.reader import ConfigReader, ModelFamily, build_blocks
from service.planning.models.architecture import (
    Architecture,
    LayerBlock,
    ModelEmbeddings,
    ModelHead,
    ModelLayer,
)
from service.planning.models.layers import MixtureOfExperts, SimpleLayer

# Parts behind the encoder of a class, in words: transform and logits, pooler, dense, labels...
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


class EncoderFamily(NamedTuple):
    """Differences of one kind of encoder from BERT."""

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
    gate_bias: bool = True
    """False if of a gated feed-forward only the last matrix has a bias."""
    function: str = "hidden_act"
    usual_function: str = "gelu"


_BERT = EncoderFamily(_BERT_CLASSES)
_MOST_INNER = 16


def is_original_format(config: Mapping[str, object]) -> bool:
    """Returns true for the ``bert_config.json`` of the original release, which names no type."""
    return {"type_vocab_size", "num_hidden_layers", "hidden_dropout_prob"} <= config.keys()


def _build_heads(
    reader: ConfigReader, parts: tuple[str, ...], hidden: int, embedding: int, *, second_bias: bool
) -> tuple[ModelHead, ...]:
    made = {
        _POOLER: lambda: build_pooler(hidden),
        _DENSE: lambda: build_pooler(hidden),
        _WORDS: lambda: build_language_head(
            embedding, reader.read_size("vocab_size"), bias=True, second_bias=second_bias
        ),
        _LABELS: lambda: build_classifier(hidden, reader.count_labels()),
        _TOKEN_LABELS: lambda: build_classifier(hidden, reader.count_labels(), per_token=True),
        _TWO: lambda: build_classifier(hidden, 2),
        _ONE: lambda: build_classifier(hidden, 1),
        _EACH: lambda: build_classifier(hidden, 1, per_token=True),
    }
    return tuple(made[name]() for name in parts)


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


def _build_encoder(kind: EncoderFamily, reader: ConfigReader, suffix: str) -> Architecture:
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
    tied = _WORDS in parts and reader.read_flag("tie_word_embeddings", default=True)
    front: tuple[ModelLayer, ...] = ()
    if kind.always_projects or embedding != hidden:
        front = (build_linear(embedding, hidden),)
    if kind.relative_buckets:
        buckets = reader.read_size("relative_attention_num_buckets")
        front = (*front, build_learned_vectors("relative_positions", heads, buckets))
    behind: tuple[ModelLayer, ...] = ()
    if _WORDS in parts:
        # The head's transform runs on every token before the logits.
        behind = (build_linear(hidden, embedding), build_norm(embedding))
    if _EACH in parts:
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
        heads=_build_heads(reader, parts, hidden, embedding, second_bias=kind.second_bias and not tied),
        tied=("language_model",) if tied else (),
    )


def _build_jina(reader: ConfigReader, suffix: str) -> Architecture:
    """XLM-RoBERTa, and jina-embeddings-v3 under its name: rotary positions, an adapter for each task."""
    adapters = reader.config.get("lora_adaptations")
    rotary = reader.read_value("position_embedding_type") == "rotary"
    plain = _build_encoder(_ROBERTA._replace(positions=not rotary), reader, suffix)
    if adapters is None:
        return plain
    if not isinstance(adapters, list) or suffix != "Model":
        raise build_unsupported_error(
            "lora_adaptations", "only a list of tasks of the bare model is known here"
        )
    hidden, rank = reader.read_size("hidden_size"), reader.read_size("lora_rank") * len(adapters)
    inner, depth = reader.read_size("intermediate_size"), reader.read_depth("num_hidden_layers")
    tables = reader.read_size("vocab_size") + reader.read_count("type_vocab_size") + 2 * hidden
    # Both factors of each product: of the query, key and value as one, of the output, the two matrices
    # of the feed-forward, and of the pooler; and of the two tables.
    matrices = depth * (4 * hidden + 2 * hidden + 2 * (hidden + inner)) + 2 * hidden
    added = build_learned_vectors("modulation", rank, matrices + tables)
    return replace(plain, layers=(*plain.layers, added))


_FIRST_NOMIC_NAMES = {
    "hidden_size": ("n_embd",),
    "num_attention_heads": ("n_head",),
    "num_hidden_layers": ("n_layer",),
    "intermediate_size": ("n_inner",),
    "max_position_embeddings": ("n_positions",),
}


def _build_nomic(reader: ConfigReader, suffix: str) -> Architecture:
    """Nomic: as transformers has it, or as its own code has it, with experts in each second layer or so."""
    if "n_embd" not in reader.config:
        return _build_encoder(_NOMIC, reader, suffix)
    if suffix != "Model":
        raise build_unsupported_error("architectures/0", "of this code only NomicBertModel is known here")
    reader.refuse_flags("prenorm", "parallel_block", "use_rms_norm", "causal", "add_pooling_layer")
    reader.names = {**reader.names, **_FIRST_NOMIC_NAMES}
    hidden, inner = reader.read_size("hidden_size"), reader.read_size("intermediate_size")
    bias, up, down = (reader.read_flag(name) for name in ("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"))
    if up is not down:
        raise build_unsupported_error("mlp_fc1_bias", "only known where it equals mlp_fc2_bias")
    gated = str(reader.config.get("activation_function")) in ("swiglu", "geglu", "glu")
    attention = build_attention(
        hidden, reader.read_size("num_attention_heads"), bias=bias, output_bias=bias, heads_field="n_head"
    )
    dense: tuple[SimpleLayer, ...] = (build_mlp(hidden, inner, gated=gated, bias=up),)
    step, experts = reader.read_count("moe_every_n_layers"), dense
    if step:
        experts = (
            MixtureOfExperts(
                hidden_size=hidden,
                expert_count=reader.read_size("num_experts"),
                experts_per_token=reader.read_size("moe_top_k"),
                expert_inner_size=inner,
                gated=gated,
            ),
            build_learned_vectors("bias", hidden),
        )
    norm = build_norm(hidden)
    contents = [
        (attention, norm, *(experts if step and index % step == 1 else dense), norm)
        for index in range(reader.read_depth("num_hidden_layers"))
    ]
    table = ModelEmbeddings(
        size=hidden,
        vocabulary_size=reader.read_size("vocab_size"),
        token_type_count=reader.read_count("type_vocab_size"),
        norm="layer",
    )
    return Architecture(embeddings=table, layers=build_blocks(contents))


_MODERN_CLASSES: Mapping[str, tuple[str, ...]] = {
    "Model": (),
    "ForMaskedLM": (_WORDS,),
    "ForSequenceClassification": (_LABELS,),
    "ForMultipleChoice": (_ONE,),
    "ForTokenClassification": (_TOKEN_LABELS,),
    "ForQuestionAnswering": (_TOKEN_LABELS,),
}


def _list_modernbert_windows(reader: ConfigReader, depth: int) -> list[int | None]:
    """The whole sequence in every ``global_attn_every_n_layers``-th layer, else a window."""
    window = reader.read_size("local_attention")
    kinds = reader.config.get("layer_types")
    if kinds is None:
        every = reader.read_size("global_attn_every_n_layers")
        return [window if index % every else None for index in range(depth)]
    if not isinstance(kinds, list) or len(kinds) != depth:
        raise build_unsupported_error("layer_types", "layer_types must name a kind for every layer")
    return [window if kind == "sliding_attention" else None for kind in kinds]


def _build_modernbert(reader: ConfigReader, suffix: str) -> Architecture:
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    shift, bias = reader.read_flag("norm_bias"), reader.read_flag("attention_bias")
    feed_forward = build_mlp(
        hidden, reader.read_size("intermediate_size"), gated=True, bias=reader.read_flag("mlp_bias")
    )
    before = build_norm(hidden, shift=shift)
    windows = _list_modernbert_windows(reader, reader.read_depth("num_hidden_layers"))
    contents = [
        (
            *((before,) if index else ()),
            build_attention(hidden, heads, bias=bias, output_bias=bias, window=window),
            before,
            feed_forward,
        )
        for index, window in enumerate(windows)
    ]
    parts = _MODERN_CLASSES[suffix]
    tied = _WORDS in parts and reader.read_flag("tie_word_embeddings", default=True)
    behind: tuple[ModelLayer, ...] = (before,)
    if parts:
        behind = (before, build_linear(hidden, hidden, bias=reader.read_flag("classifier_bias")), before)
    made = _build_heads(reader, parts, hidden, hidden, second_bias=False)
    if _WORDS in parts:
        bias = reader.read_flag("decoder_bias", default=True)
        made = (build_language_head(hidden, reader.read_size("vocab_size"), bias=bias),)
    return Architecture(
        embeddings=ModelEmbeddings(
            size=hidden, vocabulary_size=reader.read_size("vocab_size"), norm="layer" if shift else "rms"
        ),
        layers=(*build_blocks(contents), *behind),
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


def _read_position_terms(reader: ConfigReader) -> frozenset[str]:
    """Returns those of ``c2p`` and ``p2c`` that are scored; a list, or names between bars."""
    value = reader.config.get("pos_att_type") or []
    names = value.lower().split("|") if isinstance(value, str) else value
    if not isinstance(names, list):
        raise build_unsupported_error("pos_att_type", "pos_att_type must name c2p and p2c")
    terms = frozenset(str(name).strip() for name in names)
    if unknown := terms - {"c2p", "p2c", "p2p", "none"}:
        raise build_unsupported_error("pos_att_type", f"{min(unknown)} is not known")
    return terms


def _build_relative_projections(
    reader: ConfigReader, hidden: int, *, second: bool
) -> tuple[SimpleLayer, ...]:
    if not reader.read_flag("relative_attention") or (second and reader.read_flag("share_att_key")):
        return ()
    terms = _read_position_terms(reader)
    made = []
    if "c2p" in terms:
        made.append(build_linear(hidden, hidden, bias=second))
    if "p2c" in terms:
        made.append(build_linear(hidden, hidden))
    return tuple(made)


def _build_relative_table(reader: ConfigReader, hidden: int, *, second: bool) -> tuple[ModelLayer, ...]:
    normed = second and "layer_norm" in read_choice(reader, "norm_rel_ebd", "none")
    behind: tuple[ModelLayer, ...] = (build_norm(hidden),) if normed else ()
    if not reader.read_flag("relative_attention"):
        return behind
    # Zero or a negative number stands for as many as there are positions.
    most = reader.config.get("max_relative_positions", -1)
    if not isinstance(most, int) or most < 1:
        most = reader.read_size("max_position_embeddings")
    buckets = reader.config.get("position_buckets", -1) if second else -1
    if isinstance(buckets, int) and buckets > 0:
        most = buckets
    table = build_learned_vectors("relative_positions", hidden, 2 * most)
    return (table, *behind)


def _build_deberta(reader: ConfigReader, suffix: str, *, second: bool = False) -> Architecture:
    reader.refuse_flags("talking_head")
    hidden, heads = reader.read_size("hidden_size"), reader.read_size("num_attention_heads")
    embedding = reader.read_size_or("embedding_size", hidden)
    drops = reader.has_dropout("hidden_dropout_prob", default=0.1)
    positioned = reader.read_flag("position_biased_input", default=True)
    attention = build_attention(
        hidden,
        heads,
        bias=second,
        dropout=reader.has_dropout("attention_probs_dropout_prob", default=0.1),
        score_bias=reader.read_flag("relative_attention"),
    )
    own: tuple[SimpleLayer, ...] = () if second else (build_query_value_bias(hidden),)
    layers = (
        attention,
        *own,
        *_build_relative_projections(reader, hidden, second=second),
        build_norm(hidden),
        build_mlp(hidden, reader.read_size("intermediate_size"), dropout=drops),
        build_norm(hidden),
    )
    kernel = read_count_or_zero(reader, "conv_kernel_size") if second else 0
    behind: tuple[ModelLayer, ...] = _build_relative_table(reader, hidden, second=second)
    if kernel:
        groups = reader.read_size_or("conv_groups", 1)
        if groups > 1:
            raise build_unsupported_error("conv_groups", "conv_groups above 1 is not supported")
        behind = (*behind, build_part(build_time_convolution(hidden, hidden, kernel), build_norm(hidden)))
    parts = _DEBERTA_CLASSES[suffix]
    tied = _WORDS in parts and reader.read_flag("tie_word_embeddings", default=True)
    if _WORDS in parts:
        behind = (*behind, build_linear(hidden, embedding), build_norm(embedding))
    front: tuple[ModelLayer, ...] = (
        (build_linear(embedding, hidden, bias=False),) if embedding != hidden else ()
    )
    return Architecture(
        embeddings=ModelEmbeddings(
            size=embedding,
            vocabulary_size=reader.read_size("vocab_size"),
            position_count=reader.read_size("max_position_embeddings") if positioned else 0,
            token_type_count=read_count_or_zero(reader, "type_vocab_size"),
            norm="layer",
            dropout=drops,
        ),
        layers=(*front, LayerBlock(layers=layers, count=reader.read_depth("num_hidden_layers")), *behind),
        heads=_build_heads(reader, parts, hidden, embedding, second_bias=not tied),
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


def _build_family(prefix: str, kind: EncoderFamily, **defaults: int) -> ModelFamily:
    return ModelFamily(
        prefix,
        partial(_build_encoder, kind),
        tuple(kind.classes),
        "Model",
        "max_position_embeddings",
        {**_SIZES, **defaults},
    )


_ROBERTA = EncoderFamily(_ROBERTA_CLASSES)
_NOMIC = EncoderFamily(
    {
        "Model": (),
        "ForMaskedLM": (_WORDS,),
        "ForSequenceClassification": (_POOLER, _LABELS),
        "ForTokenClassification": (_TOKEN_LABELS,),
    },
    positions=False,
    gated=True,
    bias=False,
)
_GTE = EncoderFamily(
    _NOMIC.classes,
    positions=False,
    gated=True,
    gate_bias=False,
    second_bias=False,
)

FAMILIES: Mapping[str, ModelFamily] = {
    "bert": _build_family("Bert", _BERT),
    "roberta": _build_family("Roberta", _ROBERTA, vocab_size=50_265),
    "xlm-roberta": _build_family("XLMRoberta", _ROBERTA)._replace(build=_build_jina),
    "camembert": _build_family("Camembert", _ROBERTA),
    "albert": _build_family(
        "Albert",
        EncoderFamily(
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
    "electra": _build_family(
        "Electra",
        EncoderFamily(
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
    "distilbert": ModelFamily(
        "DistilBert",
        partial(
            _build_encoder,
            EncoderFamily(
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
    "mpnet": _build_family(
        "MPNet",
        EncoderFamily(_ROBERTA_CLASSES, token_types=False, relative_buckets=True),
        vocab_size=30_527,
        relative_attention_num_buckets=32,
    ),
    "nomic_bert": _build_family(
        "NomicBert", _NOMIC, vocab_size=30_528, max_position_embeddings=2048
    )._replace(build=_build_nomic),
    "jina_embeddings_v3": _build_family(
        "JinaEmbeddingsV3",
        _ROBERTA._replace(positions=False),
        vocab_size=250_002,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=8194,
        type_vocab_size=1,
    ),
    "gte": _build_family("Gte", _GTE, vocab_size=250_048, max_position_embeddings=8192, type_vocab_size=1),
    # The first name of GTE 1.5.
    "new": _build_family("New", _GTE),
    "modernbert": ModelFamily(
        "ModernBert",
        _build_modernbert,
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
    "deberta": ModelFamily(
        "Deberta",
        _build_deberta,
        tuple(_DEBERTA_CLASSES),
        "Model",
        "max_position_embeddings",
        {**_SIZES, "vocab_size": 50_265},
    ),
    "deberta-v2": ModelFamily(
        "DebertaV2",
        partial(_build_deberta, second=True),
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
