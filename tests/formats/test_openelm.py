"""OpenELM, against the totals of its files in data/hf_models.json of llmfit 1.1.17 (MIT)."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import build_profile
from service.planning.precision import NumberFormat


def grow(first: float, last: float, depth: int) -> list[float]:
    return [round(first + (last - first) * index / (depth - 1), 2) for index in range(depth)]


def build_config(width: int, depth: int, query: list[int], **changes: object) -> dict[str, object]:
    return {
        "model_type": "openelm",
        "architectures": ["OpenELMForCausalLM"],
        "ffn_dim_divisor": 256,
        "ffn_multipliers": grow(0.5, 4.0, depth),
        "ffn_with_glu": True,
        "head_dim": 64,
        "max_context_length": 2048,
        "model_dim": width,
        "normalization_layer_name": "rms_norm",
        "normalize_qk_projections": True,
        "num_kv_heads": [heads // 4 for heads in query],
        "num_query_heads": query,
        "num_transformer_layers": depth,
        "share_input_output_layers": True,
        "vocab_size": 32_000,
        **changes,
    }


SMALL = build_config(1280, 16, [12] * 5 + [16] * 7 + [20] * 4)
LARGE = build_config(2048, 28, [16] * 3 + [20] * 7 + [24] * 8 + [28] * 6 + [32] * 4)


@pytest.mark.parametrize(("config", "total"), [(SMALL, 271_527_168), (LARGE, 1_079_891_456)])
def test_parameters_are_those_of_the_files(config, total):
    imported = import_config(config)
    assert build_profile(imported.architecture).parameter_count == total
    assert imported.context_tokens == 2048


def test_each_layer_keeps_its_own_heads():
    profile = build_profile(import_config(SMALL).architecture)
    heads = 5 * 3 + 7 * 4 + 4 * 5
    assert key_value_bytes(profile, 1000.0, NumberFormat.BF16) == heads * 2 * 64 * 2 * 1000


@pytest.mark.parametrize(
    ("change", "code", "pointer"),
    [
        ({"num_query_heads": [12]}, "INVALID", "/num_query_heads"),
        ({"num_kv_heads": [5] * 16}, "INVALID", "/num_kv_heads"),
        ({"ffn_multipliers": [1.0]}, "INVALID", "/ffn_multipliers"),
        ({"ffn_multipliers": ["a"] * 16}, "INVALID", "/ffn_multipliers"),
        ({"ffn_multipliers": [0] * 16}, "INVALID", "/ffn_multipliers"),
        ({"ffn_with_glu": False}, "UNSUPPORTED", "/ffn_with_glu"),
        ({"normalization_layer_name": "layer_norm"}, "UNSUPPORTED", "/normalization_layer_name"),
    ],
)
def test_what_is_not_known_is_refused_by_member(change, code, pointer):
    with pytest.raises(PlanningError) as caught:
        import_config({**SMALL, **change})
    assert (caught.value.code, caught.value.pointer) == (f"CONFIG_FIELD_{code}", pointer)
