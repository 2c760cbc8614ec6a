"""The plan for half an hour of a GPU: what each step holds, how it ends and goes on, what it says."""

import functools
import json
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from bench import gpu_checks, gpu_measure, gpu_plan, gpu_sanitized, gpu_suite
from service.worker.process import ChildProcesses
from tests.worker.base import ROOT
from tests.worker.cuda import host_kernels
from tests.worker.cuda.test_faults import BOTH
from tests.worker.cuda.test_faults import suite as small_suite
from tests.worker.records import failed, measured, task

MAKEFILE = (ROOT / "Makefile").read_text()
SOUND = """echo "$*"
case $2 in
memcheck) echo "========= ERROR SUMMARY: 0 errors" ;;
racecheck) echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
esac"""
"""What compute-sanitizer prints last, after the command line."""


@pytest.mark.parametrize("name", gpu_plan.STEPS)
class TestSteps:
    def test_it_is_over_in_its_time_were_every_benchmark_to_take_all_it_may(self, name):
        step, suite = gpu_plan.STEPS[name], gpu_plan.planned_suite(name)
        planned = sum(one.planned_seconds("cuda") for one in suite.benchmarks)
        assert planned < step.limit_seconds - step.kept_back_seconds
        assert step.limit_seconds < 570

    def test_make_gives_it_that_time(self, name):
        command = [shutil.which("make"), "-n", f"gpu-{name}"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        limit = int(gpu_plan.STEPS[name].limit_seconds)
        assert f"timeout --foreground --kill-after=15 {limit} python3 -m bench.gpu_plan {name}" in shown
        assert f"--limit {limit} " in shown
        assert f"\ngpu-{name}: ## " in MAKEFILE

    def test_one_gpu_is_enough(self, name):
        benchmarks = gpu_plan.planned_suite(name).benchmarks
        assert benchmarks
        assert not any(one.concurrent or one.work.is_joint for one in benchmarks)


def test_all_steps_are_over_in_half_an_hour():
    assert sum(step.limit_seconds for step in gpu_plan.STEPS.values()) <= 1800


def test_the_first_contact_is_as_broad_as_the_deepest_suite():
    first = gpu_plan.planned_suite("first-contact").benchmarks
    deep = gpu_suite.suite_of("gpu-deep").benchmarks
    alone = {one.work.kind for one in deep if not one.work.is_joint and not one.concurrent}
    assert alone - {one.work.kind for one in first} == {"power", "external_tool", "rdma_link"}
    dtypes, of_first = (
        {one.work.dtype for one in benchmarks if one.work.kind == "gemm"} for benchmarks in (deep, first)
    )
    assert dtypes == of_first


def test_controls_are_of_the_deepest_suite_and_named_once():
    names = {one.name for one in gpu_suite.suite_of("gpu-deep").benchmarks}
    for name, step in gpu_plan.STEPS.items():
        assert set(step.controls) <= names
        planned = [one.name for one in gpu_plan.planned_suite(name).benchmarks]
        assert len(planned) == len(set(planned))


def test_peaks_are_drawn_of_products_of_every_format_at_the_power_limit():
    """Of the large products of a format, a calibration takes those that were warmed longest."""
    figures = gpu_plan.planned_suite("figures").benchmarks
    large = [one for one in figures if one.work.kind == "gemm" and one.work.m == one.work.k == 8192]
    for dtype in ("bf16", "fp16", "fp8_e4m3", "int8", "tf32", "fp32", "fp64"):
        warmest = max(
            (one for one in large if one.work.dtype == dtype), key=lambda one: one.sampling.warmup_seconds
        )
        assert warmest.name.endswith("_sustained")
        assert warmest.sampling.warmup_seconds >= 5 * gpu_plan.STEPS["figures"].sampling["warmup_seconds"]


def test_a_shorter_reading_of_power_has_a_name_of_its_own():
    names = [one.name for one in gpu_plan.planned_suite("power").benchmarks]
    assert names[0] == "power.idle_brief"
    suite = gpu_suite.suite_of("gpu-deep")
    assert not {one.name for one in suite.benchmarks} & set(names)


@pytest.fixture
def machine(monkeypatch, install):
    """A device on which a call measures some benchmarks: those in `works`, until `ends` says so."""

    class Machine:
        fails, ends, asked, limits = set(), 99, [], []

    def measure(suite, folder, seconds):
        Machine.limits.append(seconds)
        (folder / "records").mkdir(parents=True)
        Machine.asked = [one.name for one in suite.benchmarks]
        for one in suite.benchmarks[: Machine.ends]:
            done = task(benchmark=one, suite_id=suite.id, device="cuda", accelerator_index=0)
            record = failed(done) if one.name in Machine.fails else measured(done)
            (folder / "records" / f"{one.name}-1.json").write_bytes(record.to_json())
        return "stopped after 9 s" if Machine.ends < len(suite.benchmarks) else None

    monkeypatch.setattr(gpu_suite, "device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(gpu_suite, "against_torch", lambda *_: (None, None))
    monkeypatch.setattr(gpu_measure, "measure", measure)
    install("nvidia-smi", "echo answers to $*")
    return Machine


@pytest.fixture
def install(monkeypatch, tmp_path):
    """Installs a stand-in of a program, of which no other version is found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(gpu_checks, "FOLDERS", (str(folder), "/bin", "/usr/bin"))

    def write(name, script):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o700)

    return write


def archived(folder):
    with tarfile.open(folder.with_name(f"{folder.name}.tar.gz")) as archive:
        return set(archive.getnames())


def test_a_step_leaves_all_of_it_in_one_archive(machine, tmp_path, capsys):
    folder = tmp_path / "proof"
    assert gpu_plan.run_step("proof", folder, 490.0) == 0
    assert {
        "proof/page.md", "proof/comparison.json", "proof/run-1/records/hbm.copy-1.json",
        "proof/run-1/nvidia-smi-before.txt", "proof/run-1/nvidia-smi-after.txt",
        "proof/run-1/nvlink-errors-before.txt", "proof/dcgm-diag.json",
    } <= archived(folder)  # fmt: skip
    assert (folder / "run-1" / "nvidia-smi-after.txt").read_text() == "answers to -q\n"
    assert (folder / "run-1" / "nvidia-smi-topo.txt").read_text() == "answers to topo -m\n"
    assert (folder / "run-1" / "nvlink-errors-after.txt").read_text() == "answers to nvlink -e\n"
    page = (folder / "page.md").read_text()
    assert page in capsys.readouterr().out
    count = len(gpu_plan.planned_suite("proof").benchmarks)
    assert f"{count} of {count} benchmarks have a figure." in page
    assert "## Not measured yet" not in page
    assert page.partition("## Beside other programs\n\n```\n")[2].startswith(
        "dcgmi: dcgmi is not installed\ncompute-sanitizer is not installed: no kernel was run under it\n```\n"
    )
    assert machine.limits[0] == pytest.approx(490 - 10 - 50 - gpu_checks.SECONDS, abs=2)


def test_a_second_call_goes_on_and_then_tries_again_what_failed(machine, tmp_path):
    machine.ends, machine.fails = 3, {"power.idle_brief"}
    folder = tmp_path / "power"
    assert gpu_plan.run_step("power", folder, 360.0) == 1
    names = machine.asked
    page = (folder / "page.md").read_text()
    assert "2 of 8 benchmarks have a figure." in page
    assert "power.idle_brief" in page.partition("## Without a figure")[2].partition("##")[0]
    assert names[5] in page.partition("## Not measured yet: call the command again")[2]
    assert page.endswith("## Ended early\n\n```\nstopped after 9 s\n```\n")
    machine.ends, machine.fails = 99, set()
    assert gpu_plan.run_step("power", folder, 360.0) == 0
    assert machine.asked == [*names[3:], "power.idle_brief"]
    assert "8 of 8 benchmarks have a figure." in (folder / "page.md").read_text()
    # A third call has nothing to measure, and says the same.
    machine.asked = None
    assert gpu_plan.run_step("power", folder, 360.0) == 0
    assert machine.asked is None
    assert {"power/run-1/records", "power/run-2/records"} <= archived(folder)


def test_figures_are_kept_when_the_comparison_fails(machine, tmp_path, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(gpu_suite, "against_torch", fail)
    with pytest.raises(ZeroDivisionError):
        gpu_plan.run_step("proof", tmp_path / "proof", 490.0)
    assert "proof/comparison.json" in archived(tmp_path / "proof")
    found = json.loads((tmp_path / "proof" / "comparison.json").read_text())
    assert len(found["benchmarks"]) == len(gpu_plan.planned_suite("proof").benchmarks)


def test_a_slower_product_than_pytorch_s_fails_the_proof(machine, tmp_path, monkeypatch):
    pair = {"name": "gemm.bf16", "kind": "gemm", "figure": 1.0, "torch_figure": 1.1, "call": "torch linear"}
    monkeypatch.setattr(gpu_suite, "against_torch", lambda *_: ([pair], None))
    assert gpu_plan.run_step("proof", tmp_path / "proof", 490.0) == 1
    page = (tmp_path / "proof" / "page.md").read_text()
    assert re.search(r"gemm\.bf16 +0\.9091 of torch linear: at least 98% of it: NO", page)


class TestOtherPrograms:
    def test_each_that_is_missing_or_hangs_says_so_in_its_file(self, tmp_path, install):
        gpu_checks.ask(tmp_path, gpu_checks.BEFORE)
        assert (tmp_path / "nvidia-smi-before.txt").read_text() == "nvidia-smi is not installed\n"
        install("nvidia-smi", "echo begun; sleep 60")
        gpu_checks.ask(tmp_path, [gpu_checks.Question("smi.txt", ("nvidia-smi", "-q"), 0.3)])
        assert (tmp_path / "smi.txt").read_text() == "begun\nstopped after 0 s\n"

    def test_kernels_are_run_under_each_tool_of_the_sanitizer_once(self, tmp_path, install):
        install("dcgmi", 'echo "{}"')
        install("compute-sanitizer", SOUND)
        gpu_checks.diagnose(tmp_path, 60.0)
        assert list(gpu_checks.lines(tmp_path)) == [
            "dcgmi diag -r 1: dcgm-diag.json",
            "memcheck: ERROR SUMMARY: 0 errors; ended with 0",
            "racecheck: RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings); ended with 0",
        ]
        asked = gpu_checks.report(tmp_path, "memcheck").read_text().splitlines()[0]
        assert asked == f"--tool memcheck --error-exitcode 86 {sys.executable} -m bench.gpu_sanitized"
        assert gpu_checks.is_sound(tmp_path)
        install("compute-sanitizer", "exit 1")
        gpu_checks.diagnose(tmp_path, 60.0)
        assert gpu_checks.is_sound(tmp_path)

    @pytest.mark.parametrize(
        ("script", "said"),
        [
            ('echo "===== ERROR SUMMARY: 3 errors"; exit 86', "ERROR SUMMARY: 3 errors; ended with 86"),
            ("exit 1", "no summary; ended with 1"),
            ("sleep 60", "no summary; stopped after 0 s"),
        ],
    )
    @pytest.mark.usefixtures("machine")
    def test_an_error_or_no_end_fails_the_proof(self, tmp_path, install, monkeypatch, script, said):
        install("compute-sanitizer", script)
        monkeypatch.setattr(gpu_checks, "TOOL_SECONDS", dict.fromkeys(gpu_checks.TOOLS, 0.3))
        assert gpu_plan.run_step("proof", tmp_path / "proof", 490.0) == 1
        assert f"\nmemcheck: {said}\n" in (tmp_path / "proof" / "page.md").read_text()

    @pytest.mark.parametrize("name", ["stream.copy", "compression.top_k"])
    def test_what_is_sanitized_is_executed_and_checked(self, driver, name):
        """A sample: all of them take half a minute on a processor."""
        assert gpu_sanitized.run_work(gpu_sanitized.WORKS[name]) == "ok"
        assert {"stream.copy": "stream_copy", "compression.top_k": "select_take"}[name] in driver.journal


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ to run the kernels with")
def test_a_step_measures_in_processes_from_the_first_look_to_its_page(tmp_path, monkeypatch):
    """All of it but the driver and its libraries, which are stand-ins."""
    host_kernels.driver()
    monkeypatch.setenv("FAKE_FAULT", "refused_proposal")
    monkeypatch.setenv("IRONLAW_WORKER_LOCK_FILE", str(tmp_path / "lock"))
    monkeypatch.setattr(gpu_suite, "device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(gpu_plan, "planned_suite", lambda _: small_suite(BOTH, 60.0))
    monkeypatch.setattr(gpu_measure, "handle_stop_signals", lambda _: None)
    stand_ins = functools.partial(ChildProcesses, module="tests.worker.cuda.failing")
    monkeypatch.setattr(gpu_measure, "ChildProcesses", stand_ins)
    assert gpu_plan.run_step("proof", tmp_path / "proof", 490.0) == 0
    page = (tmp_path / "proof" / "page.md").read_text()
    assert "NVIDIA H200, " in page
    assert "2 of 2 benchmarks have a figure." in page
    assert re.search(r"hbm\.copy +[\d.]+ GB/s", page)
    assert re.search(r"hbm\.copy +[\d.]+ of the datasheet", page)
    assert "gemm.bf16, repeat 2 of 2: ok" in (tmp_path / "proof" / "run-1" / "log.txt").read_text()
    summary = json.loads((tmp_path / "proof" / "run-1" / "summary.json").read_text())
    assert summary["inventory"]["accelerators"][0]["name"] == "NVIDIA H200"
