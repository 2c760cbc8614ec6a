"""Models that see by a known tower and a projector of their own, against the totals of their files.

Totals are those that the hub states, in data/hf_models.json of llmfit 1.1.17 (MIT), which states the widths
of the decoders too.
"""

from dataclasses import replace

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.positions import SampleShape, forward_flops_of_sample
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from service.planning.precision import NumberFormat

SO400M = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "patch_size": 14,
}
NATIVE = {**SO400M, "model_type": "siglip2_vision_model", "patch_size": 16, "vision_use_head": False}
"""SigLIP 2 for images of any size."""
LARGE = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 384,
    "patch_size": 16,
    "vision_use_head": False,
}
UNTIED = {"tie_word_embeddings": False}


def build_text(name: str, sizes: str, **members: object) -> dict[str, object]:
    """A decoder; ``sizes`` are width, inner width, layers, heads, key-value heads and vocabulary."""
    hidden, inner, depth, heads, shared, vocabulary = (int(size) for size in sizes.split())
    return {
        "model_type": name,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "num_key_value_heads": shared,
        "vocab_size": vocabulary,
        **members,
    }


def list_kinds(depth: int, *full: int) -> list[str]:
    return ["full_attention" if index in full else "conv" for index in range(depth)]


SHALLOW = {"layer_types": list_kinds(16, 2, 5, 8, 10, 12, 14)}
DEEP = {
    "layer_types": list_kinds(30, 2, 6, 10, 14, 17, 21, 24, 27),
    "block_auto_adjust_ff_dim": False,
}
LATER = {"projector_hidden_size": 2048, "projector_use_layernorm": False}
ARIA = {
    "model_type": "aria",
    "text_config": build_text(
        "aria_text",
        "2560 1664 28 20 20 100352",
        moe_num_experts=64,
        moe_topk=6,
        moe_num_shared_experts=2,
        max_position_embeddings=65_536,
    ),
    "vision_config": {**SO400M, "model_type": "idefics3_vision", "image_size": 980},
}
LFM = {
    "model_type": "lfm2_vl",
    "text_config": build_text("lfm2", "2048 12288 16 32 8 65536", **SHALLOW),
    "vision_config": {**NATIVE, "num_hidden_layers": 26},
}
MINICPM = {
    "model_type": "minicpmv4_6",
    "tie_word_embeddings": True,
    "text_config": build_text(
        "qwen3_5_text", "1024 3584 24 8 2 248094", head_dim=256, linear_num_value_heads=16
    ),
    "vision_config": {**SO400M, "image_size": 980},
}
OVIS = {
    "model_type": "ovis2",
    "hidden_size": 896,
    "vocab_size": 151_936,
    "text_config": build_text("qwen2", "896 4864 24 14 2 151936"),
    "vision_config": {"vocab_size": 65_536, "hidden_stride": 2, "image_size": 448},
}
LIGHT_ON = {
    "model_type": "lighton_ocr",
    "text_config": build_text("qwen3", "1024 3072 28 16 8 151936", head_dim=128),
    "vision_config": {"model_type": "pixtral", "image_size": 1540, "patch_size": 14},
}
HUNYUAN = {
    "model_type": "hunyuan_vl",
    **UNTIED,
    **{
        name: value
        for name, value in build_text("", "1024 3584 24 16 8 120818", head_dim=128).items()
        if name != "model_type"
    },
    "vision_config": {"max_image_size": 2048, "attention_heads": 16},
}
DEEPSEEK_OCR = {
    "model_type": "deepseek_vl_v2",
    "architectures": ["DeepseekOCRForCausalLM"],
    "language_config": {
        **{name: value for name, value in build_text("", "1280 6848 12 10 10 129280").items() if value},
        "first_k_dense_replace": 1,
        "moe_intermediate_size": 896,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "num_experts_per_tok": 6,
        "kv_lora_rank": None,
        "q_lora_rank": None,
        "qk_rope_head_dim": 0,
        "use_mla": False,
    },
    "projector_config": {"input_dim": 2048, "n_embed": 1280, "projector_type": "linear"},
    "vision_config": {
        "image_size": 1024,
        "model_name": "deeplip_b_l",
        "width": {
            "clip-l-14-224": {"heads": 16, "image_size": 224, "layers": 24, "patch_size": 14, "width": 1024},
            "sam_vit_b": {
                "downsample_channels": [512, 1024],
                "global_attn_indexes": [2, 5, 8, 11],
                "heads": 12,
                "layers": 12,
                "width": 768,
            },
        },
    },
}
GRANITE = {
    "model_type": "granite4_vision",
    "tie_word_embeddings": True,
    "downsample_rate": "4/8",
    "deepstack_layer_map": [[-19, 9], [-13, 6], [-7, 3], [-1, 0]],
    "vision_feature_select_strategy": "full",
    "text_config": build_text("granite4_vision_text", "2560 8192 40 40 8 100352"),
    "vision_config": {**SO400M, "model_type": "siglip_vision_model", "image_size": 384, "patch_size": 16},
}
GOT = {"model_type": "got_ocr2", "text_config": build_text("qwen2", "1024 2816 24 16 16 151860")}
DOTS = {**build_text("dots_ocr", "1536 8960 28 12 2 151936"), **UNTIED, "attention_bias": True}
PHI = {
    **build_text("phi3_v", "3072 8192 32 32 32 32064"),
    "architectures": ["Phi3VForCausalLM"],
    "img_processor": {"name": "clip_vision_model", "image_dim_out": 1024, "num_img_tokens": 144},
    "embd_layer": {
        "projection_cls": "mlp",
        "use_hd_transform": True,
        "with_learnable_separator": True,
    },
}
PUBLISHED = {
    "deepseek-ai/DeepSeek-OCR": (DEEPSEEK_OCR, 3_336_106_240),
    "ibm-granite/granite-vision-4.1-4b": (GRANITE, 3_997_203_904),
    "stepfun-ai/GOT-OCR-2.0-hf": (GOT, 560_528_640),
    "rednote-hilab/dots.ocr": (DOTS, 3_039_179_264),
    "microsoft/Phi-3.5-vision-instruct": (PHI, 4_146_621_440),
    "rhymes-ai/Aria": (ARIA, 25_307_311_216),
    "LiquidAI/LFM2-VL-1.6B": (LFM, 1_584_804_000),
    "LiquidAI/LFM2.5-VL-1.6B": ({**LFM, **LATER, "vision_config": NATIVE}, 1_596_625_904),
    "LiquidAI/LFM2-VL-450M": (
        {
            "model_type": "lfm2_vl",
            "text_config": build_text("lfm2", "1024 6656 16 16 8 65536", **SHALLOW),
            "vision_config": {"model_type": "siglip2_vision_model", "vision_use_head": False},
        },
        450_822_656,
    ),
    "LiquidAI/LFM2-VL-3B": (
        {
            "model_type": "lfm2_vl",
            "text_config": build_text("lfm2", "2048 10752 30 32 8 65536", **DEEP),
            "vision_config": NATIVE,
        },
        2_998_975_216,
    ),
    "LiquidAI/LFM2.5-VL-3B": (
        {
            "model_type": "lfm2_vl",
            **LATER,
            "text_config": build_text("lfm2", "2048 10752 30 32 8 128000", **DEEP),
            "vision_config": NATIVE,
        },
        3_123_483_888,
    ),
    "deepseek-community/deepseek-vl-1.3b-chat": (
        {
            "model_type": "deepseek_vl",
            **UNTIED,
            "text_config": build_text("llama", "2048 5632 24 16 16 102400"),
            "vision_config": LARGE,
        },
        1_962_640_384,
    ),
    "openbmb/MiniCPM-V-4.6": (MINICPM, 1_300_428_016),
    "thisisiron/Ovis2-1B-hf": (OVIS, 1_131_283_318),
    "lightonai/LightOnOCR-2-1B": (LIGHT_ON, 1_005_647_872),
    "llava-hf/vip-llava-7b-hf": (
        {"model_type": "vipllava", "text_config": build_text("llama", "4096 11008 32 32 32 32064")},
        7_080_214_528,
    ),
    "baidu/Qianfan-OCR": (
        {
            "model_type": "qianfan_ocr",
            "text_config": build_text("qwen3", "2560 9728 36 32 8 153678", head_dim=128),
        },
        4_741_408_256,
    ),
    "tencent/HunyuanOCR": (HUNYUAN, 1_119_925_744),
    "naver-hyperclovax/HyperCLOVAX-SEED-Think-32B": (
        {
            "model_type": "hyperclovax_vision_v2",
            **UNTIED,
            "text_config": build_text(
                "hyperclovax", "5120 24192 72 40 8 128256", head_dim=128, use_post_norm=False
            ),
            "vision_config": {"hidden_size": 1280, "intermediate_size": 3456, "out_hidden_size": 5120},
        },
        33_313_410_304,
    ),
    "sherif1313/Arabic-GLM-OCR-v2": (
        {
            "model_type": "glm_ocr",
            "text_config": build_text("glm_ocr_text", "1536 4608 16 16 8 59392", head_dim=128),
        },
        1_107_405_824,
    ),
    "OpenGryd/PaddleOCR-VL-1.6-MLX-8bit": ({"model_type": "paddleocr_vl", **UNTIED}, 905_601_648),
}


