"""The benchmarks of the processor, on sizes that take no time; nothing here is judged by its speed."""

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest
from pydantic import MISSING

from service.protocol.results import BenchmarkResultReport
from service.worker import cpu
from service.worker.benchmark import Unsupported
from service.worker.cpu import blas, cache_stream, host_timed, storage, stream, training_step
from service.worker.host import file_system, usable_processors
from service.worker.measure import measure_repeat
from tests.worker.machines import benchmark, task

SEED = 5
GEMM = {"kind": "gemm", "dtype": "fp64", "m": 33, "n": 17, "k": 65}
FFT = {"kind": "fft", "dtype": "fp64", "points": 96, "batch": 3}
STRIDED = {"kind": "strided_read", "stride_bytes": 64, "array_bytes": 64 * 1000}
ATTENTION = {
    "kind": "attention", "phase": "prefill", "back_end": "own", "dtype": "fp32",
    "batch": 2, "query_heads": 4, "kv_heads": 2, "head_size": 64, "context_tokens": 300,
}  # fmt: skip
SMALL_DECODER = {
    "layers": 2, "hidden": 24, "query_heads": 4, "kv_heads": 2, "head_size": 64, "feed_forward": 20,
    "vocabulary": 50, "dtype": "fp32",
}  # fmt: skip
DECODE = {"kind": "decode_loop", **SMALL_DECODER, "batch": 3, "context_tokens": 11, "steps": 3}
TRAINING = {
    "kind": "training_step", **SMALL_DECODER,
    "sequence_length": 9, "micro_batch_size": 2, "accumulation_steps": 2,
}  # fmt: skip
STORAGE = {"kind": "storage", "direction": "write", "file_bytes": 100_000, "block_bytes": 8192}


def array(pattern, array_bytes=8 * 50_001):
    return {"kind": "stream", "pattern": pattern, "array_bytes": array_bytes}


COMPUTED = [
    GEMM,
    {**GEMM, "dtype": "fp32"},
    {**GEMM, "dtype": "fp16"},
    {**GEMM, "m": 1, "n": 1, "k": 1},
    *[array(pattern) for pattern in ("read", "write", "copy", "triad")],
    array("triad", 8),
    STRIDED,
    {**STRIDED, "stride_bytes": 4},
    {**STRIDED, "stride_bytes": 24, "array_bytes": 1000},
    FFT,
    {**FFT, "dtype": "fp32"},
    {**FFT, "points": 2, "batch": 1},
    {**FFT, "points": 12, "dimensions": 2},
    {**FFT, "points": 7, "dimensions": 3, "dtype": "fp32"},
    ATTENTION,
    {**ATTENTION, "phase": "decode"},
    DECODE,
    TRAINING,
    {**TRAINING, "recomputation": "full", "sequence_length": 40},
    *[
        {"kind": "cache_stream", "pattern": name, "array_bytes": 8 * 2_001, "passes": 5}
        for name in ("read", "copy")
    ],
    *[
        {"kind": "optimizer_step", "optimizer": name, "parameters": 20_001}
        for name in ("adamw", "sgd_momentum")
    ],
    *[
        {"kind": "gradient_accumulation", "gradient_dtype": name, "parameters": 20_001}
        for name in ("bf16", "fp32")
    ],
    *[
        {"kind": "gradient_compression", "method": name, "parameters": 20 * 1024}
        for name in ("int8", "sign", "top_k")
    ],
]


@pytest.fixture(autouse=True)
def small_machine(monkeypatch, tmp_path):
    """A cache of which a few sets are four times, so that there is a rotation but no large buffer."""
    for module in (host_timed, cache_stream):
        monkeypatch.setattr(module, "last_level_cache_bytes", lambda: 100_000)
    monkeypatch.setattr(host_timed, "available_memory_bytes", lambda: 2**30)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@contextmanager
def prepared(work, seed=SEED):
    with ExitStack() as stack:
        try:
            found = stack.enter_context(cpu.PREPARE[work["kind"]](benchmark(work), seed, None))
        except Unsupported as error:
            if "page cache" in str(error) and os.posix_fadvise.__name__ == "posix_fadvise":
                pytest.skip("this kernel keeps what it has read: reads from storage cannot be measured")
            raise
        yield found


def checked(work, seed=SEED, iterations=1):
    with prepared(work, seed) as found:
        assert found.execute(iterations) > 0
        return found.check()


def identify(work):
    return "-".join(str(value) for value in work.values())


@pytest.mark.parametrize("work", COMPUTED, ids=identify)
def test_what_is_computed_is_right_in_every_buffer(work):
    with prepared(work) as found:
        for _ in range(min(found.facts.rotated_buffers, 20) + 1):
            found.execute(1)
            assert found.check().passed


