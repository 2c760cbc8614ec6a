"""Every benchmark of the shorter suites moves a constant, or holds one that does."""

import fnmatch

import pytest

from bench import gpu_plan, gpu_purposes, gpu_suite

STANDARD = gpu_purposes.find_purposes("gpu-standard")


@pytest.mark.parametrize("suite_id", gpu_purposes.PURPOSEFUL)
def test_every_benchmark_has_a_purpose(suite_id):
    purposes = gpu_purposes.find_purposes(suite_id)
    assert [name for name, purpose in purposes.items() if not any(purpose)] == []


def test_the_page_says_it():
    assert gpu_purposes.PAGE.read_text("utf-8") == gpu_purposes.write_page()


def test_what_moves_nothing_would_be_seen():
    deep = gpu_suite.suite_of("gpu-deep")
    idle = [
        deep.find_benchmark(name) for name in ("fft.fp32", "hbm.strided_32", "training.step", "power.decode")
    ]
    found = gpu_purposes.find_constants([*idle, deep.find_benchmark("gemm.bf16")])
    assert found == {"gemm.bf16": ("operators.matrix_peak.bf16",)}
    alone = {one.name: gpu_purposes.find_failed(one, None, 1.0) for one in deep.benchmarks}
    assert not any(any(gpu_purposes.hold(one, deep.benchmarks, STANDARD, alone)) for one in idle)


def test_own_attention_controls_and_libraries_move_the_constants():
    """An engine runs no kernel of the worker: what others reach is what it reaches."""
    moved = {}
    for one in gpu_suite.suite_of("gpu-standard").benchmarks:
        if one.work.kind == "attention":
            assert one.work.back_end != "own"
            moved |= dict.fromkeys(STANDARD[one.name].constants, one.name)
    assert moved.keys() >= {
        "operators.attention_peak", "operators.attention_native_peak", "serving.cache_bandwidth"
    }  # fmt: skip
    own = {
        one.name for one in gpu_suite.suite_of("gpu-deep").benchmarks
        if one.work.kind == "attention" and one.work.back_end == "own"
    }  # fmt: skip
    for step in ("first-contact", "proof"):
        names = {one.name for one in gpu_plan.planned_suite(step).benchmarks}
        assert {"attention.prefill_own", "attention.decode_own"} <= own & names


def test_a_back_end_stands_in_for_one_that_is_not_installed():
    deep = gpu_suite.suite_of("gpu-deep").benchmarks
    found = gpu_purposes.find_stand_ins(deep, {"attention.decode_flash", "attention.prefill_flash"})
    assert found["attention.decode_cudnn"] == ("serving.cache_bandwidth",)
    assert not any("own" in name or "math" in name for name in found)


def test_the_step_for_figures_measures_all_that_moves_a_constant():
    planned = {one.name for one in gpu_plan.planned_suite("figures").benchmarks}
    for one in gpu_suite.suite_of("gpu-standard").benchmarks:
        elsewhere = one.concurrent or one.work.is_joint or fnmatch.fnmatch(one.name, "*_sustained")
        if STANDARD[one.name].constants and not elsewhere and one.work.kind != "power":
            assert one.name in planned


def test_a_constant_belongs_to_an_estimate():
    assert STANDARD["memory.capacity"].estimates == ("memory",)
    assert STANDARD["power.stream"].estimates == ("utility bill",)
    assert STANDARD["attention.decode_flash"].estimates == ("throughput",)
