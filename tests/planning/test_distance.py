"""Levels of evidence of served systems, and the intervals that widen with them."""

import pytest

from service.planning.hardware.distance import (
    LEVELS,
    EvidenceDistance,
    EvidenceSystem,
    build_evidence,
    find_residual_spread,
    format_level,
    parse_release,
    resolve_family,
)
from service.planning.quantity import IntervalFactors

KNOWN = EvidenceSystem("vllm", "0.11", "h100-sxm", "hopper")
EVIDENCE = build_evidence([KNOWN, EvidenceSystem("sglang", "0.5", "b200-sxm", "blackwell")], [70_553_706_496])


@pytest.mark.parametrize(
    ("system", "near"),
    [
        (KNOWN, EvidenceDistance.SYSTEM),
        (KNOWN._replace(release="0.12"), EvidenceDistance.GENERATION),
        (KNOWN._replace(release=None), EvidenceDistance.GENERATION),
        (KNOWN._replace(accelerator="h200-sxm"), EvidenceDistance.GENERATION),
        (KNOWN._replace(generation="blackwell", accelerator="b200-sxm"), EvidenceDistance.ENGINE),
        (KNOWN._replace(engine="tensorrt-llm"), EvidenceDistance.DEVICE),
        (EvidenceSystem("llama.cpp", None, "rtx-3090", "ampere"), EvidenceDistance.NOTHING),
        (EvidenceSystem(None, None, None, None), EvidenceDistance.NOTHING),
    ],
)
def test_what_the_nearest_system_shares(system, near):
    assert EVIDENCE.resolve_nearness(system) is near


def test_models_of_one_shape_are_one_model():
    assert EVIDENCE.resolve_level(KNOWN, 70_553_706_496) == "system/known_model"
    assert EVIDENCE.resolve_level(KNOWN, 70_600_000_000) == "system/known_model"
    assert EVIDENCE.resolve_level(KNOWN, 8_030_261_248) == "system/new_model"
    assert EVIDENCE.resolve_level(KNOWN, None) == "system/new_model"


@pytest.mark.parametrize(
    ("version", "release"), [("v0.11.0.post1", "0.11"), ("1.2.0rc6", "1.2"), ("nightly", None), (None, None)]
)
def test_a_release_is_the_minor_one(version, release):
    assert parse_release(version) == release


def test_a_level_without_rows_takes_the_widest_of_its_kind():
    near, far = (
        format_level(EvidenceDistance.SYSTEM, known=True),
        format_level(EvidenceDistance.ENGINE, known=False),
    )
    residuals = {
        ("serving_tpot", near): IntervalFactors(0.9, 1.1, "rows"),
        ("serving_tpot", far): IntervalFactors(0.6, 1.5, "rows"),
        ("serving_ttft", near): IntervalFactors(1.2, 1.4, "rows"),
    }
    assert find_residual_spread(residuals, "serving_tpot", near)[:3] == (0.9, 1.1, "rows")
    assert find_residual_spread(residuals, "serving_tpot", LEVELS[-1])[:3] == (0.6, 1.5, "rows")
    assert find_residual_spread(residuals, "serving_ttft", near)[:3] == (1.0, 1.4, "rows")
    assert find_residual_spread(residuals, "serving_power", near) is None


def test_a_burst_without_rows_is_as_sure_as_a_steady_load():
    level = format_level(EvidenceDistance.SYSTEM, known=True)
    residuals = {("serving_tpot", level): IntervalFactors(0.9, 1.1, "rows")}
    burst = resolve_family("serving_tpot", all_at_once=True)
    assert find_residual_spread(residuals, burst, level)[:3] == (0.9, 1.1, "rows")
    residuals[burst, level] = IntervalFactors(0.5, 2.0, "rows")
    assert find_residual_spread(residuals, burst, level)[:3] == (0.5, 2.0, "rows")
    assert resolve_family("serving_tpot", all_at_once=False) == "serving_tpot"
