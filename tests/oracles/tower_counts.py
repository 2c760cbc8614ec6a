"""Parameter counts of encoders, vision, multimodal and diffusion models as PyTorch counts them.

Run by ``make oracles`` beside ``parameter_counts.py``; writes ``tower_counts.json``. A published
configuration is a file of ``tower_configs``; the random ones draw every field of a family from its list.
Models are built on the meta device, so no weights are made.
"""

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import diffusers
import torch
import transformers
from later_towers import LATER
from torch import nn
from transformers import CONFIG_MAPPING

HERE = Path(__file__).parent
IGNORED = {"model_type", "architectures", "transformers_version", "torch_dtype", "dtype"}
FLAG = [False, True]
TIE = {"tie_word_embeddings": [True, True, False]}


class Choices(NamedTuple):
    """Class prefix, class suffixes, and the values that each field is drawn from."""

    prefix: str
    suffixes: tuple[str, ...]
    fields: dict[str, list]
    count: int = 4


TEXT_CLASSES = (
    "Model",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
)
LABELS = {"id2label": [None, {"0": "a", "1": "b", "2": "c"}]}
SIZES = {
    "hidden_size": [24, 48, 96],
    "num_attention_heads": [2, 4, 6],
    "num_hidden_layers": [1, 2, 5],
    "intermediate_size": [20, 77],
}
TEXT = {
    **SIZES,
    **LABELS,
    "vocab_size": [99, 512],
    "max_position_embeddings": [40, 130],
    "type_vocab_size": [1, 3],
    "pad_token_id": [1],
}
SEQ2SEQ = {
    "d_model": [24, 48],
    "encoder_layers": [1, 3],
    "decoder_layers": [2, 4],
    "encoder_attention_heads": [2, 4],
    "decoder_attention_heads": [3, 6],
    "encoder_ffn_dim": [20, 50],
    "decoder_ffn_dim": [28, 66],
    "vocab_size": [99, 300],
    "max_position_embeddings": [40, 90],
    "pad_token_id": [1],
}
T5 = {
    "d_model": [24, 48],
    "d_kv": [5, 8],
    "d_ff": [20, 44],
    "num_layers": [1, 3],
    "num_decoder_layers": [None, 2],
    "num_heads": [3, 4],
    "vocab_size": [99, 300],
    "relative_attention_num_buckets": [8, 32],
    "feed_forward_proj": ["relu", "gated-gelu"],
    "tie_word_embeddings": [True, False],
}
T5_CLASSES = ("ForConditionalGeneration", "Model", "EncoderModel")
IMAGE = {**SIZES, **LABELS, "image_size": [32, 56], "patch_size": [4, 8], "num_channels": [3, 1]}
IMAGE_CLASSES = ("Model", "ForImageClassification")
TEXT_TOWER = {**SIZES, "vocab_size": [99], "max_position_embeddings": [20], "pad_token_id": [1]}

SEEING = ("ForConditionalGeneration", "Model")
SPOKEN_TEXT = {
    "hidden_size": [48, 96],
    "num_attention_heads": [4],
    "num_key_value_heads": [2, 4],
    "num_hidden_layers": [2, 3],
    "intermediate_size": [30, 77],
    "vocab_size": [99],
    "tie_word_embeddings": [False],
}
GLM_V_TEXT = {**SPOKEN_TEXT, "model_type": ["glm4v_text"]}
GLM_V_TOWER = {
    "model_type": ["glm4v_vision"],
    "depth": [2, 3],
    "hidden_size": [32, 64],
    "num_heads": [4],
    "image_size": [28, 56],
    "patch_size": [14],
    "spatial_merge_size": [2],
    "out_hidden_size": [48],
    "intermediate_size": [50],
    "attention_bias": FLAG,
}
COHERE_VISION = {
    "vision_config": [
        {**IMAGE, "id2label": [None], "model_type": ["siglip_vision_model"], "vision_use_head": FLAG}
    ],
    "text_config": [
        {**SPOKEN_TEXT, "model_type": ["cohere2"], "head_dim": [12], "tie_word_embeddings": [True]}
    ],
    "downsample_factor": [2],
}