@pytest.mark.parametrize("work", COMPUTED, ids=identify)
def test_data_come_from_the_seed(work):
    assert checked(work).checksum == checked(work).checksum
    assert checked(work).checksum != checked(work, seed=SEED + 1).checksum


def test_benchmarks_of_one_run_have_data_of_their_own():
    other = benchmark(GEMM).model_copy(update={"name": "gemm.other"})
    first = host_timed.build_generator(benchmark(GEMM), SEED).random(4)
    assert not np.array_equal(first, host_timed.build_generator(other, SEED).random(4))


def spoilt(name, module=np):
    """A function of NumPy whose result is off by a thousandth, in one element where it has several."""
    real = getattr(module, name)

    def wrong(*args, out=None, **kwargs):
        found = real(*args, **kwargs) if out is None else real(*args, out=out, **kwargs)
        target = args[0] if name == "copyto" else (args[2] if out is None and len(args) > 2 else found)
        if name in ("matmul", "fft"):
            target *= 1.001
        else:
            target[-1:] *= 1.001
        return found

    return wrong


@pytest.mark.parametrize(
    ("work", "module", "name"),
    [
        (GEMM, np, "matmul"),
        ({**GEMM, "dtype": "fp32"}, np, "matmul"),
        (array("write"), np, "copyto"),
        (array("copy"), np, "copyto"),
        (array("triad"), np, "add"),
        (FFT, np.fft, "fft"),
        ({**FFT, "dtype": "fp32"}, np.fft, "fft"),
        (ATTENTION, np, "matmul"),
    ],
)
def test_a_wrong_result_is_noticed(monkeypatch, work, module, name):
    monkeypatch.setattr(module, name, spoilt(name, module))
    assert not checked(work).passed


@pytest.mark.parametrize("work", [array("read"), STRIDED], ids=identify)
def test_a_part_that_is_not_read_is_noticed(monkeypatch, work):
    monkeypatch.setattr(stream, "_build_sum", lambda view: lambda: np.add.reduce(view[:-8]))
    assert not checked(work).passed


@pytest.mark.parametrize(
    "work", [work for work in COMPUTED if work["kind"] in ("gemm", "fft")] + [array("copy")], ids=identify
)
def test_work_that_is_left_out_is_noticed(monkeypatch, work):
    for module, name in ((np, "matmul"), (np, "copyto"), (np.fft, "fft"), (np.fft, "fftn")):
        monkeypatch.setattr(module, name, lambda *_, **__: None)
    outcome = checked(work)
    assert not outcome.passed
    assert outcome.largest_error == 1e30


@pytest.mark.parametrize("dtype", ["tf32", "bf16", "fp8_e4m3", "int8"])
def test_types_that_numpy_does_not_multiply_are_unsupported(dtype):
    result = measure_repeat(task(benchmark({**GEMM, "dtype": dtype})))
    assert (result.status, result.failure.reason) == ("unsupported", "UNSUPPORTED")
    assert "NumPy" in result.failure.detail


@pytest.mark.parametrize(
    "work",
    [
        {**FFT, "dtype": "fp16"},
        {**FFT, "in_place": True},
        {**ATTENTION, "dtype": "bf16"},
        {**ATTENTION, "back_end": "flash"},
        {**DECODE, "dtype": "bf16"},
        {**TRAINING, "dtype": "bf16"},
    ],
    ids=identify,
)
def test_what_numpy_does_not_have_is_unsupported(work):
    with pytest.raises(Unsupported), prepared(work):
        pass


@pytest.mark.parametrize("name", ["_update_weights", "_backward_matrix"])
def test_a_step_that_is_left_out_or_wrong_is_noticed(monkeypatch, name):
    with prepared(TRAINING) as found:
        found.execute(2)
        assert found.check().passed
        real = training_step.CpuTrainingStep._backward_matrix
        wrong = {
            "_update_weights": lambda *_: None,
            "_backward_matrix": lambda *arguments: real(*arguments) * np.float32(1.01),
        }
        monkeypatch.setattr(training_step.CpuTrainingStep, name, wrong[name])
        found.execute(1)
        assert not found.check().passed


def test_micro_batches_and_recomputation_change_no_gradient():
    """Two halves of a batch give the mean of it, and a layer that goes forward again the same."""
    gradients = []
    for change in ({"accumulation_steps": 2}, {"accumulation_steps": 2, "recomputation": "full"}):
        step = training_step.CpuTrainingStep(benchmark({**TRAINING, **change}).work, SEED)
        step.run()
        gradients.append(step.gradients)
    whole = training_step.CpuTrainingStep(benchmark(TRAINING).work, SEED)
    layer, x = whole._forward_layer(0, whole.weights["table"][whole.ids[0]][:, :-1])
    assert {part.dtype for part in (*layer, x, whole._backward_layer(0, layer, x))} == {np.dtype(np.float32)}
    whole = training_step.CpuTrainingStep(benchmark(TRAINING).work, SEED)
    whole.run_micro_batch(whole.ids.reshape(4, -1), 1)
    for name, found in whole.gradients.items():
        assert np.array_equal(gradients[0][name], gradients[1][name])
        assert np.allclose(gradients[0][name], found, rtol=0, atol=1e-5 * np.abs(found).max())


