"""Encoder-decoders: T5, BART and their descendants, and Whisper, whose encoder hears a spectrogram."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from service.formats.huggingface.parts import (
    build_activation,
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
)
from service.formats.huggingface.reader import ConfigReader, ModelFamily
from service.planning.models.architecture import (
    Architecture,
    LayerBlock,
    ModelEmbeddings,
    ModelHead,
    ModelInputShape,
    ModelLayer,
)
from service.planning.models.layers import SimpleLayer

_TEXT = ModelInputShape(name="text", kind="tokens")
_SOURCE = ModelInputShape(name="source", kind="source_tokens")


def _build_t5_stack(
    reader: ConfigReader, depth: int, *, decodes: bool, over: str, table_in_each: bool
) -> tuple[ModelLayer, ...]:
    hidden, heads = reader.read_size("d_model"), reader.read_size("num_heads")
    drops = reader.has_dropout("dropout_rate", default=0.1)
    act = read_choice(reader, "feed_forward_proj", "gated-gelu" if table_in_each else "relu")
    before = build_norm(hidden, "rms")
    attention = partial(
        build_attention,
        hidden,
        heads,
        head_size=reader.read_size("d_kv"),
        bias=False,
        output_bias=False,
        dropout=drops,
    )
    table = build_learned_vectors(
        "relative_positions", heads, reader.read_size("relative_attention_num_buckets")
    )
    layers: list[SimpleLayer] = [before, attention(causal=decodes, score_bias=True)]
    if table_in_each:
        layers.append(table)
    if decodes:
        layers += [before, attention(cross=hidden)]
    inner = reader.read_size("d_ff")
    feed_forward = build_mlp(
        hidden,
        inner,
        gated=act.startswith("gated-"),
        bias=False,
        function="relu" if act == "relu" else "gelu_new" if act == "gated-gelu" else "smooth",
        dropout=drops,
        inner_dropout=drops,
    )
    layers += [before, feed_forward]
    block = LayerBlock(layers=tuple(layers), count=depth, over=(over,), reads=("source",) if decodes else ())
    front = () if table_in_each else (build_part(table, over=over),)
    return (*front, block, build_part(before, over=over))


def _build_t5(reader: ConfigReader, suffix: str, *, table_in_each: bool = False) -> Architecture:
    hidden, vocabulary = reader.read_size("d_model"), reader.read_size("vocab_size")
    depth = reader.read_depth("num_layers")
    stack = partial(_build_t5_stack, reader, table_in_each=table_in_each)
    table = ModelEmbeddings(
        size=hidden, vocabulary_size=vocabulary, dropout=reader.has_dropout("dropout_rate", default=0.1)
    )
    if suffix == "EncoderModel":
        return Architecture(
            inputs=(_TEXT,), embeddings=table, layers=stack(depth, decodes=False, over="text")
        )
    encoder = stack(depth, decodes=False, over="source")
    below = reader.read_depth("num_decoder_layers") if reader.has_value("num_decoder_layers") else depth
    decoder = stack(below, decodes=True, over="text")
    # The classes of transformers 5.23 tie the head whatever tie_word_embeddings says.
    generates = suffix == "ForConditionalGeneration"
    return Architecture(
        inputs=(_TEXT, _SOURCE),
        embeddings=table,
        layers=(*encoder, *decoder),
        heads=(build_language_head(hidden, vocabulary),) if generates else (),
        tied=("language_model",) if generates else (),
    )


class BartVariant(NamedTuple):
    """Differences of a descendant from BART."""

    embedding_norm: bool = True
    final_norm: bool = False
    norm_first: bool = False
    position_offset: int = 2
    positions: bool = True
    own_vocabularies: bool = False


def _build_stack(
    reader: ConfigReader, kind: BartVariant, *, decodes: bool, over: str, key_bias: bool = True
) -> tuple[ModelLayer, ...]:
    side = "decoder" if decodes else "encoder"
    hidden = reader.read_size("d_model")
    heads, heads_field = reader.read_size(f"{side}_attention_heads"), f"{side}_attention_heads"
    drops = reader.has_dropout("dropout", default=0.1)
    attention = partial(build_attention, hidden, heads, bias=key_bias, dropout=drops, heads_field=heads_field)
    own: tuple[SimpleLayer, ...] = () if key_bias else (build_query_value_bias(hidden),)
    feed_forward = build_mlp(
        hidden,
        reader.read_size(f"{side}_ffn_dim"),
        function=read_activation_function(reader, "activation_function", "gelu"),
        dropout=drops,
        inner_dropout=reader.has_dropout("activation_dropout"),
    )
    steps: list[tuple[SimpleLayer, ...]] = [(attention(causal=decodes), *own)]
    if decodes:
        steps.append((attention(cross=hidden), *own))
    steps.append((feed_forward,))
    layers: list[SimpleLayer] = []
    for step in steps:
        layers += [build_norm(hidden), *step] if kind.norm_first else [*step, build_norm(hidden)]
    block = LayerBlock(
        layers=tuple(layers),
        count=reader.read_depth(f"{side}_layers"),
        over=(over,),
        reads=("source",) if decodes else (),
    )
    return (block, build_part(build_norm(hidden), over=over)) if kind.final_norm else (block,)


def _build_bart(kind: BartVariant, reader: ConfigReader, suffix: str) -> Architecture:
    hidden, vocabulary = reader.read_size("d_model"), reader.read_size("vocab_size")
    tied = reader.read_flag("tie_word_embeddings", default=True)
    table = vocabulary
    front: list[ModelLayer] = []
    if kind.own_vocabularies and not reader.read_flag("share_encoder_decoder_embeddings", default=True):
        if not tied:
            raise build_unsupported_error(
                "tie_word_embeddings", "an untied head with two vocabularies is not supported"
            )
        table = reader.read_size_or("decoder_vocab_size", vocabulary)
        front.append(build_part(build_learned_vectors("tokens", hidden, vocabulary), over="source"))
    elif not tied:
        # Encoder, decoder and both together each keep a table of their own.
        front += [
            build_part(build_learned_vectors("tokens", hidden, vocabulary), over=name)
            for name in ("source", "text")
        ]
    positions = reader.read_size("max_position_embeddings") + kind.position_offset
    for name in ("source", "text"):
        if kind.positions:
            front.append(build_part(build_learned_vectors("positions", hidden, positions), over=name))
        if kind.embedding_norm:
            front.append(build_part(build_norm(hidden), over=name))
    heads: tuple[ModelHead, ...] = ()
    generates = suffix in ("ForConditionalGeneration", "MTModel")
    if generates:
        heads = (build_language_head(hidden, table),)
    elif suffix == "ForSequenceClassification":
        # The class of BART has three labels where a configuration names none.
        labels = (
            reader.count_labels() if reader.has_value("id2label") else reader.read_size_or("num_labels", 3)
        )
        heads = (build_pooler(hidden), build_classifier(hidden, labels))
    return Architecture(
        inputs=(_TEXT, _SOURCE),
        embeddings=ModelEmbeddings(
            size=hidden, vocabulary_size=table, dropout=reader.has_dropout("dropout", default=0.1)
        ),
        layers=(
            *front,
            *_build_stack(reader, kind, decodes=False, over="source"),
            *_build_stack(reader, kind, decodes=True, over="text"),
        ),
        heads=heads,
        tied=("language_model",) if generates and tied else (),
    )


_NORM_FIRST = BartVariant(embedding_norm=False, final_norm=True, norm_first=True, position_offset=0)


def build_whisper_encoder(reader: ConfigReader) -> tuple[ModelInputShape, tuple[ModelLayer, ...]]:
    """The input of Whisper, and its encoder."""
    hidden, heard = reader.read_size("d_model"), reader.read_size("max_source_positions")
    stem = (
        build_time_convolution(reader.read_size("num_mel_bins"), hidden, 3),
        build_activation(hidden),
        build_time_convolution(hidden, hidden, 3, stride=2),
        build_activation(hidden),
        build_learned_vectors("positions", hidden, heard),
    )
    sound = ModelInputShape(
        name="source", kind="audio", channels=reader.read_size("num_mel_bins"), length=2 * heard
    )
    encoder = (
        build_part(*stem, over="source"),
        *_build_stack(reader, _NORM_FIRST, decodes=False, over="source", key_bias=False),
    )
    return sound, encoder


def _build_whisper(reader: ConfigReader, suffix: str) -> Architecture:
    hidden = reader.read_size("d_model")
    sound, encoder = build_whisper_encoder(reader)
    if suffix == "ForAudioClassification":
        width = reader.read_size("classifier_proj_size")
        mixed: tuple[ModelLayer, ...] = ()
        if reader.read_flag("use_weighted_layer_sum"):
            mixed = (
                build_part(
                    build_learned_vectors("scale", reader.read_depth("encoder_layers") + 1), over="source"
                ),
            )
        return Architecture(
            inputs=(sound,),
            layers=(*encoder, *mixed, build_part(build_linear(hidden, width), over="source")),
            heads=(build_classifier(width, reader.count_labels()),),
        )
    vocabulary = reader.read_size("vocab_size")
    generates = suffix == "ForConditionalGeneration"
    tied = generates and reader.read_flag("tie_word_embeddings", default=True)
    return Architecture(
        inputs=(_TEXT, sound),
        embeddings=ModelEmbeddings(
            size=hidden,
            vocabulary_size=vocabulary,
            position_count=reader.read_size("max_target_positions"),
            dropout=reader.has_dropout("dropout"),
        ),
        layers=(*encoder, *_build_stack(reader, _NORM_FIRST, decodes=True, over="text", key_bias=False)),
        heads=(build_language_head(hidden, vocabulary),) if generates else (),
        tied=("language_model",) if tied else (),
    )


_T5_CLASSES = ("ForConditionalGeneration", "Model", "EncoderModel")
_BART_CLASSES = ("ForConditionalGeneration", "Model")
_T5_SIZES = {
    "vocab_size": 32_128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
}
_MT5_SIZES = {**_T5_SIZES, "vocab_size": 250_112, "d_ff": 1024, "num_layers": 8, "num_heads": 6}
_BART_SIZES = {
    "vocab_size": 50_265,
    "max_position_embeddings": 1024,
    "encoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_layers": 12,
    "decoder_ffn_dim": 4096,
    "decoder_attention_heads": 16,
    "d_model": 1024,
}


def _build_seq2seq_family(prefix: str, kind: BartVariant, *classes: str, **defaults: int) -> ModelFamily:
    named = tuple(dict.fromkeys((*classes, *_BART_CLASSES)))
    return ModelFamily(
        prefix,
        partial(_build_bart, kind),
        named,
        "Model",
        "max_position_embeddings",
        {**_BART_SIZES, **defaults},
    )


def _build_t5_family(prefix: str, defaults: Mapping[str, int], *, table_in_each: bool = False) -> ModelFamily:
    build = partial(_build_t5, table_in_each=table_in_each)
    return ModelFamily(prefix, build, _T5_CLASSES, "ForConditionalGeneration", None, defaults)


WHISPER = {
    "vocab_size": 51_865,
    "num_mel_bins": 80,
    "encoder_layers": 4,
    "encoder_attention_heads": 6,
    "decoder_layers": 4,
    "decoder_attention_heads": 6,
    "decoder_ffn_dim": 1536,
    "encoder_ffn_dim": 1536,
    "d_model": 384,
    "max_source_positions": 1500,
    "max_target_positions": 448,
    "classifier_proj_size": 256,
}
"""Sizes of the configuration class of Whisper."""

FAMILIES: Mapping[str, ModelFamily] = {
    "t5": _build_t5_family("T5", _T5_SIZES),
    "mt5": _build_t5_family("MT5", _MT5_SIZES),
    "umt5": _build_t5_family("UMT5", _MT5_SIZES, table_in_each=True),
    "bart": _build_seq2seq_family("Bart", BartVariant(), "ForSequenceClassification"),
    "mbart": _build_seq2seq_family("MBart", BartVariant(final_norm=True, norm_first=True)),
    "pegasus": _build_seq2seq_family("Pegasus", _NORM_FIRST),
    "marian": _build_seq2seq_family(
        "Marian",
        BartVariant(embedding_norm=False, position_offset=0, own_vocabularies=True),
        "MTModel",
        vocab_size=58_101,
    ),
    "m2m_100": _build_seq2seq_family("M2M100", _NORM_FIRST._replace(positions=False), vocab_size=128_112),
    "whisper": ModelFamily(
        "Whisper",
        _build_whisper,
        ("ForConditionalGeneration", "Model", "ForAudioClassification"),
        "ForConditionalGeneration",
        "max_target_positions",
        WHISPER,
    ),
}