FAMILIES: dict[str, Choices] = {
    "roberta": Choices("Roberta", (*TEXT_CLASSES, "ForMultipleChoice"), {**TEXT, **TIE}),
    "xlm-roberta": Choices("XLMRoberta", TEXT_CLASSES, {**TEXT, **TIE}),
    "albert": Choices(
        "Albert",
        (*TEXT_CLASSES, "ForPreTraining", "ForMultipleChoice"),
        {
            **TEXT,
            "embedding_size": [16, 24],
            "num_hidden_layers": [2, 5],
            "num_hidden_groups": [1, 2],
            "inner_group_num": [1, 2],
        },
        6,
    ),
    "electra": Choices("Electra", (*TEXT_CLASSES, "ForPreTraining"), {**TEXT, "embedding_size": [16, 24]}, 5),
    "distilbert": Choices(
        "DistilBert",
        (*TEXT_CLASSES, "ForMultipleChoice"),
        {
            **LABELS,
            "vocab_size": [99],
            "dim": [24, 48],
            "n_heads": [2, 4],
            "n_layers": [1, 3],
            "hidden_dim": [30, 70],
            "max_position_embeddings": [40],
        },
        5,
    ),
    "mpnet": Choices("MPNet", TEXT_CLASSES, {**TEXT, **TIE, "relative_attention_num_buckets": [8, 32]}),
    "nomic_bert": Choices("NomicBert", TEXT_CLASSES[:4], {**TEXT, "head_dim": [None]}),
    "modernbert": Choices(
        "ModernBert",
        TEXT_CLASSES,
        {
            **TEXT,
            **TIE,
            "norm_bias": FLAG,
            "attention_bias": FLAG,
            "mlp_bias": FLAG,
            "decoder_bias": FLAG,
            "classifier_bias": FLAG,
        },
        6,
    ),
    "deberta": Choices(
        "Deberta",
        TEXT_CLASSES,
        {
            **TEXT,
            "relative_attention": FLAG,
            "pos_att_type": [["c2p", "p2c"], "c2p|p2c", ["c2p"]],
            "position_biased_input": FLAG,
            "type_vocab_size": [0, 2],
        },
        5,
    ),
    "deberta-v2": Choices(
        "DebertaV2",
        TEXT_CLASSES,
        {
            **TEXT,
            "relative_attention": FLAG,
            "pos_att_type": ["p2c|c2p", ["p2c"]],
            "position_biased_input": FLAG,
            "type_vocab_size": [0, 2],
            "share_att_key": FLAG,
            "position_buckets": [-1, 7],
            "norm_rel_ebd": ["none", "layer_norm"],
            "conv_kernel_size": [0, 3],
        },
        8,
    ),
    "t5": Choices("T5", T5_CLASSES, T5, 5),
    "mt5": Choices("MT5", T5_CLASSES, T5, 3),
    "umt5": Choices("UMT5", T5_CLASSES, T5, 3),
    "bart": Choices(
        "Bart",
        ("ForConditionalGeneration", "Model", "ForSequenceClassification"),
        {**SEQ2SEQ, **LABELS, "eos_token_id": [2]},
    ),
    "mbart": Choices("MBart", ("ForConditionalGeneration", "Model"), {**SEQ2SEQ, **TIE}, 3),
    "pegasus": Choices("Pegasus", ("ForConditionalGeneration", "Model"), {**SEQ2SEQ, **TIE}, 3),
    "marian": Choices(
        "Marian",
        ("MTModel",),
        {**SEQ2SEQ, "decoder_vocab_size": [77], "share_encoder_decoder_embeddings": [False]},
        2,
    ),
    "m2m_100": Choices("M2M100", ("ForConditionalGeneration", "Model"), {**SEQ2SEQ, **TIE}, 3),
    "whisper": Choices(
        "Whisper",
        ("ForConditionalGeneration", "Model", "ForAudioClassification"),
        {
            **SEQ2SEQ,
            **LABELS,
            "num_mel_bins": [16, 80],
            "max_source_positions": [50],
            "max_target_positions": [30],
            "classifier_proj_size": [12],
            "use_weighted_layer_sum": FLAG,
            "eos_token_id": [2],
            "bos_token_id": [2],
        },
    ),
    "vit": Choices("ViT", IMAGE_CLASSES, {**IMAGE, "qkv_bias": FLAG, "pooler_output_size": [None, 10]}),
    "deit": Choices("DeiT", (*IMAGE_CLASSES, "ForImageClassificationWithTeacher"), IMAGE, 3),
    "beit": Choices(
        "Beit",
        (*IMAGE_CLASSES, "ForMaskedImageModeling"),
        {
            **IMAGE,
            "vocab_size": [50],
            "use_mask_token": FLAG,
            "use_absolute_position_embeddings": FLAG,
            "use_relative_position_bias": FLAG,
            "use_shared_relative_position_bias": FLAG,
            "use_mean_pooling": FLAG,
        },
        6,
    ),
    "dinov2": Choices(
        "Dinov2",
        IMAGE_CLASSES,
        {**IMAGE, "mlp_ratio": [4, 2], "use_swiglu_ffn": FLAG, "use_mask_token": FLAG, "qkv_bias": FLAG},
        5,
    ),
    "dinov2_with_registers": Choices(
        "Dinov2WithRegisters", IMAGE_CLASSES, {**IMAGE, "num_register_tokens": [None, 2]}, 3
    ),
    "dinov3_vit": Choices(
        "DINOv3ViT",
        ("Model",),
        {**IMAGE, "use_gated_mlp": FLAG, "num_register_tokens": [0, 4], "mlp_bias": FLAG},
    ),
    "swin": Choices(
        "Swin",
        IMAGE_CLASSES,
        {
            **LABELS,
            "image_size": [64],
            "patch_size": [4],
            "embed_dim": [12, 24],
            "depths": [[1, 2], [2, 2, 3]],
            "window_size": [4, 7],
            "mlp_ratio": [4.0, 2.0],
            "qkv_bias": FLAG,
            "use_absolute_embeddings": FLAG,
        },
        5,
    ),
    "convnext": Choices(
        "ConvNext",
        IMAGE_CLASSES,
        {**LABELS, "hidden_sizes": [[8, 16, 24, 32]], "depths": [[1, 2, 3, 1]], "num_channels": [3, 4]},
        2,
    ),
    "resnet": Choices(
        "ResNet",
        IMAGE_CLASSES,
        {
            **LABELS,
            "hidden_sizes": [[16, 32], [64, 64, 128]],
            "depths": [[1, 2, 2]],
            "embedding_size": [16, 64],
            "layer_type": ["basic", "bottleneck"],
            "downsample_in_first_stage": FLAG,
            "downsample_in_bottleneck": FLAG,
        },
        6,
    ),
    "clip": Choices(
        "CLIP",
        ("Model",),
        {"text_config": [TEXT_TOWER], "vision_config": [IMAGE], "projection_dim": [16, 20]},
    ),
    "clip_text_model": Choices(
        "CLIPTextModel", ("", "WithProjection"), {**TEXT_TOWER, "projection_dim": [9]}, 2
    ),
    "clip_vision_model": Choices(
        "CLIPVisionModel", ("", "WithProjection"), {**IMAGE, "projection_dim": [9]}, 2
    ),
    "siglip": Choices(
        "Siglip",
        ("Model",),
        {
            "text_config": [{**TEXT_TOWER, "projection_size": [16]}],
            "vision_config": [IMAGE],
        },
    ),
    "siglip_vision_model": Choices("SiglipVision", ("Model",), {**IMAGE, "vision_use_head": FLAG}, 2),
    # Drawn last, so that the cases of the others stay as they are.
    "gte": Choices("Gte", TEXT_CLASSES[:4], {**TEXT, "type_vocab_size": [0, 2]}),
    "jina_embeddings_v3": Choices("JinaEmbeddingsV3", TEXT_CLASSES, TEXT),
    "glm4v": Choices("Glm4v", SEEING, {"text_config": [GLM_V_TEXT], "vision_config": [GLM_V_TOWER]}),
    "glm46v": Choices("Glm46V", SEEING, {"text_config": [GLM_V_TEXT], "vision_config": [GLM_V_TOWER]}, 2),
    "glm4v_moe": Choices(
        "Glm4vMoe",
        SEEING,
        {
            "text_config": [
                {
                    **GLM_V_TEXT,
                    "model_type": ["glm4v_moe_text"],
                    "attention_bias": FLAG,
                    "moe_intermediate_size": [24],
                    "n_routed_experts": [5],
                    "num_experts_per_tok": [2],
                    "n_shared_experts": [1, 2],
                    "first_k_dense_replace": [0, 1],
                }
            ],
            "vision_config": [{**GLM_V_TOWER, "model_type": ["glm4v_moe_vision"]}],
        },
    ),
    "aya_vision": Choices("AyaVision", SEEING, COHERE_VISION),
    "cohere2_vision": Choices(
        "Cohere2Vision", SEEING, {**COHERE_VISION, "alignment_intermediate_size": [64]}
    ),
    "qwen2_audio": Choices(
        "Qwen2Audio",
        SEEING[:1],
        {
            "audio_config": [
                {
                    "model_type": ["qwen2_audio_encoder"],
                    "d_model": [24, 48],
                    "encoder_layers": [2, 3],
                    "encoder_attention_heads": [4],
                    "encoder_ffn_dim": [50],
                    "num_mel_bins": [16],
                    "max_source_positions": [40],
                }
            ],
            "text_config": [{**SPOKEN_TEXT, "model_type": ["qwen2"]}],
        },
    ),
    "voxtral": Choices(
        "Voxtral",
        SEEING[:1],
        {
            "audio_config": [
                {
                    "model_type": ["voxtral_encoder"],
                    "hidden_size": [24, 48],
                    "num_hidden_layers": [2, 3],
                    "num_attention_heads": [4],
                    "intermediate_size": [96, 192],
                    "num_mel_bins": [16],
                    "max_source_positions": [40],
                }
            ],
            "text_config": [{**SPOKEN_TEXT, "model_type": ["llama"], "head_dim": [12]}],
        },
    ),
}

