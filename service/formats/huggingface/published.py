"""Decoders whose code is published beside their weights, so that transformers has no class of that type.

Shapes are those of that code, as engines that run these models write it again. Defaults are those of its
configuration classes where a published file may leave a field out.
"""

from collections.abc import Mapping
from functools import partial

from service.formats.huggingface import builders, patterns
from service.formats.huggingface.decoders import (
    SPELLINGS,
    AttentionOptions,
    DecoderFamily,
    ExpertLayout,
    build_architecture,
    read_key_value_heads,
)
from service.formats.huggingface.mixers import experts, recurrent
from service.formats.huggingface.parts import build_unsupported_error
from service.formats.huggingface.patterns import build_sparse_after_dense
from service.formats.huggingface.reader import ConfigDefault, ConfigReader, ModelFamily
from service.planning.models.architecture import Architecture

_PLAIN = AttentionOptions(bias=False)
_UNTIED: Mapping[str, ConfigDefault] = {"tie_word_embeddings": False}
_TIED: Mapping[str, ConfigDefault] = {"tie_word_embeddings": True}


def build_published_family(
    prefix: str,
    family: DecoderFamily,
    *,
    classes: tuple[str, ...] = ("ForCausalLM", "Model"),
    defaults: Mapping[str, ConfigDefault] = _UNTIED,
    names: Mapping[str, str] | None = None,
) -> ModelFamily:
    """A family of causal language models; ``names`` are its own spellings of fields."""
    spellings = {name: (own, name) for name, own in (names or {}).items()}
    return ModelFamily(
        prefix=prefix,
        build=partial(build_architecture, family=family),
        classes=classes,
        unnamed_class=classes[0],
        context_field="max_position_embeddings",
        defaults=defaults,
        names={**SPELLINGS, **spellings},
    )


def _build_grok(prefix: str, defaults: Mapping[str, ConfigDefault]) -> ModelFamily:
    """Grok: Mixtral with norms on both sides, and in Grok-2 a feed-forward beside the experts."""
    around = "norm mixer norm norm ffn norm"
    family = DecoderFamily(heads=_PLAIN, block=around, parts={"ffn": experts.build_grok_experts})
    return build_published_family(prefix, family, classes=("ForCausalLM",), defaults=defaults)


def _read_half_inner(reader: ConfigReader) -> int:
    return reader.read_size("intermediate_size") // 2


def _read_group_heads(reader: ConfigReader, heads: int) -> int:
    if not reader.read_flag("multi_query_attention"):
        return heads
    return read_key_value_heads(reader, heads, "multi_query_group_num")


def _build_chatglm(reader: ConfigReader, suffix: str) -> Architecture:
    """ChatGLM 2, 3 and the first GLM-4, whose bare model has the head too."""
    if not reader.read_flag("rmsnorm", default=True) or not reader.read_flag("post_layer_norm", default=True):
        raise build_unsupported_error("rmsnorm", "only norms by the root mean square, the last one too")
    family = DecoderFamily(
        heads=AttentionOptions(
            bias="add_qkv_bias", output_bias="add_bias_linear", key_value_heads=_read_group_heads
        ),
        bias="add_bias_linear",
        ties=False,
    )
    return build_architecture(
        reader, "ForCausalLM" if suffix != "ForSequenceClassification" else suffix, family
    )


def _build_minicpm(reader: ConfigReader, suffix: str) -> Architecture:
    """MiniCPM 1 and 4: Llama with scaled residuals."""
    if reader.read_count("num_experts"):
        raise build_unsupported_error("num_experts", "experts of MiniCPM are not known here")
    return build_architecture(reader, suffix, DecoderFamily(bias=False))


def _build_arctic(reader: ConfigReader, suffix: str) -> Architecture:
    """Arctic: a feed-forward as wide as the model stands beside the experts of each layer."""
    if not reader.read_flag("use_residual"):
        raise build_unsupported_error("use_residual", "only known where it is true")
    if reader.read_size("moe_layer_frequency") != 1:
        raise build_unsupported_error("moe_layer_frequency", "only known where every layer has experts")
    family = DecoderFamily(
        heads=_PLAIN,
        bias=False,
        block="norm mixer norm square norm ffn",
        parts={"square": experts.build_square_feed_forward},
        experts=ExpertLayout(inner="intermediate_size"),
    )
    return build_architecture(reader, suffix, family)


def _list_minimax_kinds(reader: ConfigReader, depth: int) -> list[str]:
    """MiniMax-01 and M1 mark the layers of full attention by 1."""
    marks = reader.config.get("attn_type_list")
    if marks is None:
        return patterns.list_alternating_kinds(reader, depth)
    if not isinstance(marks, list) or len(marks) != depth or not all(mark in (0, 1) for mark in marks):
        raise build_unsupported_error("attn_type_list", "attn_type_list must have a 0 or 1 for every layer")
    return ["full" if mark else "linear" for mark in marks]


