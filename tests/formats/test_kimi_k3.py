"""Kimi K3 with its tower, against the tensors of its files (gogongxt/python scripts/models/kimi_k3.md)."""

import json
from importlib.resources import files

import pytest

from service.formats.huggingface import import_config
from service.planning.errors import PlanningError
from service.planning.models.positions import SampleShape
from service.planning.models.profile import build_profile
from service.planning.models.profile.sampled import forward_pass
from tests.asking import shipped

ROWS = json.loads((files("service.catalog.models") / "shipped.json").read_text(encoding="utf-8"))
VISION = {
    "activation_func": "gelu_pytorch_tanh",
    "attn_bias": False,
    "init_pos_emb_height": 64,
    "init_pos_emb_time": 4,
    "init_pos_emb_width": 64,
    "linear_bias": False,
    "merge_kernel_size": [2, 2],
    "merge_type": "sd2_tpool",
    "mlp_type": "mlp2",
    "mm_projector_type": "patchmergerv2",
    "norm_type": "rmsnorm",
    "patch_embed_proj_bias": False,
    "patch_size": 14,
    "pos_emb_type": "divided_fixed",
    "qkv_hidden_size": 1536,
    "text_hidden_size": 7168,
    "vt_hidden_size": 1024,
    "vt_intermediate_size": 4096,
    "vt_num_attention_heads": 12,
    "vt_num_hidden_layers": 27,
}
TOWER = 447_358_976
"""Elements of the tensors of ``vision_tower`` and ``mm_projector``."""


def build_config(**changes: object) -> dict[str, object]:
    (text,) = [row["config"] for row in ROWS if row["id"] == "kimi-k3"]
    return {
        "architectures": ["KimiK3ForConditionalGeneration"],
        "model_type": "kimi_k3",
        "tie_word_embeddings": False,
        "text_config": {**text, "model_type": "kimi_linear"},
        "vision_config": {**VISION, **changes},
    }


def test_tower_and_projector_have_the_tensors_of_the_files():
    whole = build_profile(import_config(build_config()).architecture)
    text = shipped().models["kimi-k3"].profile
    assert whole.parameter_count - text.parameter_count == TOWER
    assert whole.active_parameter_count - text.active_parameter_count == TOWER
    assert whole.unserved_kinds == text.unserved_kinds


def test_members_that_are_left_out_are_those_of_the_files():
    config = build_config()
    assert import_config({**config, "vision_config": {}}).architecture == import_config(config).architecture


def test_four_patches_become_a_position():
    architecture = import_config(build_config()).architecture
    assert forward_pass(architecture, SampleShape(tokens=5, height=896), decodes=True).positions == 32**2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"norm_type": "layernorm"}, "norm_type"),
        ({"mm_projector_type": "patchmerger"}, "mm_projector_type"),
        ({"attn_bias": True}, "attn_bias"),
    ],
)
def test_what_is_not_known_is_refused_by_member(change, field):
    with pytest.raises(PlanningError) as caught:
        import_config(build_config(**change))
    assert (caught.value.code, caught.value.pointer) == (
        "CONFIG_FIELD_UNSUPPORTED",
        f"/vision_config/{field}",
    )