DECODER = {
    "hidden_size": [24],
    "num_attention_heads": [4],
    "num_key_value_heads": [2, 4],
    "num_hidden_layers": [1, 3],
    "intermediate_size": [20, 33],
    "vocab_size": [99],
    "pad_token_id": [1],
    "bos_token_id": [1],
    "eos_token_id": [1],
    "head_dim": [6],
}
SEEN = {**IMAGE, "patch_size": [14], "image_size": [56, 112], "num_attention_heads": [2, 4]}
CLIP_SEEN = {**SEEN, "model_type": ["clip_vision_model"]}
SIGLIP_SEEN = {**SEEN, "model_type": ["siglip_vision_model"], "vision_use_head": FLAG}
QWEN_SEEN = {"depth": [2, 3], "num_heads": [4], "patch_size": [14]}


def text(model_type: str, **more: list) -> list[dict]:
    """A text decoder of this type."""
    return [{**DECODER, "model_type": [model_type], **more}]


BOTH = ("ForConditionalGeneration", "Model")
TOKEN = {"image_token_index": [1], "image_token_id": [1]}
FAMILIES |= {
    "llava": Choices(
        "Llava",
        BOTH,
        {
            **TOKEN,
            **TIE,
            "text_config": [*text("llama"), *text("mistral"), *text("qwen2")],
            "vision_config": [CLIP_SEEN, SIGLIP_SEEN, {**SEEN, "model_type": ["pixtral"]}],
            "multimodal_projector_bias": FLAG,
            "vision_feature_layer": [-2, [-2, -1]],
        },
        8,
    ),
    "llava_next": Choices(
        "LlavaNext", BOTH, {**TOKEN, "text_config": text("mistral"), "vision_config": [CLIP_SEEN]}, 2
    ),
    "llava_onevision": Choices(
        "LlavaOnevision", BOTH, {**TOKEN, "text_config": text("qwen2"), "vision_config": [SIGLIP_SEEN]}, 2
    ),
    "paligemma": Choices(
        "PaliGemma",
        BOTH,
        {**TOKEN, "text_config": text("gemma"), "vision_config": [SIGLIP_SEEN], "projection_dim": [24]},
        2,
    ),
    "gemma3": Choices(
        "Gemma3",
        BOTH,
        {"text_config": text("gemma3_text"), "vision_config": [SIGLIP_SEEN], "mm_tokens_per_image": [4, 16]},
        3,
    ),
    "mistral3": Choices(
        "Mistral3",
        BOTH,
        {
            **TOKEN,
            **TIE,
            "text_config": text("mistral"),
            "vision_config": [{**SEEN, "model_type": ["pixtral"]}],
            "spatial_merge_size": [1, 2],
            "multimodal_projector_bias": FLAG,
        },
    ),
    "idefics3": Choices(
        "Idefics3",
        BOTH,
        {**TOKEN, **TIE, "text_config": text("llama"), "vision_config": [SEEN], "scale_factor": [2, 4]},
        3,
    ),
    "smolvlm": Choices("SmolVLM", BOTH, {**TOKEN, "text_config": text("llama"), "vision_config": [SEEN]}, 2),
    "internvl": Choices(
        "InternVL",
        BOTH,
        {
            **TOKEN,
            **TIE,
            "text_config": [*text("qwen2"), *text("qwen3"), *text("llama")],
            "vision_config": [
                {
                    **SEEN,
                    "attention_bias": FLAG,
                    "use_qk_norm": FLAG,
                    "norm_type": ["layer_norm", "rms_norm"],
                    "use_mean_pooling": FLAG,
                    "use_mask_token": FLAG,
                }
            ],
        },
        5,
    ),
    "qwen2_vl": Choices(
        "Qwen2VL",
        BOTH,
        {
            **TIE,
            "text_config": text("qwen2_vl_text"),
            "vision_config": [{**QWEN_SEEN, "embed_dim": [32, 64], "hidden_size": [24], "mlp_ratio": [2, 4]}],
        },
    ),
    "qwen2_5_vl": Choices(
        "Qwen2_5_VL",
        BOTH,
        {
            **TIE,
            "text_config": text("qwen2_5_vl_text"),
            "vision_config": [
                {
                    **QWEN_SEEN,
                    "hidden_size": [32, 64],
                    "intermediate_size": [36, 50],
                    "out_hidden_size": [24],
                    "fullatt_block_indexes": [[0], [1]],
                }
            ],
        },
    ),
    "qwen3_vl": Choices(
        "Qwen3VL",
        BOTH,
        {
            **TIE,
            "text_config": text("qwen3_vl_text", attention_bias=FLAG),
            "vision_config": [
                {
                    **QWEN_SEEN,
                    "hidden_size": [32, 64],
                    "intermediate_size": [36, 50],
                    "out_hidden_size": [24],
                    "num_position_embeddings": [16, 64],
                    "deepstack_visual_indexes": [[0], [0, 1]],
                }
            ],
        },
    ),
    "qwen3_vl_moe": Choices(
        "Qwen3VLMoe",
        BOTH,
        {
            "text_config": text(
                "qwen3_vl_moe_text",
                num_experts=[4],
                num_experts_per_tok=[2],
                moe_intermediate_size=[18],
                decoder_sparse_step=[1, 2],
            ),
            "vision_config": [
                {
                    **QWEN_SEEN,
                    "hidden_size": [32],
                    "intermediate_size": [36],
                    "out_hidden_size": [24],
                    "num_position_embeddings": [16],
                    "deepstack_visual_indexes": [[0, 1]],
                }
            ],
        },
        2,
    ),
    "qwen3_5": Choices(
        "Qwen3_5",
        BOTH,
        {
            **TIE,
            "text_config": [{name: [values[0]] for name, values in DECODER.items()}],
            "vision_config": [
                {
                    **QWEN_SEEN,
                    "hidden_size": [32, 64],
                    "intermediate_size": [36, 50],
                    "out_hidden_size": [24],
                    "num_position_embeddings": [16, 64],
                }
            ],
        },
        2,
    ),
    "kimi_k25": Choices(
        "Kimi_K25",
        BOTH,
        {
            "text_config": text(
                "deepseek_v3",
                head_dim=[4],
                kv_lora_rank=[8],
                q_lora_rank=[9],
                qk_rope_head_dim=[4],
                qk_nope_head_dim=[4],
                v_head_dim=[4],
                n_routed_experts=[8],
                n_group=[1],
                topk_group=[1],
                num_experts_per_tok=[2],
                moe_intermediate_size=[5],
                first_k_dense_replace=[1],
            ),
            "vision_config": [{**SIZES, "patch_size": [14], "hidden_size": [32], "num_attention_heads": [4]}],
            "projection_hidden_size": [32],
        },
        2,
    ),
    "mllama": Choices(
        "Mllama",
        BOTH,
        {
            "text_config": text("mllama_text_model", cross_attention_layers=[[0], []]),
            "vision_config": [
                {
                    "hidden_size": [32],
                    "num_hidden_layers": [2, 3],
                    "num_global_layers": [1, 2],
                    "attention_heads": [4],
                    "intermediate_size": [36],
                    "vision_output_dim": [96],
                    "image_size": [56, 112],
                    "patch_size": [14],
                    "intermediate_layers_indices": [[0, 1]],
                }
            ],
        },
        3,
    ),
    "llama4": Choices(
        "Llama4",
        ("ForConditionalGeneration",),
        {
            "text_config": text(
                "llama4_text",
                num_local_experts=[2, 4],
                interleave_moe_layer_step=[1, 2],
                intermediate_size_mlp=[30],
            ),
            "vision_config": [
                {
                    "hidden_size": [32],
                    "num_hidden_layers": [2],
                    "num_attention_heads": [4],
                    "intermediate_size": [128],
                    "vision_output_dim": [40],
                    "image_size": [56, 112],
                    "patch_size": [14],
                    "projector_input_dim": [40],
                    "projector_output_dim": [40],
                }
            ],
        },
        3,
    ),
}

