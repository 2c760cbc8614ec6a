"""Fields that ``tower_counts.py`` draws for families that came after its list was long.

Each is a class prefix, the suffixes of its classes, the values of its fields and the number of draws.
"""

BOTH = ("ForConditionalGeneration", "Model")
TEXT = {
    "hidden_size": [48, 96],
    "num_attention_heads": [4],
    "num_key_value_heads": [2, 4],
    "num_hidden_layers": [4],
    "intermediate_size": [30, 77],
    "vocab_size": [99],
    "max_position_embeddings": [64],
    "pad_token_id": [0],
}
HEARING = {
    "d_model": [32],
    "encoder_layers": [2, 3],
    "encoder_attention_heads": [4],
    "encoder_ffn_dim": [50],
    "num_mel_bins": [16, 20],
    "output_dim": [48],
}
SEEING = {
    "depth": [2, 3],
    "hidden_size": [32, 64],
    "num_heads": [4],
    "intermediate_size": [50],
    "out_hidden_size": [48],
}
SIGLIP = {
    "hidden_size": [32],
    "intermediate_size": [50],
    "num_hidden_layers": [2, 3],
    "num_attention_heads": [4],
    "image_size": [28, 56],
    "patch_size": [14],
}
NARROW = {**TEXT, "hidden_size": [48], "model_type": ["llama"]}
TIES = {"tie_word_embeddings": [False, True]}
LATER = {
    "step3p7": (
        "Step3p7",
        BOTH,
        {
            "text_config": [
                {
                    **TEXT,
                    "model_type": ["step3p5"],
                    "head_dim": [12],
                    "n_routed_experts": [5],
                    "num_experts_per_tok": [2],
                    "moe_intermediate_size": [24],
                    "share_expert_dim": [20],
                    "sliding_window": [16],
                    "num_sliding_attention_heads": [4, 8],
                    "layer_types": [["full_attention", *["sliding_attention"] * 3]],
                    "mlp_layer_types": [["dense", *["sparse"] * 3]],
                }
            ],
            "vision_config": [
                {
                    "model_type": ["step3p5_vision"],
                    "hidden_size": [32, 64],
                    "num_hidden_layers": [2, 3],
                    "num_attention_heads": [4],
                    "image_size": [56],
                    "patch_size": [14],
                    "mlp_ratio": [1.7, 2.0],
                }
            ],
            "projector_bias": [False, True],
        },
        4,
    ),
    "qwen2_5_omni_thinker": (
        "Qwen2_5OmniThinker",
        ("ForConditionalGeneration",),
        {
            "text_config": [{**TEXT, "hidden_size": [48], "model_type": ["qwen2_5_omni_text"]}],
            "vision_config": [{**SEEING, "model_type": ["qwen2_5_omni_vision_encoder"]}],
            "audio_config": [{**HEARING, "model_type": ["qwen2_5_omni_audio_encoder"]}],
            "tie_word_embeddings": [False, True],
        },
        4,
    ),
    "qwen3_omni_moe_thinker": (
        "Qwen3OmniMoeThinker",
        ("ForConditionalGeneration",),
        {
            "text_config": [
                {
                    **TEXT,
                    "hidden_size": [48],
                    "model_type": ["qwen3_omni_moe_text"],
                    "head_dim": [None, 16],
                    "num_experts": [5],
                    "num_experts_per_tok": [2],
                    "moe_intermediate_size": [24],
                    "mlp_only_layers": [[], [1]],
                }
            ],
            "vision_config": [
                {
                    **SEEING,
                    "model_type": ["qwen3_omni_moe_vision_encoder"],
                    "deepstack_visual_indexes": [[0, 1], [1]],
                    "num_position_embeddings": [16],
                }
            ],
            "audio_config": [
                {
                    **HEARING,
                    "model_type": ["qwen3_omni_moe_audio_encoder"],
                    "downsample_hidden_size": [6, 10],
                }
            ],
            "tie_word_embeddings": [False, True],
        },
        4,
    ),
    "phi4_multimodal": (
        "Phi4Multimodal",
        ("ForCausalLM", "Model"),
        {
            **TEXT,
            "hidden_size": [48],
            "tie_word_embeddings": [False, True],
            "vision_config": [
                {
                    "hidden_size": [32],
                    "intermediate_size": [50],
                    "num_hidden_layers": [2, 3],
                    "num_attention_heads": [4],
                    "image_size": [56],
                    "patch_size": [14],
                }
            ],
            "audio_config": [
                {
                    "hidden_size": [32],
                    "ext_pw_out_channel": [32],
                    "depthwise_separable_out_channel": [32],
                    "depthwise_multiplier": [1, 2],
                    "intermediate_size": [30],
                    "num_blocks": [2, 3],
                    "num_attention_heads": [4],
                    "kernel_size": [3, 5],
                    "input_size": [20, 24],
                    "time_reduction": [4, 8],
                    "bias_max_distance": [10],
                    "bias_symmetric": [False, True],
                    "nemo_conv_channels": [6],
                }
            ],
        },
        4,
    ),
    "molmo2": (
        "Molmo2",
        BOTH,
        {
            "text_config": [
                {
                    **TEXT,
                    "hidden_size": [48],
                    "model_type": ["molmo2_text"],
                    "head_dim": [12],
                    "additional_vocab_size": [0, 7],
                    "attention_bias": [False, True],
                    "qk_norm_type": ["qwen3", "olmo"],
                    "norm_after": [False, True],
                }
            ],
            "vision_config": [
                {
                    "model_type": ["molmo2_vision"],
                    "hidden_size": [32],
                    "intermediate_size": [50],
                    "num_hidden_layers": [3],
                    "num_attention_heads": [4],
                    "num_key_value_heads": [2, 4],
                    "head_dim": [8],
                    "image_size": [[56, 56]],
                    "num_position_embeddings": [16],
                }
            ],
            "adapter_config": [
                {
                    "model_type": ["molmo2_adapter"],
                    "vision_feature_layer": [[2, 0], [1]],
                    "hidden_size": [32],
                    "num_attention_heads": [4],
                    "num_key_value_heads": [2, 4],
                    "head_dim": [8],
                    "intermediate_size": [30],
                    "text_hidden_size": [48],
                }
            ],
        },
        6,
    ),
    "ernie4_5_vl_moe": (
        "Ernie4_5_VLMoe",
        BOTH,
        {
            "text_config": [
                {
                    **TEXT,
                    "hidden_size": [48],
                    "model_type": ["ernie4_5_vl_moe_text"],
                    "rope_parameters": [
                        {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [2, 2, 2]}
                    ],
                    "moe_k": [2],
                    "moe_num_experts": [5],
                    "moe_intermediate_size": [[24, 10], [12, 20]],
                    "moe_num_shared_experts": [0, 2],
                    "mlp_layer_types": [None, ["dense", "sparse", "dense", "sparse"]],
                }
            ],
            "vision_config": [
                {
                    "model_type": ["ernie4_5_vl_moe_vision"],
                    "depth": [2, 3],
                    "hidden_size": [32, 64],
                    "num_heads": [4],
                    "intermediate_size": [50],
                    "spatial_merge_size": [1, 2],
                }
            ],
            "tie_word_embeddings": [False, True],
        },
        6,
    ),
    "muse_glimmer": (
        "MuseGlimmer",
        BOTH,
        {
            "text_config": [
                {
                    **TEXT,
                    "hidden_size": [48],
                    "model_type": ["muse_glimmer_text"],
                    "head_dim": [8, 16],
                    "attention_bias": [False, True],
                }
            ],
            "vision_config": [
                {
                    "model_type": ["muse_glimmer_vision"],
                    "hidden_size": [32],
                    "intermediate_size": [50],
                    "num_hidden_layers": [2, 5],
                    "num_attention_heads": [4],
                    "pos_emb_height": [4],
                    "pos_emb_width": [4],
                    "merge_size": [2],
                }
            ],
            "out_hidden_size": [128],
            "projector_hidden_size": [40, 64],
            "tie_word_embeddings": [False, True],
        },
        6,
    ),
    "exaone4_5": (
        "Exaone4_5_",
        BOTH,
        {
            "text_config": [
                {
                    **TEXT,
                    "hidden_size": [48],
                    "model_type": ["exaone4"],
                    "bos_token_id": [1],
                    "eos_token_id": [2],
                }
            ],
            "vision_config": [
                {
                    **SEEING,
                    "model_type": ["exaone4_5_vision"],
                    "num_key_value_heads": [1, 2, 4],
                    "fullatt_block_indexes": [[0], [1]],
                }
            ],
            "tie_word_embeddings": [False, True],
        },
        6,
    ),
    "llava_next_video": (
        "LlavaNextVideo",
        BOTH,
        {
            "text_config": [{**NARROW, **TIES}],
            "vision_config": [{**SIGLIP, "model_type": ["clip_vision_model"]}],
            "vision_feature_layer": [-2, [-2, -3]],
            "multimodal_projector_bias": [False, True],
            **TIES,
        },
        6,
    ),
    "vipllava": (
        "VipLlava",
        BOTH,
        {
            "text_config": [NARROW],
            "vision_config": [{**SIGLIP, "model_type": ["clip_vision_model"]}],
            "vision_feature_layer": [None, -2, [-2, -3]],
            **TIES,
        },
        6,
    ),
    "aria": (
        "Aria",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["aria_text"],
                    "moe_num_experts": [4],
                    "moe_topk": [2],
                    "moe_num_shared_experts": [1, 2],
                }
            ],
            "vision_config": [{**SIGLIP, "model_type": ["idefics3_vision"]}],
            "projector_patch_to_query_dict": [{"4": 2, "16": 8}, {"4": 3, "16": 4, "64": 9}],
            **TIES,
        },
        6,
    ),
    "deepseek_vl": (
        "DeepseekVL",
        BOTH,
        {
            "text_config": [NARROW],
            "vision_config": [
                {**SIGLIP, "model_type": ["siglip_vision_model"], "vision_use_head": [False, True]}
            ],
            **TIES,
        },
        6,
    ),
    "lfm2_vl": (
        "Lfm2Vl",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["lfm2"],
                    "block_multiple_of": [16],
                    "layer_types": [["conv", "full_attention", "conv", "full_attention"]],
                }
            ],
            "vision_config": [
                {
                    **SIGLIP,
                    "model_type": ["siglip2_vision_model"],
                    "image_size": [None],
                    "num_patches": [16, 25],
                    "vision_use_head": [False, True],
                }
            ],
            "projector_hidden_size": [40, 56],
            "projector_bias": [False, True],
            "projector_use_layernorm": [False, True],
            "downsample_factor": [1, 2],
            **TIES,
        },
        8,
    ),
    "lfm3_vl": (
        "Lfm3Vl",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["lfm3"], "head_dim": [12]}],
            "vision_config": [
                {
                    "model_type": ["lfm3_vl_vision"],
                    "hidden_size": [32],
                    "intermediate_size": [50],
                    "num_hidden_layers": [5],
                    "num_attention_heads": [4],
                    "num_key_value_heads": [2, 4],
                    "conv_kernel_size": [3, 5],
                    "layer_types": [None, ["full_attention", "conv", "conv", "full_attention", "conv"]],
                }
            ],
            "projector_hidden_size": [40],
            "projector_bias": [False, True],
            **TIES,
        },
        6,
    ),
    "ovis2": (
        "Ovis2",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["qwen2"]}],
            "vision_config": [
                {
                    **SIGLIP,
                    "model_type": ["ovis2_vision"],
                    "vocab_size": [77],
                    "hidden_stride": [1, 2],
                    "qkv_bias": [False, True],
                    "mlp_bias": [False, True],
                }
            ],
            "hidden_size": [48],
            "vocab_size": [99],
            **TIES,
        },
        6,
    ),
    "lighton_ocr": (
        "LightOnOcr",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["qwen3"], "head_dim": [12, 20]}],
            "vision_config": [{**SIGLIP, "model_type": ["pixtral"]}],
            "spatial_merge_size": [1, 2],
            **TIES,
        },
        6,
    ),
    "qianfan_ocr": (
        "QianfanOCR",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["qwen3"], "head_dim": [12, 20]}],
            "vision_config": [
                {
                    **SIGLIP,
                    "model_type": ["qianfan_ocr_vision"],
                    "attention_bias": [False, None],
                    "use_qk_norm": [False, True],
                    "use_mean_pooling": [False, True],
                }
            ],
            **TIES,
        },
        6,
    ),
    **{
        name: (
            prefix,
            BOTH,
            {
                "text_config": [
                    {
                        **NARROW,
                        "model_type": ["qwen3_5_text"],
                        "head_dim": [12],
                        "linear_num_key_heads": [2],
                        "linear_num_value_heads": [4],
                        "linear_key_head_dim": [10],
                        "linear_value_head_dim": [14],
                    }
                ],
                "vision_config": [SIGLIP],
                "insert_layer_id": [0, 1],
                "merger_times": [1, 2],
                "downsample_mode": ["4x", "16x"],
                **TIES,
            },
            4,
        )
        for name, prefix in (
            ("minicpm_ocr", "MiniCPMOcr"),
            ("minicpmv4_6", "MiniCPMV4_6"),
            ("minicpmv4_7", "MiniCPMV4_7"),
        )
    },
    "glm_ocr": (
        "GlmOcr",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["glm_ocr_text"], "head_dim": [None, 20], **TIES}],
            "vision_config": [
                {
                    **SEEING,
                    "model_type": ["glm_ocr_vision"],
                    "attention_bias": [False, True],
                    "in_channels": [3, 4],
                }
            ],
            **TIES,
        },
        6,
    ),
    "hunyuan_vl": (
        "HunYuanVL",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["hunyuan_vl_text"],
                    "head_dim": [12, 20],
                    "attention_bias": [False, True],
                    **TIES,
                }
            ],
            "vision_config": [
                {
                    "hidden_size": [32],
                    "intermediate_size": [50],
                    "num_hidden_layers": [2, 3],
                    "num_attention_heads": [4],
                    "patch_size": [14],
                    "max_image_size": [28, 70],
                    "spatial_merge_size": [1, 2],
                }
            ],
            **TIES,
        },
        6,
    ),
    "hyperclovax_vision_v2": (
        "HyperCLOVAXVisionV2",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["hyperclovax"],
                    "head_dim": [12, 20],
                    "use_post_norm": [False, True],
                }
            ],
            "vision_config": [{**SEEING, "model_type": ["qwen2_5_vl_vision"], "out_hidden_size": [40]}],
            **TIES,
        },
        4,
    ),
    "paddleocr_vl": (
        "PaddleOCRVL",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["paddleocr_vl_text"],
                    "head_dim": [12, 20],
                    "use_bias": [False, True],
                    **TIES,
                }
            ],
            "vision_config": [{**SIGLIP, "spatial_merge_size": [1, 2]}],
            **TIES,
        },
        6,
    ),
    "got_ocr2": (
        "GotOcr2",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["qwen2"]}],
            "vision_config": [
                {
                    **SIGLIP,
                    "intermediate_size": [None],
                    "mlp_dim": [50],
                    "window_size": [2],
                    "output_channels": [10, 16],
                    "global_attn_indexes": [[0], [1]],
                    "qkv_bias": [False, True],
                    "use_abs_pos": [False, True],
                    "use_rel_pos": [False, True],
                }
            ],
            **TIES,
        },
        6,
    ),
    "granite4_vision": (
        "Granite4Vision",
        BOTH,
        {
            "text_config": [{**NARROW, "model_type": ["granite4_vision_text"]}],
            "vision_config": [
                {
                    **SIGLIP,
                    "model_type": ["siglip_vision_model", "clip_vision_model"],
                    "hidden_size": [128],
                    "image_size": [56],
                }
            ],
            "qformer_config": [
                None,
                {
                    "model_type": ["blip_2_qformer"],
                    "num_hidden_layers": [1, 3],
                    "intermediate_size": [60],
                    "use_qformer_text_input": [False],
                },
            ],
            "downsample_rate": ["1/2", "2/4"],
            "deepstack_layer_map": [[[-1, 0]], [[-2, 1], [-1, 0]]],
            **TIES,
        },
        6,
    ),
    "inkling_mm_model": (
        "Inkling",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["inkling_text"],
                    "head_dim": [12],
                    "swa_num_attention_heads": [6],
                    "swa_num_key_value_heads": [2, 3],
                    "swa_head_dim": [8],
                    "sliding_window_size": [16],
                    "d_rel": [4],
                    "rel_extent": [8],
                    "n_routed_experts": [5],
                    "num_experts_per_tok": [2],
                    "n_shared_experts": [1, 2],
                    "moe_intermediate_size": [24],
                    "dense_mlp_idx": [0, 2],
                    "dense_intermediate_size": [None, 40],
                    "local_layer_ids": [None, [0, 2]],
                }
            ],
            "vision_config": [
                {
                    "patch_size": [4, 12, 40],
                    "temporal_patch_size": [2, 4],
                    "num_hidden_layers": [2, 3, 4, 9],
                }
            ],
            "audio_config": [{"n_mel_bins": [5], "mel_vocab_size": [7]}],
        },
        10,
    ),
    "mistral_large4": (
        "MistralLarge4",
        BOTH,
        {
            "text_config": [
                {
                    **TEXT,
                    "hidden_size": [48],
                    "num_key_value_heads": [4],
                    "model_type": ["mistral_large4_text"],
                    "kv_lora_rank": [20],
                    "qk_rope_head_dim": [8],
                    "qk_nope_head_dim": [10],
                    "v_head_dim": [14],
                    "index_head_dim": [16],
                    "index_n_heads": [3],
                    "n_routed_experts": [5],
                    "num_experts_per_tok": [2],
                    "n_shared_experts": [1, 2],
                    "moe_intermediate_size": [24],
                    "first_k_dense_replace": [0, 1, 2],
                    "attention_bias": [False, True],
                    "no_rope_layers": [None, [0, 1, 1, 0]],
                    "indexer_types": [None, ["full", "shared", "full", "shared"]],
                    "index_topk_freq": [None, 2, 3],
                }
            ],
            "vision_config": [{**SIGLIP, "model_type": ["pixtral"]}],
            "multimodal_projector_bias": [False, True],
            **TIES,
        },
        10,
    ),
    "apertus1p5": (
        "Apertus1p5",
        BOTH,
        {
            "text_config": [
                {
                    **NARROW,
                    "model_type": ["apertus1p5_text"],
                    "output_vocab_size": [None, 77],
                    "attention_bias": [False, True],
                }
            ],
            "vision_config": [
                {
                    "codebook_size": [90],
                    "embed_dim": [12],
                    "latent_channels": [10],
                    "base_channels": [32],
                    "channel_multiplier": [[1, 2], [1, 1, 3]],
                    "num_res_blocks": [1, 2],
                    "attn_resolutions": [[16], [32, 64]],
                    "resolution": [64],
                }
            ],
            "image_token_offset": [0],
            "audio_token_offset": [90],
            "audio_config": [
                {
                    "model_type": ["wavtokenizer_encoder"],
                    "num_filters": [4],
                    "upsampling_ratios": [[3, 2], [2]],
                    "num_residual_layers": [1, 2],
                    "num_lstm_layers": [1, 2],
                    "hidden_size": [20],
                    "codebook_dim": [20],
                    "codebook_size": [5],
                    "use_conv_shortcut": [False, True],
                }
            ],
        },
        8,
    ),
}