@pytest.mark.parametrize(("config", "total"), PUBLISHED.values(), ids=PUBLISHED)
def test_parameters_are_those_of_the_files(config, total):
    assert build_profile(import_config(config).architecture).parameter_count == total


def test_aria_takes_six_experts_of_64_and_two_that_all_take():
    """The card publishes 3.5e9 active parameters for a token of text, without tables."""
    text = build_profile(import_config(ARIA["text_config"]).architecture)
    layer = 4 * 2560**2 + 8 * 3 * 2560 * 1664 + 64 * 2560 + 2 * 2560
    assert text.active_parameter_count == 28 * layer + 2560 + 2 * 2560 * 100_352
    assert 28 * layer == pytest.approx(3.5e9, rel=0.04)


def count_positions(config, height):
    return forward_pass(
        import_config(config).architecture, SampleShape(tokens=5, height=height), decodes=True
    ).positions


@pytest.mark.parametrize(
    ("config", "height", "positions"),
    [
        (ARIA, 980, 256),
        (LFM, 512, 256),
        (DEEPSEEK_OCR, 1024, 256),
        (GRANITE, 384, 12**2),
        (GOT, 1024, 256),
        (DOTS, 1120, 40**2),
        (PHI, 336, 12**2),
        (MINICPM, 980, (70 // 4) ** 2),
        ({**MINICPM, "downsample_mode": "4x"}, 980, 35**2),
        (OVIS, 448, 16**2),
        (LIGHT_ON, 1540, 55**2),
        ({"model_type": "glm_ocr"}, 1120, 40**2),
        ({"model_type": "paddleocr_vl"}, 392, 14**2),
        (HUNYUAN, 1024, 32**2),
        ({"model_type": "lfm3_vl"}, 512, 16**2),
        ({"model_type": "vipllava"}, 336, 24**2),
    ],
)
def test_an_image_takes_as_many_positions_as_are_projected(config, height, positions):
    assert count_positions(config, height) == positions


def test_layers_of_convolutions_keep_no_keys():
    profile = build_profile(import_config(LFM).architecture)
    assert key_value_bytes(profile, 10_000.0, NumberFormat.BF16) == 6 * 2 * 8 * 64 * 2 * 10_000


@pytest.mark.parametrize(
    ("config", "change", "code", "pointer"),
    [
        (
            ARIA,
            {"projector_patch_to_query_dict": {"1225": 128}},
            "UNSUPPORTED",
            "/projector_patch_to_query_dict",
        ),
        (ARIA, {"projector_patch_to_query_dict": {"many": 128}}, "INVALID", "/projector_patch_to_query_dict"),
        (ARIA, {"projector_patch_to_query_dict": {"4900": 0}}, "INVALID", "/projector_patch_to_query_dict"),
        (ARIA, {"projector_patch_to_query_dict": []}, "INVALID", "/projector_patch_to_query_dict"),
        (LFM, {"vision_config": {**NATIVE, "num_patches": 200}}, "INVALID", "/vision_config/num_patches"),
        (
            {"model_type": "lfm3_vl"},
            {"vision_config": {"layer_types": ["mamba"] * 14}},
            "UNSUPPORTED",
            "/vision_config/layer_types",
        ),
        (MINICPM, {"merge_kernel_size": [4, 4]}, "UNSUPPORTED", "/merge_kernel_size"),
        (MINICPM, {"insert_layer_id": 27}, "INVALID", "/vision_config/num_hidden_layers"),
        (MINICPM, {"downsample_mode": "2x"}, "UNSUPPORTED", "/downsample_mode"),
        (OVIS, {"hidden_size": 1024}, "UNSUPPORTED", "/hidden_size"),
        (
            OVIS,
            {"vision_config": {"vocab_size": 5}},
            "INVALID",
            "/vision_config/vocab_size",
        ),
        (GOT, {"text_config": None}, "MISSING", "/text_config"),
        (DOTS, {"vision_config": {"hidden_size": 2048}}, "UNSUPPORTED", "/vision_config/hidden_size"),
        (
            DOTS,
            {"vision_config": {"temporal_patch_size": 2}},
            "UNSUPPORTED",
            "/vision_config/temporal_patch_size",
        ),
        (PHI, {"img_processor": {"name": "siglip"}}, "UNSUPPORTED", "/img_processor/name"),
        (PHI, {"embd_layer": {}}, "UNSUPPORTED", "/embd_layer/projection_cls"),
        (
            PHI,
            {"embd_layer": {"projection_cls": "mlp"}},
            "UNSUPPORTED",
            "/embd_layer/use_hd_transform",
        ),
        (GRANITE, {"downsample_rate": "8/4"}, "INVALID", "/downsample_rate"),
        (GRANITE, {"downsample_rate": "4/7"}, "INVALID", "/downsample_rate"),
        (GRANITE, {"deepstack_layer_map": None}, "INVALID", "/deepstack_layer_map"),
        (
            GRANITE,
            {"qformer_config": {"use_qformer_text_input": True}},
            "UNSUPPORTED",
            "/qformer_config/use_qformer_text_input",
        ),
        (DEEPSEEK_OCR, {"language_config": {}}, "UNSUPPORTED", "/language_config/use_mla"),
        (
            DEEPSEEK_OCR,
            {"projector_config": {"projector_type": "downsample_mlp_gelu"}},
            "UNSUPPORTED",
            "/projector_config/projector_type",
        ),
        (
            DEEPSEEK_OCR,
            {"projector_config": {"input_dim": 896}},
            "UNSUPPORTED",
            "/projector_config/input_dim",
        ),
        (
            DEEPSEEK_OCR,
            {"vision_config": {"model_name": "siglip_large_patch16_384"}},
            "UNSUPPORTED",
            "/vision_config/model_name",
        ),
        (
            DEEPSEEK_OCR,
            {"vision_config": {"width": {"clip-l-14-224": {"width": 512}}}},
            "UNSUPPORTED",
            "/vision_config/width/clip-l-14-224/width",
        ),
        (LIGHT_ON, {"text_config": None}, "MISSING", "/text_config"),
        (HUNYUAN, {"vision_config": {"max_image_size": 8}}, "INVALID", "/vision_config/max_image_size"),
        (
            {"model_type": "llava_next_video"},
            {"spatial_pool_mode": "conv"},
            "UNSUPPORTED",
            "/spatial_pool_mode",
        ),
    ],
)
def test_what_is_not_known_is_refused_by_member(config, change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**config, **change})
    assert (caught.value.code, caught.value.pointer) == (f"CONFIG_FIELD_{code}", pointer)


def test_deepseek_ocr_takes_six_experts_of_64_and_keeps_keys_by_head():
    profile = build_profile(import_config(DEEPSEEK_OCR).architecture)
    idle = 11 * 58 * 3 * 1280 * 896
    assert profile.active_parameter_count == 3_336_106_240 - idle
    assert key_value_bytes(profile, 1000.0, NumberFormat.BF16) == 12 * 2 * 1280 * 2 * 1000


def test_most_blocks_of_segment_anything_attend_within_windows():
    windows = [
        layer.window_tokens
        for block in import_config(GOT).architecture.list_blocks()
        for layer in block.layers * block.count
        if block.over == ("image",) and layer.kind == "attention"
    ]
    assert windows == [None if index in (2, 5, 8, 11) else 14**2 for index in range(12)]


SMALL = {
    "hidden_size": 32,
    "intermediate_size": 50,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 56,
    "patch_size": 14,
}
NARROW = build_text("llama", "48 30 2 4 2 99")


@pytest.mark.parametrize(
    ("config", "flops"),
    [
        (
            {
                "model_type": "aria",
                "text_config": {**NARROW, "model_type": "aria_text", "moe_num_experts": 4, "moe_topk": 2},
                "vision_config": {**SMALL, "model_type": "idefics3_vision"},
                "projector_patch_to_query_dict": {"16": 4, "64": 9},
            },
            1_337_344,
        ),
        (
            {
                "model_type": "granite4_vision",
                "text_config": {**NARROW, "model_type": "granite4_vision_text"},
                "vision_config": {
                    **SMALL,
                    "hidden_size": 128,
                    "model_type": "siglip_vision_model",
                    "vision_use_head": False,
                },
                "downsample_rate": "1/2",
                "deepstack_layer_map": [[-1, 0]],
                "vision_feature_select_strategy": "full",
            },
            48_613_376,
        ),
        (
            {
                "model_type": "ovis2",
                "text_config": {**NARROW, "model_type": "qwen2"},
                "hidden_size": 48,
                "vocab_size": 99,
                "vision_config": {**SMALL, "vocab_size": 77, "hidden_stride": 2},
            },
            1_340_288,
        ),
        (
            {
                "model_type": "deepseek_vl",
                "text_config": NARROW,
                "vision_config": {**SMALL, "model_type": "siglip_vision_model", "vision_use_head": False},
            },
            1_257_472,
        ),
    ],
    ids=["aria", "granite4_vision", "ovis2", "deepseek_vl"],
)
def test_flops_of_an_image_are_those_that_pytorch_counts(config, flops):
    """Tower and projector over one image of 56 pixels: the counter of PyTorch 2.13 in transformers 5.24."""
    whole = import_config(config).architecture
    text = replace(
        whole, layers=tuple(layer for layer in whole.layers if getattr(layer, "over", ()) != ("image",))
    )
    counted = [forward_flops_of_sample(each, SampleShape(tokens=5, height=56)) for each in (whole, text)]
    assert counted[0] - counted[1] == flops
