"""Levels of evidence of served systems, and the intervals that widen with them."""

import pytest

from service.planning.hardware.distance import (
    LEVELS,
    Near,
    System,
    evidence_of,
    family_of,
    level_of,
    release_of,
    widened,
)
from service.planning.quantity import Spread

KNOWN = System("vllm", "0.11", "h100-sxm", "hopper")
EVIDENCE = evidence_of([KNOWN, System("sglang", "0.5", "b200-sxm", "blackwell")], [70_553_706_496])


@pytest.mark.parametrize(
    ("system", "near"),
    [
        (KNOWN, Near.SYSTEM),
        (KNOWN._replace(release="0.12"), Near.GENERATION),
        (KNOWN._replace(release=None), Near.GENERATION),
        (KNOWN._replace(accelerator="h200-sxm"), Near.GENERATION),
        (KNOWN._replace(generation="blackwell", accelerator="b200-sxm"), Near.ENGINE),
        (KNOWN._replace(engine="tensorrt-llm"), Near.DEVICE),
        (System("llama.cpp", None, "rtx-3090", "ampere"), Near.NOTHING),
        (System(None, None, None, None), Near.NOTHING),
    ],
)
def test_what_the_nearest_system_shares(system, near):
    assert EVIDENCE.near(system) is near


def test_models_of_one_shape_are_one_model():
    assert EVIDENCE.level(KNOWN, 70_553_706_496) == "system/known_model"
    assert EVIDENCE.level(KNOWN, 70_600_000_000) == "system/known_model"
    assert EVIDENCE.level(KNOWN, 8_030_261_248) == "system/new_model"
    assert EVIDENCE.level(KNOWN, None) == "system/new_model"


@pytest.mark.parametrize(
    ("version", "release"), [("v0.11.0.post1", "0.11"), ("1.2.0rc6", "1.2"), ("nightly", None), (None, None)]
)
def test_a_release_is_the_minor_one(version, release):
    assert release_of(version) == release


def test_a_level_without_rows_takes_the_widest_of_its_kind():
    near, far = level_of(Near.SYSTEM, known=True), level_of(Near.ENGINE, known=False)
    residuals = {
        ("serving_tpot", near): Spread(0.9, 1.1, "rows"),
        ("serving_tpot", far): Spread(0.6, 1.5, "rows"),
        ("serving_ttft", near): Spread(1.2, 1.4, "rows"),
    }
    assert widened(residuals, "serving_tpot", near)[:3] == (0.9, 1.1, "rows")
    assert widened(residuals, "serving_tpot", LEVELS[-1])[:3] == (0.6, 1.5, "rows")
    assert widened(residuals, "serving_ttft", near)[:3] == (1.0, 1.4, "rows")
    assert widened(residuals, "serving_power", near) is None


def test_a_burst_without_rows_is_as_sure_as_a_steady_load():
    level = level_of(Near.SYSTEM, known=True)
    residuals = {("serving_tpot", level): Spread(0.9, 1.1, "rows")}
    burst = family_of("serving_tpot", all_at_once=True)
    assert widened(residuals, burst, level)[:3] == (0.9, 1.1, "rows")
    residuals[burst, level] = Spread(0.5, 2.0, "rows")
    assert widened(residuals, burst, level)[:3] == (0.5, 2.0, "rows")
    assert family_of("serving_tpot", all_at_once=False) == "serving_tpot"
