"""Nomic, with gates and with experts."""

from service.formats.huggingface.encoders.bert import EncoderFamily, build_encoder
from service.formats.huggingface.encoders.heads import HeadPart
from service.formats.huggingface.parts import (
    build_attention,
    build_learned_vectors,
    build_mlp,
    build_norm,
    build_unsupported_error,
)
from service.formats.huggingface.reader import ConfigReader, build_blocks
from service.planning.models.architecture import Architecture, ModelEmbeddings
from service.planning.models.layers import MixtureOfExperts, SimpleLayer

NOMIC = EncoderFamily(
    {
        "Model": (),
        "ForMaskedLM": (HeadPart.WORDS,),
        "ForSequenceClassification": (HeadPart.POOLER, HeadPart.LABELS),
        "ForTokenClassification": (HeadPart.TOKENWISE_LABELS,),
    },
    positions=False,
    gated=True,
    bias=False,
)
_FIRST_NOMIC_NAMES = {
    "hidden_size": ("n_embd",),
    "num_attention_heads": ("n_head",),
    "num_hidden_layers": ("n_layer",),
    "intermediate_size": ("n_inner",),
    "max_position_embeddings": ("n_positions",),
}


def build_nomic(reader: ConfigReader, suffix: str) -> Architecture:
    """Nomic: as transformers has it, or as its own code has it, with experts in each second layer or so."""
    if "n_embd" not in reader.config:
        return build_encoder(NOMIC, reader, suffix)
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
