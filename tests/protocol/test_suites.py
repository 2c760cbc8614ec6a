"""The suites that come with the service, each of them."""

import json
from importlib.resources import files

import pytest
from pydantic import ValidationError

from service.protocol.suites import Suite, shipped_suites
from service.worker import cpu

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
    "fft": {"flops_per_second"},
    "stream": {"bytes_per_second"},
    "strided_read": {"bytes_per_second"},
    "host_link": {"bytes_per_second", "seconds"},
    "storage": {"bytes_per_second"},
    "launch_latency": {"seconds"},
    "power": {"watts"},
    "context_memory": {"bytes"},
}


def suite(**changes):
    document = json.loads((files("service.protocol") / "suites" / "cpu-first.json").read_text("utf-8"))
    return {**document, **changes}


def test_there_is_one_for_the_processor():
    assert shipped_suites()["cpu-first"].device == "cpu"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_is_named_after_its_suite_and_leaves_nothing_out(file):
    content = json.loads(file.read_text("utf-8"))
    found = Suite.model_validate(content)
    assert f"{found.id}.json" == file.name
    assert shipped_suites()[found.id] == found


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_benchmark_says_what_its_figure_means(benchmark):
    assert benchmark.formula.strip()
    amount = benchmark.work.amount()
    assert benchmark.metric in METRICS[benchmark.work.kind]
    assert benchmark.direction == ("higher" if benchmark.metric.endswith("_per_second") else "lower")
    assert amount.flops > 0 or benchmark.metric != "flops_per_second"
    assert amount.moved_bytes > 0 or benchmark.metric != "bytes_per_second"


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_sampling_fits_into_the_time_of_its_process(benchmark):
    rule = benchmark.sampling
    assert rule.warmup_seconds + rule.most_seconds < benchmark.timeout_seconds / 2
    assert rule.least_samples <= rule.most_samples
    assert rule.least_seconds <= rule.most_seconds


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_windows_have_a_source_and_an_order(benchmark):
    for window in benchmark.windows:
        assert window.source
        assert "low" not in window.model_dump() or window.low < window.high


def test_what_processors_reach_has_not_been_published():
    assert not any(benchmark.windows for benchmark in shipped_suites()["cpu-first"].benchmarks)


def test_processors_can_do_all_that_is_asked_of_them():
    kinds = {benchmark.work.kind for benchmark in shipped_suites()["cpu-first"].benchmarks}
    assert kinds <= cpu.PREPARE.keys()


def test_the_suite_of_the_processor_takes_about_a_minute():
    found = shipped_suites()["cpu-first"].benchmarks
    rules = [(benchmark.repeats, benchmark.sampling) for benchmark in found]
    assert sum(repeats * (rule.warmup_seconds + rule.most_seconds) for repeats, rule in rules) < 60


def test_two_benchmarks_of_one_name_are_refused():
    twice = suite()["benchmarks"][:1] * 2
    with pytest.raises(ValidationError, match="two benchmarks of one name"):
        Suite.model_validate(suite(benchmarks=twice))


def test_a_benchmark_is_found_by_its_name():
    found = shipped_suites()["cpu-first"]
    assert found.benchmark("gemm.fp64").name == "gemm.fp64"
    assert found.benchmark("gemm") is None


def test_the_longest_time_is_that_of_every_process_at_its_limit():
    one = suite()["benchmarks"][0]
    found = Suite.model_validate(suite(benchmarks=[{**one, "repeats": 4, "timeout_seconds": 25.0}]))
    assert found.longest_seconds == 100