def _build_minimax(reader: ConfigReader, suffix: str) -> Architecture:
    """MiniMax-01 and M1, whose code leaves out a shared expert of no width."""
    if reader.read_count("shared_intermediate_size"):
        raise build_unsupported_error("shared_intermediate_size", "only known where it is 0")
    return build_architecture(reader, suffix, _MINIMAX)


def _build_bailing(reader: ConfigReader, suffix: str) -> Architecture:
    """Ling and Ring; their second version has the type of the first and a class of its own."""
    return build_architecture(reader, suffix.removeprefix("V2"), _BAILING)


_MINIMAX = DecoderFamily(
    heads=_PLAIN,
    linear=recurrent.build_lightning_attention,
    kinds=_list_minimax_kinds,
    experts=ExpertLayout(inner="intermediate_size"),
)
_BAILING = DecoderFamily(
    heads=AttentionOptions(bias="use_qkv_bias", output_bias="use_bias", norm="head", normed="use_qk_norm"),
    bias=False,
    experts=ExpertLayout(
        layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="num_shared_experts"
    ),
)
_INTERNLM_SIZES: Mapping[str, ConfigDefault] = {
    "vocab_size": 103_168,
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
    "bias": True,
    "tie_word_embeddings": False,
}
_GROK_SIZES: Mapping[str, ConfigDefault] = {
    "vocab_size": 131_072,
    "hidden_size": 6144,
    "intermediate_size": 32_768,
    "num_hidden_layers": 64,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": True,
}

FAMILIES: Mapping[str, ModelFamily] = {
    "arctic": build_published_family("Arctic", DecoderFamily())._replace(
        build=_build_arctic, defaults={**_UNTIED, "use_residual": True, "moe_layer_frequency": 2}
    ),
    "baichuan": build_published_family("Baichuan", DecoderFamily(heads=_PLAIN, bias=False)),
    "bailing_moe": build_published_family(
        "BailingMoe", _BAILING, classes=("ForCausalLM", "Model", "V2ForCausalLM", "V2Model")
    )._replace(build=_build_bailing),
    "bailing_moe_v2": build_published_family("BailingMoeV2", _BAILING),
    "chatglm": build_published_family(
        "ChatGLM",
        DecoderFamily(),
        classes=("Model", "ForConditionalGeneration", "ForSequenceClassification"),
        names={
            "intermediate_size": "ffn_hidden_size",
            "head_dim": "kv_channels",
            "vocab_size": "padded_vocab_size",
            "max_position_embeddings": "seq_length",
        },
    )._replace(build=_build_chatglm),
    "deepseek": build_published_family(
        "Deepseek",
        DecoderFamily(
            bias=False,
            experts=ExpertLayout(
                layers=build_sparse_after_dense("first_k_dense_replace"), shared_count="n_shared_experts"
            ),
        ),
    ),
    "exaone": build_published_family(
        "Exaone",
        DecoderFamily(heads=_PLAIN, bias=False),
        classes=("ForCausalLM", "Model", "ForSequenceClassification"),
        defaults=_TIED,
    ),
    # Grok-2 states the type of a captioner of transformers, which is not read here.
    "git": _build_grok("Grok1", _UNTIED),
    "grok-1": _build_grok("Grok1Model", _GROK_SIZES),
    "internlm": build_published_family(
        "InternLM", DecoderFamily(heads=AttentionOptions(bias="bias")), defaults=_INTERNLM_SIZES
    ),
    "internlm2": build_published_family(
        "InternLM2",
        DecoderFamily(heads=AttentionOptions(bias="bias"), bias=False),
        classes=("ForCausalLM", "Model", "ForSequenceClassification"),
        defaults={**_UNTIED, "bias": True},
    ),
    "mimo": build_published_family(
        "MiMo", DecoderFamily(heads=AttentionOptions(output_bias=False), bias=False)
    ),
    "minicpm": build_published_family("MiniCPM", DecoderFamily(), defaults=_TIED)._replace(
        build=_build_minicpm
    ),
    "minimax_m1": build_published_family("MiniMaxM1", _MINIMAX)._replace(build=_build_minimax),
    "minimax_text_01": build_published_family("MiniMaxText01", _MINIMAX)._replace(build=_build_minimax),
    "nemotron-nas": build_published_family("DeciLM", DecoderFamily())._replace(build=builders.build_deci),
    "orion": build_published_family("Orion", DecoderFamily(norm="layer", bias=False)),
    "qwen": build_published_family(
        "QWen",
        DecoderFamily(
            heads=AttentionOptions(bias=True, output_bias=False), bias=False, inner=_read_half_inner
        ),
        classes=("LMHeadModel", "Model"),
        names={"max_position_embeddings": "seq_length"},
    ),
}
"""Every family of this module, by its ``model_type``."""