def test_numpy_multiplies_fp16_without_the_library():
    with prepared({**GEMM, "dtype": "fp16"}) as found:
        assert found.facts.library.endswith("own loop")
        assert (found.facts.threads, found.facts.accumulation) == (1, "fp32")


def test_products_of_int8_would_wrap():
    """Why int8 is unsupported: the sum of 128 ones is -128."""
    ones = np.ones((128, 128), np.int8)
    assert np.matmul(ones, ones)[0, 0] == -128


SET_UP = """
import os, sys
from service.worker.measure import measure_repeat
from service.worker.task import RepeatTask
sys.stdout.buffer.write(measure_repeat(RepeatTask.model_validate_json(sys.stdin.read())).to_json())
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_the_threads_of_the_matrix_library_are_those_it_has(threads):
    """In a process of its own, because the library reads the variable when it is loaded."""
    run = subprocess.run(
        [sys.executable, "-c", SET_UP],
        input=task(benchmark(GEMM)).model_dump_json().encode(),
        env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
        capture_output=True,
        check=True,
    )
    result = BenchmarkResultReport.model_validate_json(run.stdout)
    assert result.measurement.threads == min(threads, len(usable_processors()))
    assert result.environment["openblas_num_threads"] == str(threads)


def test_a_matrix_library_that_cannot_be_asked_is_a_gap(monkeypatch, tmp_path):
    monkeypatch.setattr(blas, "MAPS", tmp_path / "none")
    with prepared(GEMM) as found:
        assert found.facts.threads is None
        assert [(gap.pointer, gap.code) for gap in found.facts.gaps] == [
            ("/measurement/threads", "not-reported")
        ]


def test_buffers_together_are_four_times_the_cache():
    turns = host_timed.build_rotation(30_000)
    assert (turns.count, turns.total_bytes, turns.gaps) == (14, 420_000, ())
    assert host_timed.build_rotation(10**6).count == 1


def test_buffers_take_at_most_a_quarter_of_the_memory(monkeypatch):
    monkeypatch.setattr(host_timed, "available_memory_bytes", lambda: 1_000_000)
    turns = host_timed.build_rotation(60_000)
    assert turns.count == 4
    assert [gap.code for gap in turns.gaps] == ["within-cache"]
    assert host_timed.build_rotation(500_000).count == 1
    with pytest.raises(Unsupported):
        host_timed.build_rotation(500_001)


def test_tiny_buffers_do_not_become_millions():
    turns = host_timed.build_rotation(8)
    assert turns.count == 4096
    assert [gap.code for gap in turns.gaps] == ["within-cache"]


def test_a_cache_of_unknown_size_is_a_gap(monkeypatch):
    monkeypatch.setattr(host_timed, "last_level_cache_bytes", lambda: None)
    assert [gap.code for gap in host_timed.build_rotation(1000).gaps] == ["cache-unknown"]


def test_executions_take_the_buffers_in_turn():
    turns = []
    timed = host_timed.HostTimed(
        host_timed.MeasurementFacts(library="x", data="x", timer="host_clock", rotated_buffers=3),
        turns.append,
        lambda index: index,
    )
    for iterations in (2, 1, 4):
        timed.execute(iterations)
    assert turns == [0, 1, 2, 0, 1, 2, 0]
    assert timed.check() == 0


@pytest.mark.parametrize("ways", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("count", [1, 8, 9, 1000, 4096])
def test_parts_cover_an_array_once(count, ways):
    parts = stream.split_elements(count, ways)
    assert [place for part in parts for place in range(part.start, part.stop)] == list(range(count))
    assert len(parts) <= ways
    lengths = [part.stop - part.start for part in parts]
    assert max(lengths) - min(lengths) < 2 * stream.LINE


def test_one_processor_needs_no_threads(monkeypatch):
    monkeypatch.setattr(stream, "usable_processors", lambda: (0,))
    monkeypatch.delattr(stream, "ThreadPoolExecutor")
    with prepared(array("triad")) as found:
        found.execute(1)
        assert found.check().passed
        assert found.facts.threads == 1


def test_every_processor_takes_a_part(monkeypatch):
    monkeypatch.setattr(stream, "usable_processors", lambda: tuple(range(5)))
    with prepared(array("copy")) as found:
        found.execute(1)
        assert found.check().passed
        assert found.facts.threads == 5


@pytest.mark.parametrize(
    "work", [array("copy", 1004), {**STRIDED, "stride_bytes": 4096, "array_bytes": 4000}]
)
def test_arrays_that_do_not_fit_the_elements_are_unsupported(work):
    with pytest.raises(Unsupported), prepared(work):
        pass


on_a_device = pytest.mark.skipif(
    file_system(Path("/var/tmp")) in storage.IN_MEMORY,  # noqa: S108
    reason="the folder for temporary files is in memory",
)
"""Never true where this project is tested; a file in memory has no device to be measured."""


@on_a_device
@pytest.mark.parametrize("size", [8192, 100_000, 8192 * 3 + 1])
@pytest.mark.parametrize("direction", ["read", "write"])
def test_a_file_is_what_the_seed_says(monkeypatch, direction, size):
    monkeypatch.delenv("TMPDIR")
    work = {**STORAGE, "direction": direction, "file_bytes": size}
    with prepared(work) as found:
        assert found.execute(2) > 0
        outcome = found.check()
        assert outcome.passed
        assert len(found.file.path.read_bytes()) == size
        folder = found.file.path.parent
    assert not folder.exists()
    assert outcome.checksum != checked(work, seed=SEED + 1).checksum


@on_a_device
def test_the_record_says_how_the_cache_was_passed_by(monkeypatch):
    monkeypatch.delenv("TMPDIR")
    kind = file_system(Path("/var/tmp"))  # noqa: S108
    with prepared(STORAGE) as found:
        assert found.facts.algorithm == f"write and fsync on {kind}"
    work = {**STORAGE, "direction": "read"}
    with prepared(work) as found:  # the second where the kernel is busy with the file
        assert found.facts.algorithm in (f"O_DIRECT on {kind}", f"posix_fadvise DONTNEED on {kind}")
    monkeypatch.delattr(os, "O_DIRECT")
    with prepared(work) as found:
        assert found.facts.algorithm == f"posix_fadvise DONTNEED on {kind}"
        found.execute(1)
        assert found.check().passed
    monkeypatch.setattr(os, "posix_fadvise", lambda *_: None)
    with pytest.raises(Unsupported, match="neither"), prepared(work):
        pass


@on_a_device
def test_direct_reads_that_fill_the_cache_are_not_direct(monkeypatch):
    """As where a file system takes the flag and reads through its cache all the same."""
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setattr(os, "O_DIRECT", os.O_CLOEXEC)
    with prepared({**STORAGE, "direction": "read"}) as found:
        assert found.facts.algorithm.startswith("posix_fadvise DONTNEED")


@on_a_device
def test_a_block_that_direct_reads_cannot_take_is_read_otherwise(monkeypatch):
    monkeypatch.delenv("TMPDIR")
    with prepared({**STORAGE, "direction": "read", "block_bytes": 1000}) as found:
        assert found.facts.algorithm.startswith("posix_fadvise DONTNEED")
        found.execute(1)
        assert found.check().passed


def test_a_changed_file_is_noticed(monkeypatch):
    monkeypatch.delenv("TMPDIR")
    with prepared(STORAGE) as found:
        found.execute(1)
        found.file.path.write_bytes(b"x" * 100_000)
        assert not found.check().passed


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_a_file_in_memory_measures_no_device(monkeypatch, kind):
    monkeypatch.setattr(storage, "file_system", lambda _: kind)
    with pytest.raises(Unsupported, match="in memory"), prepared(STORAGE):
        pass


def test_a_file_needs_room(monkeypatch):
    monkeypatch.setattr(storage, "file_system", lambda _: "ext4")
    with pytest.raises(Unsupported, match="twice that space"), prepared({**STORAGE, "file_bytes": 2**40}):
        pass


def test_a_folder_that_is_not_there_is_unsupported(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(Unsupported, match="No such file"), prepared(STORAGE):
        pass


@on_a_device
@pytest.mark.parametrize("work", [GEMM, array("triad"), STRIDED, FFT, STORAGE], ids=identify)
def test_a_record_of_each_kind_is_whole(monkeypatch, work):
    monkeypatch.delenv("TMPDIR")
    metric = "flops_per_second" if work["kind"] in ("gemm", "fft") else "bytes_per_second"
    result = measure_repeat(task(benchmark(work, metric)))
    assert result.status == "ok", result.failure
    measurement = result.measurement
    assert measurement.timer == "host_clock"
    assert measurement.correctness.passed
    assert measurement.threads is not MISSING
    assert measurement.telemetry.load_average is not MISSING
    assert len(measurement.samples_ns) >= 3
    assert (
        sum(measurement.samples_ns) / 1e9
        <= result.finished_monotonic_seconds - result.started_monotonic_seconds
    )
    assert (
        result.benchmark.compute_figure(measurement.values, inner_iterations=measurement.inner_iterations) > 0
    )
    assert BenchmarkResultReport.model_validate_json(result.to_json()) == result
