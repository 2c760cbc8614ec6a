"""Encoder-decoders: T5, BART and their descendants, and Whisper, whose encoder hears a spectrogram."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from service.formats.huggingface.parts import (
    activation,
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
    word,
    words,
)
from service.formats.huggingface.reader import ConfigReader, Family
from service.planning.models.architecture import Architecture, Block, Embeddings, Head, Input, Layer
from service.planning.models.layers import SimpleLayer

_TEXT = Input(name="text", kind="tokens")
_SOURCE = Input(name="source", kind="source_tokens")


def _t5_stack(
    reader: ConfigReader, depth: int, *, decodes: bool, over: str, table_in_each: bool
) -> tuple[Layer, ...]:
    hidden, heads = reader.size("d_model"), reader.size("num_heads")
    drops = reader.drops("dropout_rate", default=0.1)
    act = word(reader, "feed_forward_proj", "gated-gelu" if table_in_each else "relu")
    before = norm(hidden, "rms")
    attention = partial(
        attend, hidden, heads, head_size=reader.size("d_kv"), bias=False, output_bias=False, dropout=drops
    )
    table = learned("relative_positions", heads, reader.size("relative_attention_num_buckets"))
    layers: list[SimpleLayer] = [before, attention(causal=decodes, score_bias=True)]
    if table_in_each:
        layers.append(table)
    if decodes:
        layers += [before, attention(cross=hidden)]
    inner = reader.size("d_ff")
    feed_forward = mlp(
        hidden,
        inner,
        gated=act.startswith("gated-"),
        bias=False,
        function="relu" if act == "relu" else "gelu_new" if act == "gated-gelu" else "smooth",
        dropout=drops,
        inner_dropout=drops,
    )
    layers += [before, feed_forward]
    block = Block(layers=tuple(layers), count=depth, over=(over,), reads=("source",) if decodes else ())
    front = () if table_in_each else (part(table, over=over),)
    return (*front, block, part(before, over=over))


def _t5(reader: ConfigReader, suffix: str, *, table_in_each: bool = False) -> Architecture:
    hidden, vocabulary = reader.size("d_model"), reader.size("vocab_size")
    depth = reader.depth("num_layers")
    stack = partial(_t5_stack, reader, table_in_each=table_in_each)
    table = Embeddings(
        size=hidden, vocabulary_size=vocabulary, dropout=reader.drops("dropout_rate", default=0.1)
    )
    if suffix == "EncoderModel":
        return Architecture(
            inputs=(_TEXT,), embeddings=table, layers=stack(depth, decodes=False, over="text")
        )
    encoder = stack(depth, decodes=False, over="source")
    below = reader.depth("num_decoder_layers") if reader.states("num_decoder_layers") else depth
    decoder = stack(below, decodes=True, over="text")
    # The classes of transformers 5.23 tie the head whatever tie_word_embeddings says.
    generates = suffix == "ForConditionalGeneration"
    return Architecture(
        inputs=(_TEXT, _SOURCE),
        embeddings=table,
        layers=(*encoder, *decoder),
        heads=(words(hidden, vocabulary),) if generates else (),
        tied=("language_model",) if generates else (),
    )


class Seq2Seq(NamedTuple):
    """What distinguishes a descendant of BART."""

    embedding_norm: bool = True
    final_norm: bool = False
    norm_first: bool = False
    position_offset: int = 2
    positions: bool = True
    own_vocabularies: bool = False


def _stack(
    reader: ConfigReader, kind: Seq2Seq, *, decodes: bool, over: str, key_bias: bool = True
) -> tuple[Layer, ...]:
    side = "decoder" if decodes else "encoder"
    hidden = reader.size("d_model")
    heads, heads_field = reader.size(f"{side}_attention_heads"), f"{side}_attention_heads"
    drops = reader.drops("dropout", default=0.1)
    attention = partial(attend, hidden, heads, bias=key_bias, dropout=drops, heads_field=heads_field)
    own: tuple[SimpleLayer, ...] = () if key_bias else (query_and_value_bias(hidden),)
    feed_forward = mlp(
        hidden,
        reader.size(f"{side}_ffn_dim"),
        function=function_named(reader, "activation_function", "gelu"),
        dropout=drops,
        inner_dropout=reader.drops("activation_dropout"),
    )
    steps: list[tuple[SimpleLayer, ...]] = [(attention(causal=decodes), *own)]
    if decodes:
        steps.append((attention(cross=hidden), *own))
    steps.append((feed_forward,))
    layers: list[SimpleLayer] = []
    for step in steps:
        layers += [norm(hidden), *step] if kind.norm_first else [*step, norm(hidden)]
    block = Block(
        layers=tuple(layers),
        count=reader.depth(f"{side}_layers"),
        over=(over,),
        reads=("source",) if decodes else (),
    )
    return (block, part(norm(hidden), over=over)) if kind.final_norm else (block,)


def _bart(kind: Seq2Seq, reader: ConfigReader, suffix: str) -> Architecture:
    hidden, vocabulary = reader.size("d_model"), reader.size("vocab_size")
    tied = reader.flag("tie_word_embeddings", default=True)
    table = vocabulary
    front: list[Layer] = []
    if kind.own_vocabularies and not reader.flag("share_encoder_decoder_embeddings", default=True):
        if not tied:
            raise unsupported("tie_word_embeddings", "an untied head with two vocabularies is not supported")
        table = reader.size_or("decoder_vocab_size", vocabulary)
        front.append(part(learned("tokens", hidden, vocabulary), over="source"))
    elif not tied:
        # Encoder, decoder and both together each keep a table of their own.
        front += [part(learned("tokens", hidden, vocabulary), over=name) for name in ("source", "text")]
    positions = reader.size("max_position_embeddings") + kind.position_offset
    for name in ("source", "text"):
        if kind.positions:
            front.append(part(learned("positions", hidden, positions), over=name))
        if kind.embedding_norm:
            front.append(part(norm(hidden), over=name))
    heads: tuple[Head, ...] = ()
    generates = suffix in ("ForConditionalGeneration", "MTModel")
    if generates:
        heads = (words(hidden, table),)
    elif suffix == "ForSequenceClassification":
        # The class of BART has three labels where a configuration names none.
        labels = reader.labels() if reader.states("id2label") else reader.size_or("num_labels", 3)
        heads = (pooler(hidden), classifier(hidden, labels))
    return Architecture(
        inputs=(_TEXT, _SOURCE),
        embeddings=Embeddings(
            size=hidden, vocabulary_size=table, dropout=reader.drops("dropout", default=0.1)
        ),
        layers=(
            *front,
            *_stack(reader, kind, decodes=False, over="source"),
            *_stack(reader, kind, decodes=True, over="text"),
        ),
        heads=heads,
        tied=("language_model",) if generates and tied else (),
    )


_NORM_FIRST = Seq2Seq(embedding_norm=False, final_norm=True, norm_first=True, position_offset=0)


def _whisper(reader: ConfigReader, suffix: str) -> Architecture:
    hidden, heard = reader.size("d_model"), reader.size("max_source_positions")
    stem = (
        conv_in_time(reader.size("num_mel_bins"), hidden, 3),
        activation(hidden),
        conv_in_time(hidden, hidden, 3, stride=2),
        activation(hidden),
        learned("positions", hidden, heard),
    )
    sound = Input(name="source", kind="audio", channels=reader.size("num_mel_bins"), length=2 * heard)
    encoder = (
        part(*stem, over="source"),
        *_stack(reader, _NORM_FIRST, decodes=False, over="source", key_bias=False),
    )
    if suffix == "ForAudioClassification":
        width = reader.size("classifier_proj_size")
        mixed: tuple[Layer, ...] = ()
        if reader.flag("use_weighted_layer_sum"):
            mixed = (part(learned("scale", reader.depth("encoder_layers") + 1), over="source"),)
        return Architecture(
            inputs=(sound,),
            layers=(*encoder, *mixed, part(linear(hidden, width), over="source")),
            heads=(classifier(width, reader.labels()),),
        )
    vocabulary = reader.size("vocab_size")
    generates = suffix == "ForConditionalGeneration"
    tied = generates and reader.flag("tie_word_embeddings", default=True)
    return Architecture(
        inputs=(_TEXT, sound),
        embeddings=Embeddings(
            size=hidden,
            vocabulary_size=vocabulary,
            position_count=reader.size("max_target_positions"),
            dropout=reader.drops("dropout"),
        ),
        layers=(*encoder, *_stack(reader, _NORM_FIRST, decodes=True, over="text", key_bias=False)),
        heads=(words(hidden, vocabulary),) if generates else (),
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


def _seq2seq(prefix: str, kind: Seq2Seq, *classes: str, **defaults: int) -> Family:
    named = tuple(dict.fromkeys((*classes, *_BART_CLASSES)))
    return Family(
        prefix, partial(_bart, kind), named, "Model", "max_position_embeddings", {**_BART_SIZES, **defaults}
    )


def _t5_family(prefix: str, defaults: Mapping[str, int], *, table_in_each: bool = False) -> Family:
    build = partial(_t5, table_in_each=table_in_each)
    return Family(prefix, build, _T5_CLASSES, "ForConditionalGeneration", None, defaults)


FAMILIES: Mapping[str, Family] = {
    "t5": _t5_family("T5", _T5_SIZES),
    "mt5": _t5_family("MT5", _MT5_SIZES),
    "umt5": _t5_family("UMT5", _MT5_SIZES, table_in_each=True),
    "bart": _seq2seq("Bart", Seq2Seq(), "ForSequenceClassification"),
    "mbart": _seq2seq("MBart", Seq2Seq(final_norm=True, norm_first=True)),
    "pegasus": _seq2seq("Pegasus", _NORM_FIRST),
    "marian": _seq2seq(
        "Marian",
        Seq2Seq(embedding_norm=False, position_offset=0, own_vocabularies=True),
        "MTModel",
        vocab_size=58_101,
    ),
    "m2m_100": _seq2seq("M2M100", _NORM_FIRST._replace(positions=False), vocab_size=128_112),
    "whisper": Family(
        "Whisper",
        _whisper,
        ("ForConditionalGeneration", "Model", "ForAudioClassification"),
        "ForConditionalGeneration",
        "max_target_positions",
        {
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
        },
    ),
}
