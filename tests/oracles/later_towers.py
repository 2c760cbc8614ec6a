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
}
