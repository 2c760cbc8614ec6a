"""DeBERTa, whose attention scores relative positions, in both versions."""

from collections.abc import Mapping

from service.formats.huggingface.encoders.heads import HeadPart, build_heads
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_linear,
    build_mlp,
    build_norm,
    build_part,
    build_query_value_bias,
    build_time_convolution,
    build_unsupported_error,
    read_choice,
    read_count_or_zero,
)
from service.formats.huggingface.reader import ConfigReader
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelLayer
from service.planning.models.layers import SimpleLayer

DEBERTA_CLASSES: Mapping[str, tuple[HeadPart, ...]] = {
    "Model": (),
    "ForMaskedLM": (HeadPart.WORDS,),
    "ForSequenceClassification": (HeadPart.POOLER, HeadPart.LABELS),
    "ForTokenClassification": (HeadPart.TOKENWISE_LABELS,),
    "ForQuestionAnswering": (HeadPart.TOKENWISE_LABELS,),
}


def build_deberta(reader: ConfigReader, suffix: str, *, second: bool = False) -> Architecture:
    """Builds DeBERTa, or its second version, with a table of relative positions."""
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
    parts = DEBERTA_CLASSES[suffix]
    tied = HeadPart.WORDS in parts and reader.read_flag("tie_word_embeddings", default=True)
    if HeadPart.WORDS in parts:
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
        heads=build_heads(reader, parts, hidden, embedding, second_bias=not tied),
        tied=("language_model",) if tied else (),
    )


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
