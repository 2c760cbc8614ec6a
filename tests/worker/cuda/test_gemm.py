"""Matrix products: which algorithm is taken, which matrices in turn, and what passes the check."""

import importlib

import pytest

from service.protocol.suites import BenchmarkSampling
from service.protocol.work.arithmetic import GemmWork
from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, bindings, cublaslt, gemm, power
from service.worker.sampling import warm_up
from tests.worker.cuda.fake_cublaslt import CUBLAS, FakeLt, _tf32
from tests.worker.cuda.fake_nvml import process
from tests.worker.cuda.test_cuda import SEED, asked

MIB = 2**20
DTYPES = ["fp64", "fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "int8"]


@pytest.fixture
def lt(driver, monkeypatch):
    """A cuBLASLt whose products take a known time on the clock of the driver's events: 70 us is not small."""
    monkeypatch.setattr(gemm, "SMALL_NS", 50_000)
    monkeypatch.setattr(gemm, "MOST_SETS", 64)
    fake = FakeLt(driver.advance)
    modules = {"nvmath.bindings.cublasLt": fake, "nvmath.bindings.cublas": CUBLAS}
    monkeypatch.setattr(
        bindings, "import_module", lambda name: modules.get(name) or importlib.import_module(name)
    )
    yield fake
    assert fake.objects == {}


def product(dtype="bf16", m=96, n=80, k=64):
    work = {"dtype": dtype, "m": m, "n": n, "k": k}
    return PREPARE["gemm"](asked("gemm", metric="flops_per_second", **work), SEED, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(96, 80, 64), (1, 48, 128), (16, 16, 16)])
def test_every_format_is_computed_and_passes(lt, dtype, shape):
    with product(dtype, *shape) as timed:
        correctness = timed.check()
    assert correctness.passed, correctness
    if dtype == "int8":
        assert correctness.largest_error == 0
    assert timed.facts.accumulation == cublaslt.KINDS[dtype].accumulation
    assert timed.facts.library == "cublasLt 13.0.2"


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_mode_is_said_to_the_library(lt, dtype):
    with product(dtype):
        (operation,) = [found for found in lt.objects.values() if hasattr(found, "compute")]
        assert operation.set == {"TRANSA": 1, "TRANSB": 0} | (
            {"FAST_ACCUM": 1} if dtype == "fp8_e4m3" else {}
        )
        assert operation.compute.name == cublaslt.KINDS[dtype].compute


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_product_does_not_pass(lt, dtype):
    def transposed_tile(result):
        result[:16, :16] = result[:16, :16].T.copy()
        return result

    with product(dtype) as timed:
        lt.spoils = transposed_tile
        assert not timed.check().passed
        lt.spoils = lambda result: result * 1.1
        assert not timed.check().passed


def test_fp32_that_went_through_tf32_does_not_pass(lt):
    """As a variable of the environment can make it: only the error shows it."""
    with product("fp32", k=1024) as timed:
        real = lt._matrix
        lt._matrix = lambda *arguments: _tf32(real(*arguments))
        correctness = timed.check()
        assert not correctness.passed
        assert correctness.largest_error < gemm.compute_tolerance("tf32", 1024)


def test_a_product_that_is_not_written_does_not_pass(lt, monkeypatch):
    with product("bf16") as timed:
        monkeypatch.setattr(timed._matmul, "enqueue_product", lambda *_: None)
        correctness = timed.check()
    assert not correctness.passed
    assert correctness.largest_error == 1e30


def test_the_fastest_of_the_proposals_is_taken(lt):
    lt.microseconds, lt.states = [100, 10, 90, 70], [0, 7, 0, 0]
    with product() as timed:
        # The second has a state that says it cannot run.
        assert timed.facts.algorithm == "algorithm 30, tile 31, stages 36, split-k 32; fastest of 3 proposed"
        lt.products.clear()
        assert timed.execute(4) == 280_000
        assert [place for place, *_ in lt.products] == [3] * 4


def test_a_proposal_that_does_not_run_is_skipped_with_its_status(lt):
    lt.microseconds, lt.refused = [100, 10, 70], {1: "CUBLAS_STATUS_NOT_SUPPORTED (15)\nand more"}
    with product() as timed:
        assert timed.facts.algorithm.startswith("algorithm 20, ")
        assert timed.facts.algorithm.endswith(
            "fastest of 2 proposed, 1 refused (CUBLAS_STATUS_NOT_SUPPORTED (15))"
        )
        assert timed.check().passed