HEADS = {"num_attention_heads": [2, 3], "attention_head_dim": [8, 16], "num_layers": [1, 3]}
JOINT = {**HEADS, "joint_attention_dim": [20], "pooled_projection_dim": [12], "in_channels": [8]}
STAGES = {
    "block_out_channels": [[8, 16], [8, 16, 16]],
    "layers_per_block": [1, 2],
    "norm_num_groups": [4],
}
FAMILIES |= {
    "_dit": Choices(
        "DiTTransformer2DModel",
        (),
        {**HEADS, "in_channels": [4], "out_channels": [8], "sample_size": [8], "num_embeds_ada_norm": [10]},
    ),
    "_pixart": Choices(
        "PixArtTransformer2DModel",
        (),
        {
            "num_layers": [1, 3],
            "num_attention_heads": [2],
            "attention_head_dim": [8],
            "cross_attention_dim": [16],
            "caption_channels": [20],
            "sample_size": [8, 128],
            "out_channels": [8],
            "use_additional_conditions": [None, True],
        },
    ),
    "_sd3": Choices(
        "SD3Transformer2DModel",
        (),
        {
            "num_layers": [2, 3],
            "num_attention_heads": [2],
            "attention_head_dim": [8],
            "caption_projection_dim": [16],
            "joint_attention_dim": [20],
            "pooled_projection_dim": [12],
            "dual_attention_layers": [[], [0], [0, 1]],
            "qk_norm": [None, "rms_norm"],
            "sample_size": [16],
            "pos_embed_max_size": [12],
        },
        6,
    ),
    "_flux": Choices(
        "FluxTransformer2DModel", (), {**JOINT, "num_single_layers": [1, 2], "guidance_embeds": FLAG}
    ),
    "_hunyuan-video": Choices(
        "HunyuanVideoTransformer3DModel",
        (),
        {
            **HEADS,
            "text_embed_dim": [20],
            "pooled_projection_dim": [12],
            "num_single_layers": [1, 2],
            "num_refiner_layers": [1, 2],
            "guidance_embeds": FLAG,
        },
    ),
    "_cogvideox": Choices(
        "CogVideoXTransformer3DModel",
        (),
        {
            **HEADS,
            "text_embed_dim": [20],
            "time_embed_dim": [12],
            "patch_size_t": [None, 2],
            "patch_bias": FLAG,
            "ofs_embed_dim": [None, 10],
            "use_rotary_positional_embeddings": [True],
        },
        6,
    ),
    "_wan": Choices(
        "WanTransformer3DModel",
        (),
        {**HEADS, "text_dim": [20], "ffn_dim": [30, 44], "freq_dim": [16], "cross_attn_norm": FLAG},
    ),
    "_mochi": Choices(
        "MochiTransformer3DModel",
        (),
        {**HEADS, "pooled_projection_dim": [12], "text_embed_dim": [16, 24], "time_embed_dim": [16]},
    ),
    "_ltx": Choices(
        "LTXVideoTransformer3DModel",
        (),
        {
            "num_layers": [1, 3],
            "num_attention_heads": [2],
            "attention_head_dim": [8],
            "cross_attention_dim": [16],
            "caption_channels": [20],
            "attention_bias": FLAG,
        },
    ),
    "_unet": Choices(
        "UNet2DConditionModel",
        (),
        {
            **STAGES,
            "cross_attention_dim": [12],
            "attention_head_dim": [2, 4],
            "transformer_layers_per_block": [1, 2],
            "use_linear_projection": FLAG,
            "num_class_embeds": [None, 7],
            "time_cond_proj_dim": [None, 6],
            "resnet_time_scale_shift": ["default", "scale_shift"],
        },
        8,
    ),
    "dlrm": Choices(
        "DLRM",
        (),
        {
            "arch_sparse_feature_size": [8],
            "arch_embedding_size": ["10-20-30", "7-7-7-9"],
            "arch_mlp_bot": ["13-16-8", "4-8"],
            "arch_mlp_top": ["16-1", "20-10-1"],
            "arch_interaction_op": ["dot", "cat"],
            "arch_interaction_itself": FLAG,
        },
        4,
    ),
    "_vae": Choices(
        "AutoencoderKL",
        (),
        {
            **STAGES,
            "latent_channels": [4, 16],
            "use_quant_conv": FLAG,
            "use_post_quant_conv": FLAG,
            "mid_block_add_attention": FLAG,
        },
        5,
    ),
}
FAMILIES |= {
    "_flux-2": Choices(
        "Flux2Transformer2DModel",
        (),
        {
            **HEADS,
            "joint_attention_dim": [20],
            "in_channels": [8],
            "num_single_layers": [1, 2],
            "guidance_embeds": FLAG,
            "mlp_ratio": [3.0, 2.5],
        },
    ),
    "_qwen-image": Choices(
        "QwenImageTransformer2DModel",
        (),
        {**HEADS, "joint_attention_dim": [20], "in_channels": [8], "out_channels": [4], "patch_size": [1, 2]},
    ),
    "glm5_next": Choices(
        "Glm5Next",
        SEEING,
        {
            "text_config": [
                {
                    **SPOKEN_TEXT,
                    "model_type": ["glm5_next_text"],
                    "num_attention_heads": [4],
                    "num_key_value_heads": [4],
                    "num_hidden_layers": [4, 6],
                    "moe_intermediate_size": [24],
                    "n_routed_experts": [5],
                    "num_experts_per_tok": [2],
                    "n_shared_experts": [1, 2],
                    "q_lora_rank": [20],
                    "kv_lora_rank": [16],
                    "qk_nope_head_dim": [12],
                    "v_head_dim": [10],
                    "index_n_heads": [2],
                    "index_head_dim": [8],
                    "index_kpool": [4, 16],
                    "hc_mult": [2, 4],
                    "linear_head_dim": [8],
                    "linear_num_heads": [3],
                    "pad_token_id": [0],
                }
            ],
            "vision_config": [
                {
                    **GLM_V_TOWER,
                    "model_type": ["glm5_next_vision"],
                    "image_size": [28],
                    "projection_intermediate_size": [36],
                }
            ],
        },
    ),
    "qwen4_exp": Choices(
        "Qwen4Exp",
        SEEING,
        {
            "text_config": [
                {
                    **SPOKEN_TEXT,
                    "model_type": ["qwen4_exp_text"],
                    "num_hidden_layers": [4, 6],
                    "head_dim": [16],
                    "num_experts": [5],
                    "num_experts_per_tok": [2],
                    "moe_intermediate_size": [24],
                    "shared_expert_intermediate_size": [20],
                    "linear_num_key_heads": [2],
                    "linear_num_value_heads": [4],
                    "linear_key_head_dim": [8],
                    "linear_value_head_dim": [8],
                    "hc_lowrank": [12],
                    "indexer_n_heads": [2],
                    "indexer_kv_heads": [1],
                    "indexer_head_dim": [16],
                    "indexer_budget": [32],
                    "indexer_compress_ratio": [4],
                    "ple_layer_ids": [[], [2]],
                    "heads_per_ngram": [2, 4],
                    "ngram_vocab_size_base": [40],
                    "make_ngram_vocab_size_divisible_by": [8],
                    "eos_token_id": [1],
                }
            ],
            "vision_config": [
                {
                    "model_type": ["qwen4_exp_vision"],
                    "depth": [2, 3],
                    "hidden_size": [32, 64],
                    "num_heads": [4],
                    "intermediate_size": [50],
                    "out_hidden_size": [48],
                    "patch_size": [14],
                    "num_position_embeddings": [16],
                }
            ],
        },
    ),
}

