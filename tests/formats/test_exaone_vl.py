"""EXAONE 4.5, against the total of its files."""

from service.formats.huggingface import import_config
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import build_profile
from service.planning.precision import NumberFormat

CONFIG = {
    "architectures": ["Exaone4_5_ForConditionalGeneration"],
    "model_type": "exaone4_5",
    "text_config": {
        "model_type": "exaone4_5_text",
        "hidden_size": 5120,
        "intermediate_size": 27_392,
        "num_hidden_layers": 64,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "vocab_size": 153_600,
        "max_position_embeddings": 262_144,
        "sliding_window": 4096,
    },
    "vision_config": {
        "depth": 28,
        "hidden_size": 2048,
        "intermediate_size": 5120,
        "num_heads": 32,
        "num_key_value_heads": 8,
        "out_hidden_size": 5120,
        "fullatt_block_indexes": [6, 13, 20, 27],
    },
}
LAYER = 2 * 5120**2 + 2 * 5120 * 1024 + 3 * 5120 * 27_392 + 2 * 128 + 2 * 5120
DRAFT = LAYER + 2 * 5120**2 + 3 * 5120
"""A layer for drafts: one of the decoder, a matrix that joins state and embedding, and norms."""


def test_parameters_are_those_of_the_files_without_the_layer_for_drafts():
    assert build_profile(import_config(CONFIG).architecture).parameter_count == 34_350_097_664 - DRAFT


def test_heads_of_keys_and_values_of_the_tower_are_read():
    more = {**CONFIG, "vision_config": {**CONFIG["vision_config"], "num_key_value_heads": 32}}
    counts = [build_profile(import_config(config).architecture).parameter_count for config in (more, CONFIG)]
    assert counts[0] - counts[1] == 28 * 2 * (24 * 64 * 2048 + 24 * 64)


def test_three_layers_of_four_keep_a_window():
    profile = build_profile(import_config(CONFIG).architecture)
    each = 2 * 8 * 128 * 2
    assert key_value_bytes(profile, 10_000.0, NumberFormat.BF16) == each * (16 * 10_000 + 48 * 4096)
