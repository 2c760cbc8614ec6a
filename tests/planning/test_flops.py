"""FLOPs against PyTorch's counter, which sees matrix multiplications and convolutions of a forward pass."""

import json
from pathlib import Path

import pytest

from service.formats.huggingface import import_config
from service.planning.models.architecture import Architecture, LayerBlock, ModelEmbeddings, ModelHead
from service.planning.models.layers import (
    Attention,
    FeedForward,
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
    Normalization,
    StateSpace,
)
from service.planning.models.profile import build_profile
from service.planning.operators import forward_flops_per_token

ORACLES = Path(__file__).parents[1] / "oracles"
ORACLE = json.loads((ORACLES / "flops.json").read_text(encoding="utf-8"))
MODELS, TOKENS = ORACLE["models"], ORACLE["sequence_length"]


def grouped(fields):
    return Attention(
        hidden_size=fields["hidden_size"],
        query_heads=fields["num_attention_heads"],
        key_value_heads=fields["num_key_value_heads"],
        head_size=fields.get("head_dim", fields["hidden_size"] // fields["num_attention_heads"]),
    )


def gated(fields):
    return FeedForward(hidden_size=fields["hidden_size"], inner_size=fields["intermediate_size"], gated=True)


def experts(fields, **names):
    return MixtureOfExperts(
        hidden_size=fields["hidden_size"],
        expert_count=fields[names.get("count", "num_experts")],
        experts_per_token=fields["num_experts_per_tok"],
        expert_inner_size=fields[names.get("inner", "moe_intermediate_size")],
        shared_inner_size=fields.get("shared_expert_intermediate_size") or names.get("shared"),
        shared_gate="shared_expert_intermediate_size" in fields,
    )


def latent(fields):
    return LatentAttention(
        hidden_size=fields["hidden_size"],
        query_heads=fields["num_attention_heads"],
        query_rank=fields["q_lora_rank"],
        key_value_rank=fields["kv_lora_rank"],
        rotary_head_size=fields["qk_rope_head_dim"],
        plain_head_size=fields["qk_nope_head_dim"],
        value_head_size=fields["v_head_dim"],
    )


def state_space(fields):
    inner = fields["expand"] * fields["hidden_size"]
    return StateSpace(
        hidden_size=fields["hidden_size"],
        inner_size=inner,
        state_size=fields["state_size"],
        convolution_width=fields["conv_kernel"],
        time_step_rank=fields.get("time_step_rank"),
        heads=fields.get("num_heads"),
        groups=fields.get("n_groups", 1),
    )


def linear(fields):
    return LinearAttention(
        hidden_size=fields["hidden_size"],
        key_heads=fields["linear_num_key_heads"],
        value_heads=fields["linear_num_value_heads"],
        key_head_size=fields["linear_key_head_dim"],
        value_head_size=fields["linear_value_head_dim"],
        convolution_width=fields["linear_conv_kernel_dim"],
    )


def profile(fields, *blocks):
    hidden, vocabulary = fields["hidden_size"], fields["vocab_size"]
    return build_profile(
        Architecture(
            embeddings=ModelEmbeddings(size=hidden, vocabulary_size=vocabulary),
            layers=tuple(
                LayerBlock(layers=(Normalization(size=hidden), *layers), count=count)
                for layers, count in blocks
            ),
            heads=(ModelHead(kind="language_model", input_size=hidden, output_size=vocabulary),),
        )
    )


def blocks(name, fields):
    match name:
        case "mixtral":
            mixture = experts(fields, count="num_local_experts", inner="intermediate_size")
            return [((grouped(fields), mixture), 3)]
        case "qwen2-moe":
            return [((grouped(fields), experts(fields)), 3)]
        case "deepseek-v3":
            mixture = experts(fields, count="n_routed_experts", shared=96)
            return [((latent(fields), gated(fields)), 1), ((latent(fields), mixture), 2)]
        case "mamba" | "mamba2":
            return [((state_space(fields),), 3)]
        case _:
            return [((grouped(fields), gated(fields)), 3)]


@pytest.mark.parametrize("name", ["llama", "llama-wide-heads", "mixtral", "qwen2-moe", "deepseek-v3"])
def test_a_forward_pass_is_what_pytorch_counts(name):
    fields = MODELS[name]["fields"]
    per_token = forward_flops_per_token(profile(fields, *blocks(name, fields)), TOKENS)
    assert per_token * TOKENS == MODELS[name]["total"]


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_projections_and_convolutions_of_state_spaces_are_what_pytorch_counts(name):
    """The convolution is run over its padding too; a state's products of elements are not counted."""
    fields, counted = MODELS[name]["fields"], MODELS[name]["operators"]
    described = profile(fields, *blocks(name, fields))
    assert described.matmul_flops_per_token * TOKENS == counted["aten.mm"]
    (work,) = described.attention
    layer = state_space(fields)
    convolved = layer.inner_size + (2 * layer.groups * layer.state_size if layer.heads else 0)
    convolution = 2 * convolved * layer.convolution_width
    padded = TOKENS + layer.convolution_width - 1
    assert work.layers * convolution * padded == counted["aten.convolution"]
    assert work.token_flops == convolution + 6 * layer.inner_size * layer.state_size
    # Reading the state is the third of its products that the counter sees.
    if name == "mamba":
        assert work.layers * 2 * work.state_elements * TOKENS == counted["aten.bmm"]


def test_projections_of_linear_attention_are_what_pytorch_counts():
    fields = MODELS["qwen3-next"]["fields"]
    described = profile(fields, ((linear(fields),), 1))
    (layer,) = [flops for name, flops in MODELS["qwen3-next"]["layers"].items() if "linear_attn" in name]
    projections = described.matmul_flops_per_token - described.head_flops_per_token
    scan = layer - projections * TOKENS
    (work,) = described.attention
    # The reference works in chunks of 64 tokens, with more products than one token after the other.
    assert 0 < work.token_flops * TOKENS < scan < 8 * work.token_flops * TOKENS


WALK = {
    case["name"]: case["config"]
    for case in json.loads((ORACLES / "decoder_walk.json").read_text(encoding="utf-8"))["cases"]
}
COUNTED = json.loads((ORACLES / "decoder_flops.json").read_text(encoding="utf-8"))

SCANNED = {
    "bailing_hybrid",
    "bamba",
    "falcon_h1",
    "falcon_mamba",
    "granitemoehybrid",
    "jamba",
    "kimi_linear",
    "mamba",
    "mamba2",
    "minimax",
    "nemotron_h",
    "olmo_hybrid",
    "qwen3_5_moe_text",
    "qwen3_5_text",
    "qwen3_next",
    "recurrent_gemma",
    "zamba2",
}
"""Types with a recurrence, which plain PyTorch runs over padded chunks or as products of elements."""

SCORED = {"deepseek_v32", "glm5_next_text", "glm_moe_dsa", "hy_v4"}
"""Types whose scorer masks keys, which plain PyTorch multiplies all the same."""

CONVOLVED = {"lfm2", "lfm2_moe", "lfm3"}
"""Types with a short convolution, which plain PyTorch runs over its padding too."""

APART = (
    SCANNED | SCORED | CONVOLVED | {"deepseek_v4", "gemma3n_text", "llama4_text", "qwen4_exp_text", "zamba"}
)


def of_types(types):
    return [name for name in COUNTED["cases"] if WALK[name]["model_type"] in types]


def drawn(name, **changes):
    """FLOPs of the projections and of the whole pass, and those of the counter by operator."""
    case = COUNTED["cases"][name]
    described = build_profile(import_config(WALK[name] | case["changed"] | changes).architecture)
    tokens = COUNTED["tokens"]
    whole = forward_flops_per_token(described, tokens) * tokens
    return described.matmul_flops_per_token * tokens, whole, case["operators"]


@pytest.mark.parametrize("name", of_types({config["model_type"] for config in WALK.values()} - APART))
def test_a_forward_pass_of_every_decoder_type_is_what_pytorch_counts(name):
    _, whole, counted = drawn(name)
    assert whole == sum(counted.values())


@pytest.mark.parametrize("name", of_types(SCANNED | SCORED))
def test_projections_beside_a_recurrence_or_a_scorer_are_what_pytorch_counts(name):
    projected, _, counted = drawn(name)
    assert projected == sum(counted.get(operator, 0) for operator in ("mm", "addmm", "baddbmm"))


@pytest.mark.parametrize("name", of_types(CONVOLVED))
def test_short_convolutions_are_what_pytorch_counts_but_for_their_padding(name):
    _, whole, counted = drawn(name)
    tokens = COUNTED["tokens"]
    width = WALK[name].get("conv_L_cache", 3)
    padding = counted.get("convolution", 0) * (width - 1) / (tokens + width - 1)
    assert whole == sum(counted.values()) - padding


@pytest.mark.parametrize("name", of_types({"deepseek_v4"}))
def test_deepseek_v4_mixes_its_streams_in_products_that_are_left_out(name):
    """Compressed entries and their scorer included; the mixture is 0.04% of the FLOPs of V4-Flash."""
    _, whole, counted = drawn(name)
    config = WALK[name]
    mixed = 4 * config["hidden_size"] * config["hc_mult"] ** 2 * config["num_hidden_layers"]
    assert whole == sum(counted.values()) - mixed * COUNTED["tokens"]


@pytest.mark.parametrize("name", of_types({"glm5_next_text"}))
def test_a_scorer_of_pools_multiplies_one_key_for_so_many_tokens(name):
    """All but the mixture of the streams and the sum over the scorer's heads, in layers without a scan."""
    _, whole, counted = drawn(name)
    config, tokens = WALK[name], COUNTED["tokens"]
    if "linear_attention" in config["layer_types"]:
        assert counted["convolution"]
        return
    mixed = 4 * config["hidden_size"] * config["hc_mult"] ** 2 * config["num_hidden_layers"]
    summed = 2 * config["index_n_heads"] * tokens / config["index_kpool"]
    assert whole == sum(counted.values()) - tokens * (mixed + summed * config["indexer_types"].count("full"))


@pytest.mark.parametrize("name", of_types({"qwen4_exp_text"}))
def test_the_scorer_of_qwen_flash_next_takes_the_complete_pools_before_each_token(name):
    """Its class scores token by token. Convolutions over n-grams, 0.001% of its FLOPs, are left out."""
    projected, _, counted = drawn(name)
    config, tokens = WALK[name], COUNTED["tokens"]
    pools = sum((token + 1) // config["indexer_compress_ratio"] for token in range(tokens))
    each = 2 * config["indexer_n_heads"] * config["indexer_head_dim"]
    scored = config["layer_types"].count("full_attention") * each * pools
    assert projected == counted["mm"] + counted.get("addmm", 0) - scored


@pytest.mark.parametrize("name", of_types({"gemma3n_text"}))
def test_gemma_3n_mixes_its_streams_in_products_that_are_left_out(name):
    """The mixture of its streams, and its router once more: 0.04% of the FLOPs of E4B."""
    _, whole, counted = drawn(name)
    config = WALK[name]
    hidden, streams = config["hidden_size"], config.get("altup_num_inputs", 4)
    mixed = 2 * hidden * (streams**2 + streams) * config["num_hidden_layers"] * COUNTED["tokens"]
    assert whole == sum(counted.values()) - mixed


@pytest.mark.parametrize("name", of_types({"llama4_text"}))
def test_llama_4_runs_every_expert_on_every_token_in_plain_pytorch(name):
    _, whole, counted = drawn(name)
    _, with_all, _ = drawn(name, num_experts_per_tok=WALK[name].get("num_local_experts", 16))
    assert whole < with_all == sum(counted.values())


@pytest.mark.parametrize("name", of_types({"zamba"}))
def test_zamba_projects_by_heads_in_batches(name):
    """Two of its projections are among the batched products, beside scores and the scan."""
    projected, _, counted = drawn(name)
    assert counted["mm"] < projected < counted["mm"] + counted["bmm"]


def test_all_but_three_imported_types_were_counted():
    """dbrx cannot run without gradients; of ministral, no bare model and no language model was drawn.

    The work of Inkling's short convolutions, 0.2% of a layer, is left out.
    """
    counted = {WALK[name]["model_type"] for name in COUNTED["cases"]}
    assert {config["model_type"] for config in WALK.values()} - counted == {
        "dbrx",
        "inkling_text",
        "ministral",
    }
