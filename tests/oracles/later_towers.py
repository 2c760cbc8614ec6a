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
}
