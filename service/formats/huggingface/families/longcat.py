"""LongCat-Flash: two attentions and two feed-forwards a layer, and experts of which some compute nothing."""

from collections.abc import Mapping

from service.formats.huggingface.decoders import (
    DecoderFamily,
    Layers,
    assemble_architecture,
    build_feed_forward,
    build_layers,
)
from service.formats.huggingface.mixers.latent import build_latent_attention
from service.formats.huggingface.parts import build_unsupported_error, read_choice
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, build_invalid_error
from service.planning.models.architecture import Architecture, ModelLayer
from service.planning.models.layers import EmbeddingTable, Linear, MixtureOfExperts


def _build_zero_experts(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Experts of which some hand a token on as it is: they have a score each and nothing else.

    A token takes as many of those that compute as fall to it when all are taken alike, which is what the
    controller of their biases is set to (LongCat-Flash 2025, section 2.1).
    """
    del family, kind
    hidden, bias = reader.read_size("hidden_size"), reader.read_flag("router_bias")
    count, idle = reader.read_size("num_experts"), reader.read_count("zero_expert_num")
    chosen = reader.read_size("num_experts_per_tok")
    if chosen > count + idle:
        raise build_invalid_error(
            reader.resolve_spelling("num_experts_per_tok"), "more experts are taken than there are"
        )
    if chosen * count % (count + idle):
        raise build_unsupported_error(
            "zero_expert_num", "only known where a token takes a whole number of experts that compute"
        )
    experts = MixtureOfExperts(
        hidden_size=hidden,
        expert_count=count,
        experts_per_token=chosen * count // (count + idle),
        expert_inner_size=reader.read_size("moe_intermediate_size"),
        router_bias=bias,
    )
    return (Linear(input_size=hidden, output_size=idle, bias=bias), experts) if idle else (experts,)


def _build_dense(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    del kind
    return build_feed_forward(reader, family)


LONGCAT = DecoderFamily(
    attention=build_latent_attention,
    block="norm mixer norm experts dense norm mixer norm dense",
    bias=False,
    parts={"experts": _build_zero_experts, "dense": _build_dense},
)


LITE: Mapping[str, ConfigDefault] = {
    "vocab_size": 131_072,
    "hidden_size": 3072,
    "num_layers": 14,
    "num_attention_heads": 32,
    "max_position_embeddings": 327_680,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "ffn_hidden_size": 6144,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "moe_topk": 12,
    "n_routed_experts": 256,
    "zero_expert_num": 128,
    "expert_ffn_hidden_size": 1024,
    "emb_neighbor_num": 4,
    "emb_split_num": 4,
    "ngram_vocab_size_ratio": 78,
}
"""Sizes of LongCat-Flash-Lite, which its configuration class has by default."""

_MOST_TABLES = 1024
"""Tables of n-grams beyond which a configuration is refused; the released model has 12."""


def _build_ngram_tables(reader: ConfigReader) -> tuple[ModelLayer, ...]:
    """Tables of pairs, triples and longer runs of tokens, each with a matrix to the width of the model.

    Each has two rows more than the one before, so that no two of them fall together alike.
    """
    hidden, longest = reader.read_size("hidden_size"), reader.read_size("emb_neighbor_num")
    count = reader.read_size("emb_split_num") * (longest - 1)
    if not 0 < count <= _MOST_TABLES or hidden % count:
        raise build_invalid_error("emb_split_num", "the tables of n-grams do not divide hidden_size")
    rows = reader.read_factor("ngram_vocab_size_ratio") * reader.read_size("vocab_size")
    width = hidden // count
    tables = [EmbeddingTable(rows=int(rows + 2 * place + 1), size=width) for place in range(count)]
    return (*tables, Linear(input_size=width, output_size=hidden, count=count))


def build_longcat(reader: ConfigReader, suffix: str, *, ngrams: bool = False) -> Architecture:
    """LongCat-Flash, whose layers transformers numbers twice, once for each attention."""
    read_choice(reader, "zero_expert_type", "identity", "identity")
    read_choice(reader, "attention_method", "MLA", "MLA")
    layers = reader.read_depth("num_layers")
    counted = ConfigReader(
        {**reader.config, "num_hidden_layers": layers}, reader.defaults, reader.names, reader.defaulted
    )
    tables = _build_ngram_tables(counted) if ngrams else ()
    built = (*tables, *build_layers(counted, LONGCAT))
    return assemble_architecture(counted, suffix, LONGCAT, built, counted.read_size("hidden_size"))
