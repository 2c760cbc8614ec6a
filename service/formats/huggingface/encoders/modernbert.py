"""ModernBERT, with norms ahead, windows and gates."""

from collections.abc import Mapping

from service.formats.huggingface.encoders.heads import HeadPart, build_heads
from service.formats.huggingface.parts import (
    build_attention,
    build_language_head,
    build_linear,
    build_mlp,
    build_norm,
    build_unsupported_error,
)
from service.formats.huggingface.reader import ConfigReader, build_blocks
from service.planning.models.architecture import Architecture, ModelEmbeddings, ModelLayer

MODERN_CLASSES: Mapping[str, tuple[HeadPart, ...]] = {
    "Model": (),
    "ForMaskedLM": (HeadPart.WORDS,),
    "ForSequenceClassification": (HeadPart.LABELS,),
    "ForMultipleChoice": (HeadPart.ONE,),
    "ForTokenClassification": (HeadPart.TOKENWISE_LABELS,),
    "ForQuestionAnswering": (HeadPart.TOKENWISE_LABELS,),
}


def build_modernbert(reader: ConfigReader, suffix: str) -> Architecture:
    """Builds ModernBERT: a norm ahead of each part, and windows in most layers."""
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
    parts = MODERN_CLASSES[suffix]
    tied = HeadPart.WORDS in parts and reader.read_flag("tie_word_embeddings", default=True)
    behind: tuple[ModelLayer, ...] = (before,)
    if parts:
        behind = (before, build_linear(hidden, hidden, bias=reader.read_flag("classifier_bias")), before)
    made = build_heads(reader, parts, hidden, hidden, second_bias=False)
    if HeadPart.WORDS in parts:
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
