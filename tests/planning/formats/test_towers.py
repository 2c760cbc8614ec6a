"""Towers are counted as PyTorch counts them, for published and for random configurations."""

import json
from pathlib import Path

import pytest

from service.planning.formats.huggingface import import_config
from service.planning.profile import profile_of

COUNTED = json.loads((Path(__file__).parents[2] / "oracles" / "tower_counts.json").read_text())["cases"]


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case["name"])
def test_parameters_are_counted_as_pytorch_counts_them(case):
    imported = import_config(case["config"])
    assert profile_of(imported.architecture).parameter_count == case["parameter_count"]