FAMILIES |= {name: Choices(*fields) for name, fields in LATER.items()}


def parameters(module: nn.Module) -> int:
    """Elements of all parameters, shared ones once."""
    return sum(parameter.numel() for parameter in module.parameters())


def recommender(config: dict) -> nn.Module:
    """DLRM of Naumov et al. 2019, put together from modules of PyTorch."""
    width = config["arch_sparse_feature_size"]
    rows, bottom, top = (
        [int(number) for number in config[name].split("-")]
        for name in ("arch_embedding_size", "arch_mlp_bot", "arch_mlp_top")
    )
    vectors = len(rows) + 1
    pairs = vectors * (vectors - 1) // 2 + (vectors if config.get("arch_interaction_itself") else 0)
    joined = width + pairs if config["arch_interaction_op"] == "dot" else vectors * width
    modules = [nn.EmbeddingBag(count, width, mode="sum") for count in rows]
    for sizes in (bottom, [joined, *top]):
        modules += [nn.Linear(*pair) for pair in pairwise(sizes)]
    return nn.ModuleList(modules)


def count(config: dict) -> int:
    """Parameters of the class that ``config`` names."""
    if config.get("model_type") == "dlrm":
        with torch.device("meta"):
            return parameters(recommender(config))
    if "_class_name" in config:
        given = {name: value for name, value in config.items() if not name.startswith("_")}
        with torch.device("meta"):
            return parameters(getattr(diffusers, config["_class_name"]).from_config(given))
    given = {name: value for name, value in config.items() if name not in IGNORED}
    built = CONFIG_MAPPING[config["model_type"]](**given)
    with torch.device("meta"):
        model = getattr(transformers, config["architectures"][0])(built)
    model.tie_weights()
    return parameters(model)


