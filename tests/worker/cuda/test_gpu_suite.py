"""What `make gpu-suite` makes of records, and what it says where it cannot run."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import gpu_suite
from service.protocol.suites import shipped_suites
from tests import forked
from tests.faults.node_child import SECONDS
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
SUITE = shipped_suites()["gpu-deep"]


def record(name, nanoseconds, status="ok", repeat=1):
    """As much of a record as the table is made of."""
    measurement = SimpleNamespace(values=[ns / 1e9 for ns in nanoseconds], inner_iterations=1)
    failure = SimpleNamespace(reason="UNSUPPORTED", detail="fp8_e4m3 needs compute capability 8.9 or newer")
    return SimpleNamespace(
        benchmark=SUITE.find_benchmark(name),
        status=status,
        measurement=measurement,
        failure=failure,
        repeat=repeat,
        gaps=[],
    )


def test_it_says_in_one_line_what_is_missing(tmp_path):
    command = [sys.executable, "-S", "-m", "bench.gpu_suite", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"gpu-suite: {sys.executable} lacks numpy, pydantic,")
    assert "nvmath-python" in line
    assert list(tmp_path.iterdir()) == []


def test_it_says_in_one_line_that_there_is_no_gpu(driver, fake_nvml):
    driver.fact("cuInit", 100)
    with pytest.raises(
        gpu_suite.MissingDependency, match=r"^no NVIDIA GPU: CUDA driver: CUDA_ERROR_NO_DEVICE$"
    ):
        gpu_suite.device_name()
    driver.fact("cuInit", 0)
    fake_nvml.answers["nvmlDeviceGetCount"] = 0
    with pytest.raises(
        gpu_suite.MissingDependency, match=r"^no NVIDIA GPU: accelerator 0: it does not exist$"
    ):
        gpu_suite.device_name()


def test_a_device_is_looked_up_by_what_its_driver_calls_it():
    assert gpu_suite.catalogued("NVIDIA H200")["id"] == "h200-sxm"
    assert gpu_suite.catalogued("NVIDIA H100 80GB HBM3")["id"] == "h100-sxm"
    assert gpu_suite.catalogued("NVIDIA A100-SXM4-80GB")["id"] == "a100-sxm-80gb"
    assert gpu_suite.catalogued("NVIDIA Something") is None


@pytest.mark.parametrize(("milliseconds", "place"), [(2.0, "inside"), (2.5, "below"), (1.5, "above")])
def test_a_figure_is_placed_in_the_window_of_its_device(milliseconds, place):
    # 8.59 GB in 2 ms are 4.29 TB/s; the window of an H200 goes from 3.6 to 4.5.
    row = gpu_suite.row("hbm.copy", [record("hbm.copy", [milliseconds * 1e6])] * 3, "h200-sxm")
    assert row["figure"] == pytest.approx(2**33 / milliseconds * 1e3)
    assert row["place"] == f"{place} (provisional)"
    assert gpu_suite.row("hbm.copy", [record("hbm.copy", [2e6])], None)["place"] == "no window"


def test_the_median_of_repeats_counts_and_their_spread_is_told():
    repeats = [record("hbm.copy", [ns], repeat=repeat) for repeat, ns in enumerate((2.0e6, 2.1e6, 2.2e6))]
    row = gpu_suite.row("hbm.copy", repeats, "h200-sxm")
    assert row["figure"] == pytest.approx(2**33 / 2.1e-3)
    assert row["spread_between_repeats"] == pytest.approx(2.1 / 2.0 - 2.1 / 2.2)
    assert row["status"] == "ok"
    mixed = [*repeats, record("hbm.copy", [], status="failed")]
    assert gpu_suite.row("hbm.copy", mixed, "h200-sxm")["status"] == "some repeats failed"


def test_what_has_no_figure_says_why():
    row = gpu_suite.row("gemm.fp8", [record("gemm.fp8", [], status="unsupported")], "a100-sxm-80gb")
    assert "figure" not in row
    (line,) = gpu_suite.table([row], [])
    assert line.endswith("unsupported: UNSUPPORTED: fp8_e4m3 needs compute capability 8.9 or newer")


@pytest.mark.parametrize(
    ("kind", "ratio", "passed"),
    [
        ("gemm", 0.979, False), ("gemm", 0.981, True), ("gemm", 1.019, True), ("gemm", 1.3, True),
        ("stream", 0.979, False), ("stream", 0.981, True), ("stream", 1.2, True),
    ],
)  # fmt: skip
def test_the_demands_on_products_and_copies(kind, ratio, passed):
    pair = {"name": "one", "kind": kind, "figure": ratio * 700e12, "torch_figure": 700e12, "call": "torch"}
    (judged,) = gpu_suite.verdicts([pair])
    assert judged["passed"] is passed
    (line,) = gpu_suite.table([], [judged])
    assert line.endswith("yes" if passed else "NO")


def test_of_accelerators_that_measured_at_once_the_slowest_counts():
    beside = [record("concurrent.hbm.copy", [ns]) for ns in (2.0e6, 2.4e6, 2.2e6)]
    row = gpu_suite.row("concurrent.hbm.copy", beside, "h200-sxm")
    assert row["figure"] == pytest.approx(2**33 / 2.4e-3)


def test_every_own_kernel_stands_beside_what_bounds_it_in_the_same_run():
    adam = SUITE.find_benchmark("optimizer.adamw").work.count_work().moved_bytes
    found = {
        "hbm.triad": [record("hbm.triad", [3 * 2**32 / 4.0e12 * 1e9])],
        "optimizer.adamw": [record("optimizer.adamw", [adam / 3.0e12 * 1e9])],
        "gemm.bf16": [record("gemm.bf16", [], status="failed")],
        "training.step": [record("training.step", [1e9])],
        "launch.stream": [record("launch.stream", [1e6])],
    }
    shares = {each["name"]: each for each in gpu_suite.ceilings(found, gpu_suite.catalogued("NVIDIA H200"))}
    assert shares["optimizer.adamw"] == {
        "name": "optimizer.adamw",
        "of": "hbm.triad",
        "share": pytest.approx(0.75),
    }
    assert shares["hbm.triad"]["of"] == "the datasheet"
    assert shares["hbm.triad"]["share"] == pytest.approx(4.0 / 4.8)
    assert shares.keys() == {"hbm.triad", "optimizer.adamw"}
    lines = list(gpu_suite.table([], [], [*shares.values(), {"name": "x", "of": "y", "share": 1.2}]))
    assert lines[-1].endswith("1.200 of y: MORE THAN BOUNDS IT")


def test_what_bounds_is_in_the_suites():
    names = {benchmark.name for benchmark in SUITE.benchmarks}
    for prefix, (_, above) in gpu_suite.CEILINGS.items():
        assert set(above) <= names
        assert any(name.startswith(prefix) for name in names)


@pytest.mark.parametrize("suite_id", ["gpu-quick", "gpu-standard", "gpu-deep"])
def test_parts_hold_every_benchmark_once_and_are_over_within_ten_minutes(suite_id):
    suite = gpu_suite.suite_of(suite_id)
    parts = gpu_suite.parts(suite.benchmarks)
    assert [one for part in parts for one in part] == suite.benchmarks
    for part in parts:
        whole = gpu_suite.with_bounds(part)
        kept_back = gpu_suite.COMPARISON_SECONDS + gpu_suite.ENDING_SECONDS
        assert sum(one.planned_seconds("cuda") for one in whole) < 570 - kept_back
        names = [one.name for one in whole]
        assert all(above[-1] in names for name in names if (above := gpu_suite.bounds_of(name)[1]))
    assert len(list(gpu_suite.planned(suite))) == len(parts)


def test_the_command_that_is_documented_runs_every_part():
    numbers = range(1, len(gpu_suite.parts(gpu_suite.suite_of("gpu-standard").benchmarks)) + 1)
    text = (ROOT / "docs" / "gpu-benchmarks.md").read_text()
    assert f"for part in {' '.join(map(str, numbers))}; do make gpu-suite" in text


def test_a_part_of_the_suite_can_be_chosen():
    standard = gpu_suite.suite_of("gpu-standard")
    assert gpu_suite.chosen(standard, [], None) == standard
    names = [one.name for one in gpu_suite.chosen(standard, ["hbm.*", "gemm.bf16"], None).benchmarks]
    assert names[0] == "gemm.bf16"
    assert len(names) == 5
    second = gpu_suite.chosen(standard, [], 2).benchmarks
    first = gpu_suite.parts(standard.benchmarks)[0]
    assert not {benchmark.name for benchmark in first[1:]} & {benchmark.name for benchmark in second}
    with pytest.raises(gpu_suite.MissingDependency, match=r"no benchmark is called nothing\.\*"):
        gpu_suite.chosen(standard, ["nothing.*"], None)
    with pytest.raises(gpu_suite.MissingDependency, match=r"there are \d parts"):
        gpu_suite.chosen(standard, [], 9)
    with pytest.raises(gpu_suite.MissingDependency, match="no suite for accelerators is called cpu-quick"):
        gpu_suite.suite_of("cpu-quick")


PAIR = {"name": "hbm.copy", "kind": "stream", "figure": 4e12, "torch_figure": 4e12, "call": "Tensor.copy_"}


@pytest.fixture
def measured(monkeypatch):
    """A device that measured a copy."""
    monkeypatch.setattr(gpu_suite, "device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(gpu_suite, "measured", lambda *_: ({"hbm.copy": [record("hbm.copy", [2e6])]}, None))
    monkeypatch.setattr(gpu_suite, "against_torch", lambda *_: ([PAIR], None))


def written(folder):
    return json.loads((folder / "comparison.json").read_text())


@pytest.mark.usefixtures("measured")
class TestComparison:
    """What a run leaves, however it ends."""

    def test_it_is_all_in_one_archive(self, tmp_path, capsys):
        assert gpu_suite.compared(tmp_path / "h200", SUITE, 60) == 0
        assert [pair["passed"] for pair in written(tmp_path / "h200")["torch"]] == [True]
        with tarfile.open(tmp_path / "h200.tar.gz") as archive:
            assert "h200/comparison.json" in archive.getnames()
        assert f"all of it is in {tmp_path / 'h200.tar.gz'}" in capsys.readouterr().out

    @pytest.mark.parametrize(("fails", "known"), [("against_torch", None), ("verdicts", [PAIR])])
    def test_figures_are_written_before_they_are_judged(self, tmp_path, monkeypatch, fails, known):
        def fail(*_):
            raise ZeroDivisionError

        monkeypatch.setattr(gpu_suite, fails, fail)
        with pytest.raises(ZeroDivisionError):
            gpu_suite.compared(tmp_path / "h200", SUITE, 60)
        with tarfile.open(tmp_path / "h200.tar.gz") as archive:
            found = json.load(archive.extractfile("h200/comparison.json"))
        assert found["benchmarks"][0]["figure"] == pytest.approx(2**33 / 2e-3)
        assert found.get("torch") == known

    def test_what_ended_it_early_is_said_and_fails(self, tmp_path, monkeypatch, capsys):
        monkeypatch.setattr(gpu_suite, "against_torch", lambda *_: ([PAIR], "stopped after 3 s"))
        assert gpu_suite.compared(tmp_path / "h200", SUITE, 60) == 1
        assert written(tmp_path / "h200")["torch_ended"] == "stopped after 3 s"
        assert capsys.readouterr().err == "gpu-suite: stopped after 3 s\n"


class TestTorch:
    """The process that compares with PyTorch."""

    @pytest.mark.parametrize(
        ("last", "ended"),
        [
            ("exec sleep 60", "the comparison with PyTorch was stopped after 1 s"),
            ("exit 1", "the comparison with PyTorch ended with 1"),
            ("exit 0", None),
        ],
    )
    def test_pairs_are_kept_however_the_comparison_ends(self, tmp_path, monkeypatch, last, ended):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\necho '{json.dumps([PAIR])}' > \"$4\"\n{last}\n")
        python.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(python))
        assert gpu_suite.against_torch(tmp_path, ["hbm.copy"], 1.0) == ([PAIR], ended)

    def test_without_pytorch_nothing_is_compared(self, tmp_path):
        assert gpu_suite.against_torch(tmp_path, ["hbm.copy"], 60.0) == (None, None)
        assert list(tmp_path.iterdir()) == []


MEASURE = """
import functools, sys
from pathlib import Path
from bench import gpu_measure
from service.worker.process import ChildProcesses
from tests.worker.records import suite
gpu_measure.ChildProcesses = functools.partial(ChildProcesses, module="tests.faults.node_child")
print(gpu_measure.measure(suite(benchmarks=50, repeats=1), Path({folder!r}), {seconds}))
"""
"""Measures by processes that sleep for the time of a repeat."""


class TestEnds:
    """A measurement that is ended keeps what it has."""

    def started(self, folder, seconds):
        folder.mkdir()
        variables = {
            **os.environ,
            SECONDS: "0.5",
            "IRONLAW_WORKER_LOCK_FILE": f"{folder}.lock",
            "PYTHONPATH": str(ROOT),
        }
        program = MEASURE.format(folder=str(folder), seconds=seconds)
        return forked.Process(exec, program, {}, environment=variables, folder=folder)

    def test_at_its_limit(self, tmp_path):
        assert self.started(tmp_path / "run", 5).wait(timeout=60) == 0
        assert (tmp_path / "run" / "out").read_text() == "stopped after 5 s\n"
        assert list((tmp_path / "run" / "records").iterdir())
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["benchmarks"]
        assert "gemm.0, repeat 1 of 1: ok" in (tmp_path / "run" / "log.txt").read_text()

    def test_at_a_signal(self, tmp_path):
        process = self.started(tmp_path / "run", 600)
        until(lambda: list((tmp_path / "run").glob("records/*.json")))
        process.terminate()
        assert process.wait(timeout=60) == 0
        assert (tmp_path / "run" / "out").read_text() == "stopped by a signal\n"
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["benchmarks"]
