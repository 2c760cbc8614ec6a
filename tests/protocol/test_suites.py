"""The suites that come with the service, each of them."""

import json
import re
from importlib.resources import files

import pytest
from pydantic import ValidationError

from service.protocol.suites import BenchmarkSuite, shipped_suites
from service.worker import cpu
from service.worker.sampling import least_sample_ns

FILES = sorted(
    (file for file in (files("service.protocol") / "suites").iterdir() if file.name.endswith(".json")),
    key=lambda file: file.name,
)
BENCHMARKS = [
    pytest.param(benchmark, id=f"{suite.id}-{benchmark.name}")
    for suite in shipped_suites().values()
    for benchmark in suite.benchmarks
]
METRICS = {
    "gemm": {"flops_per_second", "bytes_per_second"},
    "block_scaled_gemm": {"flops_per_second", "bytes_per_second"},
    "grouped_gemm": {"flops_per_second", "bytes_per_second"},
    "weight_only_gemm": {"bytes_per_second"},
    "attention": {"flops_per_second", "bytes_per_second"},
    "fft": {"flops_per_second"},
    "stream": {"bytes_per_second"},
    "strided_read": {"bytes_per_second"},
    "cache_stream": {"bytes_per_second"},
    "host_stream": {"bytes_per_second"},
    "device_copy": {"bytes_per_second"},
    "pointer_chase": {"seconds"},
    "bank_conflict": {"bytes_per_second"},
    "divergence": {"flops_per_second"},
    "occupancy": {"bytes_per_second"},
    "capacity": {"bytes"},
    "context_memory": {"bytes"},
    "host_link": {"bytes_per_second", "seconds"},
    "peer_link": {"bytes_per_second", "seconds"},
    "peer_matrix": {"bytes_per_second"},
    "collective": {"bytes_per_second", "seconds"},
    "external_tool": {"bytes_per_second"},
    "rdma_link": {"bytes_per_second", "seconds"},
    "storage": {"bytes_per_second"},
    "storage_to_device": {"bytes_per_second"},
    "launch_latency": {"seconds"},
    "enqueue_latency": {"seconds"},
    "power": {"watts"},
    "optimizer_step": {"bytes_per_second"},
    "gradient_accumulation": {"bytes_per_second"},
    "gradient_compression": {"bytes_per_second"},
    "training_step": {"flops_per_second"},
    "decode_loop": {"seconds"},
}
"""What a figure of a kind of work can be; a kind that is not here is in no suite."""
TWINNED = {"gemm_scaled.nvfp4", "gemm_scaled.mxfp8", "gemm_scaled.fp8_blocks", "gemm_grouped.bf16_8x2048"}
"""Large products of scaled blocks and of experts."""
TIERS = ("quick", "standard", "deep")
HIGHER = {"flops_per_second", "bytes_per_second"}


def suite(**changes):
    document = json.loads((files("service.protocol") / "suites" / "cpu-quick.json").read_text("utf-8"))
    return {**document, **changes}


def test_there_are_tiers_for_accelerators_and_for_processors():
    devices = {suite.id: suite.device for suite in shipped_suites().values()}
    assert devices == {
        "cpu-quick": "cpu",
        "cpu-standard": "cpu",
        "gpu-quick": "cuda",
        "gpu-standard": "cuda",
        "gpu-deep": "cuda",
    }


@pytest.mark.parametrize(
    ("suite_id", "most_seconds"),
    [
        ("cpu-quick", 6),
        ("cpu-standard", 150),
        ("gpu-quick", 120),
        ("gpu-standard", 1800),
        ("gpu-deep", 7200),
    ],
)
def test_a_tier_is_over_in_its_time(suite_id, most_seconds):
    """Two minutes a GPU and half an hour a node, were every benchmark to take all the time it may."""
    assert shipped_suites()[suite_id].planned_seconds <= most_seconds


def test_what_is_planned_counts_processes_warm_up_samples_and_checks_or_the_window_of_a_reading():
    by_name = {benchmark.name: benchmark for benchmark in shipped_suites()["gpu-standard"].benchmarks}
    assert by_name["gemm.bf16"].planned_seconds("cuda") == 3 * (5.0 + 2.0 + 3.0)
    assert by_name["power.idle"].planned_seconds("cuda") == 5.0 + 60.0 + 60.0
    assert by_name["memory.capacity"].planned_seconds("cuda") == 5.0
    deep = shipped_suites()["gpu-deep"]
    # A check goes through 1.9e9 weights forward, or 1.0e9 forward and backward.
    for name, seconds in (("decode.graph", 7.5), ("training.step", 8.0)):
        one = deep.find_benchmark(name)
        sampled = one.sampling.warmup_seconds + one.sampling.most_seconds
        whole = one.repeats * (5.0 + sampled + seconds)
        assert one.planned_seconds("cuda") == pytest.approx(whole, abs=0.1 * one.repeats)
    sustained = deep.find_benchmark("gemm.bf16_sustained")
    assert sustained.planned_seconds("cuda") == sustained.repeats * (5.0 + 120.0 + 120.0)