def draw(fields: dict[str, list], choose: random.Random) -> dict:
    """One value of every field; a field drawn as None is left out, nested fields are drawn as well."""
    drawn = {name: choose.choice(values) for name, values in fields.items()}
    if "depths" in drawn and "hidden_sizes" in drawn:
        drawn["depths"] = drawn["depths"][: len(drawn["hidden_sizes"])]
    if "depths" in drawn and "embed_dim" in drawn:
        drawn["num_heads"] = [2, 4, 6][: len(drawn["depths"])]
    if "norm_num_groups" in drawn:
        stages = len(drawn["block_out_channels"])
        kinds = ("DownEncoderBlock2D",) * 2, ("UpDecoderBlock2D",) * 2
        if "cross_attention_dim" in drawn:
            kinds = ("DownBlock2D", "CrossAttnDownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
        drawn["down_block_types"] = [choose.choice(kinds[0]) for _ in range(stages)]
        drawn["up_block_types"] = [choose.choice(kinds[1]) for _ in range(stages)]
    for name, value in drawn.items():
        if isinstance(value, dict) and all(isinstance(values, list) for values in value.values()):
            drawn[name] = draw(value, choose)
    return {name: value for name, value in drawn.items() if value is not None}


def random_cases(choose: random.Random) -> list[dict]:
    """Configurations nobody published, over every family and class."""
    cases = []
    for model_type, family in FAMILIES.items():
        for number in range(family.count):
            config = draw(family.fields, choose)
            if model_type.startswith("_"):
                config = {"_class_name": family.prefix, **config}
            elif family.suffixes:
                name = family.prefix + family.suffixes[number % len(family.suffixes)]
                config = {"model_type": model_type, "architectures": [name], **config}
            else:
                config = {"model_type": model_type, **config}
            cases.append({"name": f"random-{model_type.strip('_')}-{number}", "config": config})
    return cases


def main() -> None:
    """Count and write."""
    transformers.logging.set_verbosity_error()
    diffusers.logging.set_verbosity_error()
    published = [
        {"name": path.stem, "config": json.loads(path.read_text())}
        for path in sorted((HERE / "tower_configs").glob("*.json"))
    ]
    drawn = random_cases(random.Random(20261121))  # noqa: S311  # the same cases every time
    cases = [{**case, "parameter_count": count(case["config"])} for case in published + drawn]
    document = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "diffusers": diffusers.__version__,
        "cases": cases,
    }
    (HERE / "tower_counts.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
