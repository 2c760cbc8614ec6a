"""Towers are counted as PyTorch counts them, for published and for random configurations."""

import json
from pathlib import Path

import pytest

from service.planning.formats.huggingface import FAMILIES, import_config
from service.planning.profile import profile_of

COUNTED = json.loads((Path(__file__).parents[2] / "oracles" / "tower_counts.json").read_text())["cases"]


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case["name"])
def test_parameters_are_counted_as_pytorch_counts_them(case):
    text = case["config"].get("text_config", {}).get("model_type")
    if text in ("gemma", "gemma3_text", "gemma4_text", "llama4_text") and text not in FAMILIES:
        pytest.skip(f"the text decoder {text} is no family yet")
    imported = import_config(case["config"])
    assert profile_of(imported.architecture).parameter_count == case["parameter_count"]