def test_every_kind_of_work_is_in_a_suite_and_the_deepest_has_all_that_the_others_have():
    suites = shipped_suites()
    assert {benchmark.work.kind for benchmark in suites["gpu-deep"].benchmarks} == METRICS.keys()
    names = [{benchmark.name for benchmark in suites[f"gpu-{tier}"].benchmarks} for tier in TIERS]
    assert names[0] - {"power.idle_brief"} <= names[1] <= names[2]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_name_means_the_same_work_in_every_tier(device):
    works = {}
    for found in shipped_suites().values():
        if found.device == device:
            for benchmark in found.benchmarks:
                works.setdefault(benchmark.name, set()).add(benchmark.work.model_dump_json())
    assert [name for name, each in works.items() if len(each) > 1] == []


@pytest.mark.parametrize("tier", ["standard", "deep"])
def test_every_format_has_a_sustained_twin_of_the_same_product(tier):
    """At the power limit: after five times the warm-up of the other, in samples far longer than a flush."""
    found = {one.name: one for one in shipped_suites()[f"gpu-{tier}"].benchmarks}
    formats = [name for name in found if name in TWINNED or re.fullmatch(r"gemm\.[a-z0-9]+", name)]
    assert len(formats) >= 10
    for name in formats:
        twin = found[f"{name}_sustained"]
        assert (twin.work, twin.metric) == (found[name].work, found[name].metric)
        assert twin.sampling.warmup_seconds >= 5 * found[name].sampling.warmup_seconds
        # A flush takes 0.1 ms.
        assert least_sample_ns(twin.sampling, 500) >= 20_000_000


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_named_after_its_suite_and_leaves_nothing_out(file):
    content = json.loads(file.read_text("utf-8"))
    found = BenchmarkSuite.model_validate(content)
    assert f"{found.id}.json" == file.name
    assert shipped_suites()[found.id] == found


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_benchmark_says_what_its_figure_means(benchmark):
    assert benchmark.formula.strip()
    amount = benchmark.work.count_work()
    assert benchmark.metric in METRICS[benchmark.work.kind]
    is_higher = benchmark.metric in HIGHER or benchmark.work.kind == "capacity"
    assert benchmark.direction == ("higher" if is_higher else "lower")
    assert amount.flops > 0 or benchmark.metric != "flops_per_second"
    assert amount.moved_bytes > 0 or benchmark.metric != "bytes_per_second"


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_sampling_fits_into_the_time_of_its_process(benchmark):
    rule = benchmark.sampling
    warm = max(rule.warmup_seconds, rule.most_warmup_seconds)
    assert warm + rule.most_seconds + benchmark.work.checking_seconds < benchmark.timeout_seconds / 2
    assert rule.least_samples <= rule.most_samples
    assert rule.least_seconds <= rule.most_seconds


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_windows_have_a_source_and_an_order(benchmark):
    for window in benchmark.windows:
        assert window.source
        assert "low" not in window.model_dump() or window.low < window.high


def test_what_processors_reach_has_not_been_published():
    of_processors = [suite for suite in shipped_suites().values() if suite.device == "cpu"]
    assert not any(benchmark.windows for suite in of_processors for benchmark in suite.benchmarks)


def test_all_that_processors_can_do_is_asked_of_them():
    kinds = {benchmark.work.kind for benchmark in shipped_suites()["cpu-standard"].benchmarks}
    assert cpu.PREPARE.keys() <= kinds


def test_what_several_accelerators_do_together_is_not_asked_of_each_at_the_same_time():
    names = {one.name for one in shipped_suites()["gpu-deep"].benchmarks if one.concurrent}
    assert names == {f"concurrent.{name}" for name in ("gemm.bf16", "hbm.copy", "link.h2d", "power.gemm")}
    (collective,) = (
        one for one in shipped_suites()["gpu-standard"].benchmarks if one.name.endswith("8x1mib")
        and one.work.operation == "all_reduce"
    )  # fmt: skip
    with pytest.raises(ValidationError, match="work of several accelerators"):
        BenchmarkSuite.model_validate(
            suite(benchmarks=[{**collective.model_dump(mode="json"), "concurrent": True}])
        )


def test_two_benchmarks_of_one_name_are_refused():
    twice = suite()["benchmarks"][:1] * 2
    with pytest.raises(ValidationError, match="two benchmarks have the same name"):
        BenchmarkSuite.model_validate(suite(benchmarks=twice))


def test_a_benchmark_is_found_by_its_name():
    found = shipped_suites()["cpu-quick"]
    assert found.find_benchmark("gemm.fp64").name == "gemm.fp64"
    assert found.find_benchmark("gemm") is None


def test_the_longest_time_is_that_of_every_process_at_its_limit():
    one = suite()["benchmarks"][0]
    found = BenchmarkSuite.model_validate(suite(benchmarks=[{**one, "repeats": 4, "timeout_seconds": 25.0}]))
    assert found.longest_seconds == 100
