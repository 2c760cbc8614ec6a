"""LongCat-Flash: two attentions and two feed-forwards a layer, and experts of which some compute nothing."""

from service.formats.huggingface.decoders import (
    DecoderFamily,
    Layers,
    build_architecture,
    build_feed_forward,
)
from service.formats.huggingface.mixers.latent import build_latent_attention
from service.formats.huggingface.parts import build_unsupported_error, read_choice
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.models.architecture import Architecture
from service.planning.models.layers import Linear, MixtureOfExperts


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


def build_longcat(reader: ConfigReader, suffix: str) -> Architecture:
    """LongCat-Flash, whose layers transformers numbers twice, once for each attention."""
    read_choice(reader, "zero_expert_type", "identity", "identity")
    read_choice(reader, "attention_method", "MLA", "MLA")
    layers = reader.read_depth("num_layers")
    counted = ConfigReader(
        {**reader.config, "num_hidden_layers": layers}, reader.defaults, reader.names, reader.defaulted
    )
    return build_architecture(counted, suffix, LONGCAT)
