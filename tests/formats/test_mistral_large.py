"""Mistral Large 4, against the classes of transformers, whose defaults are those of 1T-A52B."""

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.memory.caches import key_value_bytes
from service.planning.models.profile import build_profile
from service.planning.precision import NumberFormat

LARGE = {"model_type": "mistral_large4", "architectures": ["MistralLarge4ForConditionalGeneration"]}
TABLES = 2 * 204_800 * 6144


def change_text(**members):
    return {**LARGE, "text_config": {"model_type": "mistral_large4_text", **members}}


def test_parameters_are_those_of_the_class():
    assert build_profile(import_config(LARGE).architecture).parameter_count == 1_051_822_421_536


def test_active_parameters_are_those_of_the_name_without_tables():
    profile = build_profile(import_config(LARGE).architecture)
    assert profile.parameter_count - profile.active_parameter_count == 71 * 124 * 3 * 6144**2
    assert profile.active_parameter_count - TABLES == pytest.approx(52e9, rel=0.01)


def test_a_layer_without_positions_keeps_the_latent_and_its_key_for_the_scorer():
    profile = build_profile(import_config(LARGE).architecture)
    assert key_value_bytes(profile, 1000.0, NumberFormat.BF16) == 2000 * (
        54 * (512 + 64) + 18 * 512 + 72 * 128
    )
    assert not profile.unserved_kinds


def test_layers_that_share_a_scorer_keep_no_key_for_it():
    """A scorer in the first two layers and then in every third one: 25 of 72."""
    profile = build_profile(import_config(change_text(index_topk_freq=3)).architecture)
    assert key_value_bytes(profile, 1000.0, NumberFormat.BF16) == 2000 * (
        54 * (512 + 64) + 18 * 512 + 25 * 128
    )
    pattern = "".join("F" if index < 2 or index % 3 == 1 else "S" for index in range(72))
    named = import_config(change_text(index_topk_pattern=pattern)).architecture
    assert named == import_config(change_text(index_topk_freq=3)).architecture


@pytest.mark.parametrize(
    ("members", "code", "field"),
    [
        ({"kv_source_layers": [0, *range(71)]}, "UNSUPPORTED", "kv_source_layers"),
        ({"no_rope_layers": [1, 0]}, "INVALID", "no_rope_layers"),
        ({"index_topk_pattern": "FS"}, "INVALID", "index_topk_pattern"),
        ({"indexer_types": ["shared"] * 72}, "UNSUPPORTED", "indexer_types"),
    ],
)
def test_what_is_not_known_is_refused_by_member(members, code, field):
    with pytest.raises(PlanningError) as caught:
        import_config(change_text(**members))
    assert (caught.value.code, caught.value.pointer) == (f"CONFIG_FIELD_{code}", f"/text_config/{field}")
