"""The records of measured GPUs: what the rules find, what is drawn of them, and the pages about them."""

import gzip
import json
import re

import pytest
from typer.testing import CliRunner

from accuracy.cli import app
from bench import gpu_plan, gpu_records
from service.planning.hardware.calibration import OperatorQuantity, ServingQuantity
from tests.accuracy.measured import RUN, write

FILE = gpu_records.DATA / "h200-sxm.jsonl.gz"
RUNS = gpu_records.read_runs(FILE)
LEAST_ACCEPTED = 0.95
SHARES = {
    "operators.bandwidth": (0.88, 0.92),
    "operators.matrix_peak.bf16": (0.78, 0.84),
    "operators.matrix_peak.fp16": (0.78, 0.84),
    "operators.matrix_peak.fp8": (0.74, 0.81),
    "operators.matrix_peak.int8": (0.72, 0.78),
    "operators.matrix_peak.tf32": (0.78, 0.84),
    "operators.matrix_peak.fp32": (0.72, 0.78),
    "operators.matrix_peak.fp64": (0.78, 0.95),
    "operators.attention_peak": (0.43, 0.48),
    "operators.attention_native_peak": (0.79, 0.88),
    "serving.weight_bandwidth": (0.84, 0.90),
    "serving.expert_bandwidth": (0.75, 0.83),
    "serving.cache_bandwidth": (0.83, 0.92),
    "power.idle_share": (0.15, 0.19),
    "power.active_share": (0.15, 0.20),
    "host_link_bytes_per_second": (0.84, 0.91),
}
"""Ends of each share of a data sheet or power limit."""
VALUES = {
    "operators.kernel_seconds": (0.1e-6, 3e-6),
    "operators.attention_backward": (0.73, 0.82),
    "serving.scaled_share": (0.65, 0.95),
    "power.byte_joules": (75e-12, 95e-12),
    "memory_bytes": (148e9, 151e9),
    "context_bytes": (0.4e9, 0.7e9),
    "host_memory_bytes_per_second": (60e9, 100e9),
    "storage_read_bytes_per_second": (1.2e9, 2.0e9),
    "storage_write_bytes_per_second": (1.0e9, 1.7e9),
}


@pytest.fixture(scope="module")
def drawn():
    return {one.name: one for one in gpu_records.draw_figures(RUNS).figures}


@pytest.mark.parametrize("file", gpu_records.list_files(), ids=lambda file: file.name)
def test_the_page_is_of_the_records(file):
    assert gpu_records.find_page(file).read_text("utf-8") == gpu_records.write_page(file)


def test_every_step_is_there_and_whole():
    assert [run.step for run in RUNS] == list(gpu_plan.STEPS)
    lines = gzip.decompress(FILE.read_bytes()).splitlines()
    assert len(lines) == sum(1 + len(run.records) for run in RUNS)
    for run in RUNS:
        assert {record.status for record in run.records} <= {"ok", "unsupported"}
        assert len({record.run_id for record in run.records}) == 1


def test_the_file_names_no_machine():
    text = gzip.decompress(FILE.read_bytes()).decode()
    assert not re.search(r"/(home|root|tmp|work|mnt|usr|opt|var)\b|hostname|serial|GPU-[0-9a-f]{8}-", text)


@pytest.mark.parametrize("step", ["figures", "power"])
def test_the_rules_accept_what_a_calibration_is_drawn_of(step):
    judged = [one for run in RUNS if run.step == step for one in gpu_records.judge_run(run)]
    assert sum(one.is_accepted for one in judged) >= LEAST_ACCEPTED * len(judged)


def test_every_constant_is_drawn(drawn):
    assert drawn.keys() >= SHARES.keys() | VALUES.keys()
    for name, (low, high) in SHARES.items():
        figure = drawn[name].figure
        assert low < figure.value / figure.limit < high, name
    for name, (low, high) in VALUES.items():
        assert low < drawn[name].figure.value < high, name


def test_a_library_that_no_engine_uses_draws_nothing(drawn):
    assert "serving.decode_attention" not in drawn


def test_a_constant_knows_the_conditions_of_its_results(drawn):
    rests_on = drawn["operators.matrix_peak.bf16"].rests_on
    assert rests_on.benchmarks == ("gemm.bf16_sustained",)
    assert rests_on.conditions["library"].startswith("cublasLt")
    assert rests_on.conditions["throttle_sw_power_cap_seconds"] > 1.0


def test_the_calibration_is_of_the_device():
    calibration = gpu_records.draw_calibration(FILE)
    assert calibration.scope == ("cuda", "local", "h200-sxm", "hopper", 700.0, 580)
    assert calibration.serving[ServingQuantity.CACHE_BANDWIDTH].runs == 1
    assert (OperatorQuantity.BANDWIDTH, None) in calibration.operators


def test_what_is_packed_is_read(tmp_path):
    """A step of two runs: what PyTorch and the sanitizer said belongs to the step, with its last run."""
    proof = next(run for run in RUNS if run.step == "proof")
    folder = tmp_path / "proof"
    for number, record in enumerate(proof.records[:2], start=1):
        (folder / f"run-{number}" / "records").mkdir(parents=True)
        (folder / f"run-{number}" / "records" / "one.json").write_text(record.model_dump_json())
        inventory = {"inventory": proof.inventory.model_dump(mode="json")}
        (folder / f"run-{number}" / "summary.json").write_text(json.dumps(inventory))
        (folder / f"run-{number}" / "nvidia-smi-before.txt").write_text("Virtualization Mode   : None\n")
    (folder / "torch.json").write_text(json.dumps(proof.torch))
    (folder / "sanitizer-memcheck.txt").write_text("\n".join(proof.sanitizer["memcheck"]))
    packed = gpu_records.pack_folders([folder])
    assert packed == gpu_records.pack_folders([folder])
    (tmp_path / "some.jsonl.gz").write_bytes(packed)
    first, last = gpu_records.read_runs(tmp_path / "some.jsonl.gz")
    assert [*first.records, *last.records] == proof.records[:2]
    assert first.inventory == last.inventory == proof.inventory
    assert (first.torch, first.sanitizer, first.virtualization) == ((), {}, "None")
    assert (last.torch, last.sanitizer) == (proof.torch, {"memcheck": proof.sanitizer["memcheck"]})


def test_a_tool_that_finds_an_error_is_said_to():
    printed = ["========= COMPUTE-SANITIZER", "a: ok", "========= Invalid write", "b: wrong", "ended with 86"]
    line = gpu_records.describe_tool("memcheck", printed)
    assert line == "| memcheck | 1 | Invalid write; b: wrong | ended with 86 |"


@pytest.mark.parametrize("accelerator_id", ["h200-sxm", "a100-sxm-80gb"])
def test_rows_of_the_device_alone_are_estimated_with_its_calibration(tmp_path, accelerator_id):
    throughput = {"metric": "tokens_per_s_per_gpu", "unit_si": "tokens/s", "value_si": "1e4"}
    rows = write(tmp_path / "rows.csv", RUN | throughput | {"accelerator_id": accelerator_id})
    estimated = []
    for words in ([], ["--calibrations", str(FILE)]):
        scores = tmp_path / "scores.json"
        CliRunner().invoke(app, ["score", str(rows), "--json", str(scores), *words])
        estimated.append(json.loads(scores.read_text())["rows"][0]["estimated"])
    assert None not in estimated
    assert (estimated[0] != estimated[1]) is (accelerator_id == "h200-sxm")
