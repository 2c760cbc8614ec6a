"""Step-3, and Step-3.5 with the decoder of Step-3.7.

Step-3 rebuilds its query heads from a compressed query, beside one head of keys and values (multi-matrix
factorization attention, arXiv 2412.19255). Step-3.5 has more query heads in the layers with a window, and a
gate by head.
"""

from collections.abc import Mapping
from dataclasses import replace

from service.formats.huggingface import patterns
from service.formats.huggingface.decoders import (
    AttentionOptions,
    DecoderFamily,
    ExpertLayout,
    Layers,
    build_architecture,
    build_attention,
)
from service.formats.huggingface.parts import build_unsupported_error
from service.formats.huggingface.reader import ConfigReader, build_invalid_error
from service.planning.errors import PlanningError
from service.planning.models.architecture import Architecture
from service.planning.models.layers import Attention

CLASSES = ("5ForCausalLM", "5Model", "7TextModel")
"""Classes behind ``Step3p``: those of the code beside the weights, and that of transformers."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "num_key_value_heads": ("num_attention_groups", "num_key_value_heads"),
    "num_experts": ("moe_num_experts", "n_routed_experts"),
    "num_experts_per_tok": ("moe_top_k", "num_experts_per_tok"),
    "share_expert_dim": ("share_expert_dim", "share_expert_dims"),
}
"""Spellings of published files, before those of transformers."""


def _drop_draft_layers(reader: ConfigReader) -> ConfigReader:
    """A reader of lists without their last entries, which are those of layers for drafts."""
    depth = reader.read_depth("num_hidden_layers")
    padded = depth + reader.read_count("num_nextn_predict_layers")
    config = dict(reader.config)
    for name in ("layer_types", "mlp_layer_types"):
        words = config.get(name)
        if isinstance(words, list) and len(words) == padded:
            config[name] = words[:depth]
    return replace(reader, config=config)


def _list_kinds(reader: ConfigReader, depth: int) -> list[str]:
    kinds = patterns.read_layer_kinds(reader, depth)
    if kinds is None:
        # The class of transformers takes full attention then, the published code every other window.
        raise PlanningError("CONFIG_FIELD_MISSING", "/layer_types", "the kinds of the layers are missing")
    return kinds


def _mark_sparse(reader: ConfigReader, depth: int) -> list[bool]:
    """As ``mlp_layer_types`` lists them, else the layers that a list or a text of numbers names."""
    if reader.has_value("mlp_layer_types"):
        return patterns.build_sparse_after_dense("")(reader, depth)
    stated = reader.config.get("moe_layers_enum")
    if stated is None:
        raise PlanningError("CONFIG_FIELD_MISSING", "/moe_layers_enum", "the layers with experts are missing")
    try:
        numbers = [int(item) for item in stated.split(",")] if isinstance(stated, str) else stated
    except ValueError as error:
        raise build_invalid_error("moe_layers_enum", "moe_layers_enum must be numbers of layers") from error
    sparse = ConfigReader({"moe_layers_enum": numbers}, {}).read_indexes("moe_layers_enum")
    return [index in sparse for index in range(depth)]


def _build_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    if kind != "window":
        return build_attention(reader, family, kind)
    stated = reader.config.get("attention_other_setting")
    other = ConfigReader(stated if isinstance(stated, Mapping) else {}, {})
    heads = reader.read_optional_size("num_sliding_attention_heads") or other.read_optional_size(
        "num_attention_heads"
    )
    for name, shared in (("num_attention_groups", "num_key_value_heads"), ("head_dim", "head_dim")):
        if other.has_value(name) and other.read_size(name) != reader.read_size(shared):
            raise build_unsupported_error(
                f"attention_other_setting/{name}", "only known where all layers have the same"
            )
    if heads is not None:
        reader = replace(reader, config={**reader.config, "num_attention_heads": heads})
    return build_attention(reader, family, kind)


def _build_factorized_attention(reader: ConfigReader, family: DecoderFamily, kind: str) -> Layers:
    """Attention of Step-3; engines know it with one head of keys and values alone."""
    del family, kind
    if reader.read_size("num_attention_groups") != 1:
        raise build_unsupported_error("num_attention_groups", "only known where it is 1")
    return (
        Attention(
            hidden_size=reader.read_size("hidden_size"),
            query_heads=reader.read_size("num_attention_heads"),
            key_value_heads=1,
            head_size=reader.read_size("head_dim"),
            query_rank=reader.read_size("share_q_dim"),
        ),
    )


STEP_3 = DecoderFamily(
    attention=_build_factorized_attention,
    bias=False,
    experts=ExpertLayout(layers=_mark_sparse, shared_size="share_expert_dim"),
)
STEP_3_NAMES = {"max_position_embeddings": "max_position_embedding", "num_experts_per_tok": "moe_top_k"}
"""Spellings of the code beside the weights."""

STEP = DecoderFamily(
    heads=AttentionOptions(norm="head", gate="head", gated="use_head_wise_attn_gate"),
    attention=_build_attention,
    kinds=_list_kinds,
    experts=ExpertLayout(layers=_mark_sparse, shared_size="share_expert_dim", shared_bias="mlp_bias"),
)


def build_step(reader: ConfigReader, suffix: str) -> Architecture:
    """Step-3.5, whose class of transformers always has the gate."""
    config = {"use_head_wise_attn_gate": True, **reader.config}
    trimmed = _drop_draft_layers(replace(reader, config=config))
    return build_architecture(trimmed, suffix.lstrip("57"), STEP)