def test_a_product_whose_proposals_all_fail_is_unsupported(lt):
    lt.refused = dict.fromkeys(range(3), "CUBLAS_STATUS_EXECUTION_FAILED (13)")
    with (
        pytest.raises(Unsupported, match=r"^cuBLASLt refuses all 3 of its proposals: CUBLAS_STATUS_EXEC"),
        product(),
    ):
        pass


def test_a_device_that_fails_is_no_refused_proposal(lt, driver):
    lt.refused = {0: "CUBLAS_STATUS_EXECUTION_FAILED (13)"}
    driver.fact("sync", 719)
    with pytest.raises(bindings.CudaError, match="CUDA_ERROR_LAUNCH_FAILED"), product():
        pass
    driver.fact("sync", 0)


def test_the_bytes_of_a_library_are_read_whichever_proposal_runs(lt, fake_nvml):
    lt.refused = {0: "CUBLAS_STATUS_NOT_SUPPORTED (15)"}
    fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [process(used=600 * MIB)]
    fake_nvml.answers["nvmlDeviceGetMemoryInfo"] = lambda: type("Info", (), {"used": 0})
    work = asked("context_memory", metric="bytes", with_library=True)
    with PREPARE["context_memory"](work, SEED, 0) as reading:
        assert reading.read() == [600.0 * MIB]
    assert [place for place, *_ in lt.products] == [1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_passes_grows_with_the_square_root_of_the_depth(dtype):
    shallow, deep, deepest = (gemm.compute_tolerance(dtype, depth) for depth in (1024, 4096, 16384))
    assert deepest - deep == pytest.approx(2 * (deep - shallow))
    assert (deepest > deep) is (dtype != "int8")


def test_what_passes_is_beyond_what_is_expected_and_far_below_an_error():
    # 0.051 to 0.054 was computed for sums of 14 bits, and a hundredth of the depth left out is 0.4 off.
    assert 0.054 * 1.5 < gemm.compute_tolerance("fp8_e4m3", 16_384) < 0.4 / 3
    # Not so far that fp32 may go through TF32, which is 4e-4 off at least, at any depth of the suites.
    assert gemm.compute_tolerance("fp32", 65_536) < 4e-4


def test_the_search_ends_when_its_time_is_over(lt, monkeypatch):
    monkeypatch.setattr(gemm, "SEARCH_SECONDS", -1.0)
    with product() as timed:
        assert timed.facts.algorithm.startswith("algorithm 0,")
        assert timed.facts.algorithm.endswith("fastest of 1 proposed")


def test_matrices_take_turns_until_the_cache_holds_none_of_them(lt, monkeypatch):
    monkeypatch.setattr(gemm, "CACHE_SHARE", 5)
    with product("fp32", 256, 256, 256) as timed:
        # Three matrices of a quarter MiB, against 5 times a cache of 1 MiB.
        assert timed.facts.rotated_buffers == 7
        assert timed.facts.working_set_bytes == 21 * MIB // 4
        lt.products.clear()
        timed.execute(5)
        timed.execute(9)
        results = [result for *_, result in lt.products]
        assert len(set(results)) == 7
        assert results[:7] == results[7:]


def test_small_matrices_are_flushed_out_before_each_product(lt, driver):
    with product("fp32", 16, 16, 16) as timed:
        assert timed.facts.rotated_buffers == gemm.MOST_SETS
        driver.forget()
        assert timed.execute(3) == 210_000
        assert driver.journal == ["flush", "record", "record"] * 3


@pytest.fixture
def small(lt, driver, monkeypatch):
    """Products that are repeated on 22 sets, by a library whose work a graph can capture."""
    monkeypatch.setattr(gemm, "CACHE_SHARE", 1)
    lt.queue = driver.queue
    lt.microseconds = [40] * 3
    return lt


@pytest.mark.parametrize(("microseconds", "products"), [(49, 88), (30, 154), (1, 1034)])
def test_small_products_run_as_one_launch_of_a_graph(small, driver, microseconds, products):
    """Of 4 ms and of 1024 products at most, in whole turns of the sets."""
    small.microseconds = [microseconds] * 3
    with product("fp32", 64, 64, 64) as timed:
        assert (timed.facts.uses_graph, timed.facts.executions_per_launch) == (True, products)
        assert timed.facts.algorithm.endswith(f"fastest of 3 proposed; graph of {products}")
        assert timed.facts.rotated_buffers == 22
        driver.forget()
        small.products.clear()
        assert timed.execute(products) == products * 1000 * microseconds
        # Between the events is no launch but that of the graph.
        assert driver.journal == ["flush", "record", "graph", "record"]
        results = [result for *_, result in small.products]
        assert len(results) == products
        assert results[:22] == results[-22:]
        assert len(set(results)) == 22


def test_what_is_left_over_of_graphs_runs_one_by_one(small, driver):
    with product("fp32", 64, 64, 64) as timed:
        assert timed.facts.executions_per_launch == 110
        driver.forget()
        assert timed.execute(223) == 223 * 40_000
        assert driver.journal == ["flush", "record", "graph", "graph", "record"]
        assert timed.check().passed


def test_a_sample_of_small_products_has_whole_graphs(small):
    with product("fp32", 64, 64, 64) as timed:
        warm = warm_up(timed, BenchmarkSampling(warmup_seconds=0.0, least_seconds=20.0), timer_ns=500)
        # A sample has 10 ms and a quarter more: of 110 products, which take 4.4 ms, four times as many do.
        assert warm.inner_iterations == 440


def test_a_flush_comes_before_the_clock_of_every_sample(lt, driver, monkeypatch):
    monkeypatch.setattr(gemm, "CACHE_SHARE", 1)
    with product("fp32", 64, 64, 64) as timed:
        driver.forget()
        driver.takes("flush", 5000)
        assert timed.execute(2) == 140_000
        assert driver.journal == ["flush", "record", "record"]


def test_a_format_that_the_device_lacks_is_unsupported(lt, monkeypatch):
    monkeypatch.setitem(cublaslt.KINDS, "fp8_e4m3", cublaslt.KINDS["fp8_e4m3"]._replace(capability=(10, 0)))
    with pytest.raises(Unsupported, match=r"fp8_e4m3 needs compute capability 10\.0"), product("fp8_e4m3"):
        pass


def test_a_library_that_refuses_is_unsupported(lt):
    lt.states = []
    with pytest.raises(Unsupported, match="no algorithm"), product():
        pass
    lt.refuses = True
    with pytest.raises(Unsupported, match=r"^cuBLASLt: the library was not initialized$"), product():
        pass


def test_matrices_that_do_not_fit_are_unsupported(lt, driver):
    driver.memory(64 * MIB)
    with (
        pytest.raises(Unsupported, match=r"needs 51380224 bytes, \d+ are free"),
        product("fp32", 2048, 2048, 2048),
    ):
        pass


def test_the_memory_of_a_context_with_the_library_holds_the_library_open(lt, fake_nvml, driver):
    seen = []

    def processes():
        seen.extend(lt.objects.values())
        return [process(used=600 * MIB)]

    fake_nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = processes
    fake_nvml.answers["nvmlDeviceGetMemoryInfo"] = lambda: type("Info", (), {"used": 0})
    with PREPARE["context_memory"](
        asked("context_memory", metric="bytes", with_library=True), SEED, 0
    ) as reading:
        assert reading.read() == [600.0 * MIB]
    assert any(getattr(found, "kind", None) == "handle" for found in seen)
    assert len(lt.products) == 1


class Meter:
    """An energy counter that moves in steps of 100 ms on a clock that only sleeping moves."""

    def __init__(self, watts):
        self.now, self.watts = 0.0, watts

    def sleep(self, seconds):
        self.now += seconds

    def monotonic(self):
        return self.now

    def millijoules(self):
        return round(int(self.now * 10) * 100 * self.watts)


@pytest.fixture
def meter(fake_nvml, monkeypatch):
    meter = Meter(123)
    fake_nvml.answers["nvmlDeviceGetTotalEnergyConsumption"] = meter.millijoules
    monkeypatch.setattr(power, "time", meter)
    return meter


def read_power(load, **parameters):
    work = {"load": load, "window_seconds": 30.0, "settle_seconds": 5.0} | parameters
    return PREPARE["power"](asked("power", metric="watts", **work), SEED, 0)


def test_power_is_energy_over_time_between_steps_of_the_counter(meter):
    with read_power("idle") as reading:
        found = reading.read()
    assert found == pytest.approx([123.0] * 3, rel=1e-3)
    assert meter.now == pytest.approx(35.4, abs=0.5)


def test_idle_makes_no_context_and_context_makes_one(meter, driver):
    with read_power("idle") as reading:
        reading.read()
        assert driver.journal == []
    with read_power("context") as reading:
        assert driver.journal == ["retain"]
        assert reading.read() == pytest.approx([123.0] * 3, rel=1e-3)


@pytest.mark.parametrize(("load", "kernel"), [("gemm", None), ("stream", "stream_copy"), ("decode", None)])
def test_a_load_runs_while_the_energy_is_read(meter, driver, lt, monkeypatch, load, kernel):
    monkeypatch.setattr(power, "GEMM_SIDE", 64)
    monkeypatch.setattr(power, "DECODE_SIDE", 64)
    monkeypatch.setattr(power, "STREAM_BYTES", MIB)
    for each in ("stream_copy", "stream_copy_once"):
        driver.takes(each, 60_000)
    lt.microseconds = [60_000] * 3
    with read_power(load) as reading:
        driver.forget()
        lt.products.clear()
        assert reading.read() == pytest.approx([123.0] * 3, rel=1e-3)
        assert (kernel in driver.journal) if kernel else lt.products
        assert reading.facts.library.endswith(", 100% of the time")


def test_decoding_multiplies_few_rows_with_large_weights(meter, lt, monkeypatch):
    monkeypatch.setattr(power, "DECODE_SIDE", 64)
    with read_power("decode") as reading:
        assert reading.facts.math_mode == "CUBLAS_COMPUTE_32F"
        layouts = [found for found in lt.objects.values() if hasattr(found, "columns")]
        assert (layouts[-1].rows, layouts[-1].columns) == (64, power.DECODE_ROWS)


@pytest.mark.parametrize("overshoot", [0.0, 0.03])
def test_a_load_runs_for_its_share_of_the_time(monkeypatch, overshoot):
    """Also where sleeping takes longer than asked: what follows makes up for it."""
    meter = Meter(1)
    monkeypatch.setattr(power, "time", meter)
    busy = []

    def load():
        meter.now += 0.03 + 0.01 * (len(busy) % 3)
        busy.append(0.03 + 0.01 * (len(busy) % 3))

    paced = power.PacedLoad(load, 0.4)
    sleep = meter.sleep
    meter.sleep = lambda seconds: sleep(seconds + (overshoot if seconds else 0.0))
    for _ in range(300):
        paced()
    assert sum(busy) / meter.now == pytest.approx(0.4, abs=0.002)


def test_a_part_of_a_load_is_batches_that_are_as_much_shorter(meter, driver, monkeypatch):
    monkeypatch.setattr(power, "STREAM_BYTES", MIB)
    for each in ("stream_copy", "stream_copy_once"):
        driver.takes(each, 1000)
    batches = set()

    def one(paced):
        driver.forget()
        paced._load()
        batches.add((paced._share, driver.journal.count("stream_copy")))

    monkeypatch.setattr(power.PacedLoad, "__call__", one)
    with read_power("stream", duty=0.05) as reading:
        reading.read()
        assert reading.facts.library == "NVML energy counter; load own kernel stream_copy, 5% of the time"
    assert batches == {(0.05, 5)}


@pytest.mark.parametrize("load", ["idle", "context"])
def test_what_is_no_load_has_no_share_of_the_time(load):
    with pytest.raises(Unsupported, match="no load that can run"), read_power(load, duty=0.5):
        pass


def test_a_load_that_fails_is_a_failure(meter, driver, monkeypatch):
    monkeypatch.setattr(power, "STREAM_BYTES", MIB)
    for each in ("stream_copy", "stream_copy_once"):
        driver.takes(each, 60_000)
    with read_power("stream", settle_seconds=0.0) as reading:
        driver.fact("sync_event", 700)
        with pytest.raises(RuntimeError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            reading.read()
        driver.fact("sync_event", 0)


def test_a_device_without_an_energy_counter_is_unsupported(fake_nvml):
    with pytest.raises(Unsupported, match="energy counter: Not Supported"), read_power("idle"):
        pass


def test_a_counter_that_stands_still_or_goes_back_gives_no_figure(meter, fake_nvml):
    fake_nvml.answers["nvmlDeviceGetTotalEnergyConsumption"] = 7
    with read_power("idle") as reading, pytest.raises(Unsupported, match="did not move"):
        reading.read()
    back = iter([9, 9, 9, 3])
    fake_nvml.answers["nvmlDeviceGetTotalEnergyConsumption"] = lambda: next(back)
    with read_power("idle") as reading, pytest.raises(RuntimeError, match="went back from 9 to 3 mJ"):
        reading.read()


def test_the_bytes_of_a_product_are_those_of_its_matrices():
    amount = GemmWork(kind="gemm", dtype="fp8_e4m3", m=16, n=8192, k=4096).count_work()
    assert amount.moved_bytes == 16 * 4096 + 8192 * 4096 + 16 * 8192 * 2
    assert amount.flops == 2 * 16 * 8192 * 4096
