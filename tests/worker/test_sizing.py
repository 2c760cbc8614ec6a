"""The size of a benchmark where memory is short: the largest that fits, or a reason."""

from contextlib import contextmanager

import pytest
from pydantic import MISSING

from service.protocol.canonical import compute_digest
from service.protocol.suites import LEAST_FLOPS, shipped_suites
from service.worker.benchmark import MeasurementFacts, NoRoom, Unsupported
from service.worker.interrupt import InterruptSignal
from service.worker.measure import MeasuredDevice, measure_repeat
from service.worker.process import EndedProcess
from service.worker.running import SuiteRun, run_suite
from service.worker.sizing import prepare_largest
from service.worker.status import WorkerStatus
from service.worker.task import RepeatTask
from tests.worker.machines import FakeWatch, benchmark, fake_device, task
from tests.worker.records import measured

STREAM = {"kind": "stream", "pattern": "copy", "array_bytes": 2**30}
SUITE = shipped_suites()["gpu-deep"]


class Prepared:
    """What a device with so many free bytes has room for, at half a byte of data for each byte of cache."""

    def __init__(self, size):
        self.facts = MeasurementFacts(
            library="fake", data="random", timer="nvml", working_set_bytes=size.work.count_work().moved_bytes
        )

    def read(self):
        return [1.0]


def room(free, uncached=0, tried=None):
    """A preparer whose device has so much free memory."""

    @contextmanager
    def prepare(size, _seed, _index):
        if tried is not None:
            tried.append(size.work.array_bytes)
        needed = size.work.count_work().moved_bytes
        if needed > free:
            raise NoRoom(f"needs {needed} bytes, {free} are free", uncached)
        yield Prepared(size)

    return prepare


def sized(free, uncached=0, tried=None):
    asked = benchmark(STREAM, "bytes_per_second")
    with prepare_largest(room(free, uncached, tried), asked.list_sizes(), 7, 0) as found:
        return found


def test_the_full_size_says_nothing():
    found = sized(2**31)
    assert (found.benchmark.work.array_bytes, found.gaps) == (2**30, ())


def test_sizes_are_halved_until_one_fits_and_the_record_says_so():
    tried = []
    found = sized(2**29, tried=tried)
    assert tried == [2**30, 2**29, 2**28]
    assert found.benchmark.work.array_bytes == 2**28
    assert found.benchmark.work.count_work().moved_bytes == 2**29
    (gap,) = found.gaps
    assert (gap.pointer, gap.code) == ("/benchmark/work", "reduced-size")
    assert gap.detail == "needs 2147483648 bytes, 536870912 are free: measured with array_bytes 268435456"


def test_what_the_cache_would_speed_up_is_unsupported():
    assert sized(2**29, uncached=2**29).benchmark.work.array_bytes == 2**28
    with pytest.raises(Unsupported, match=r"536870912 bytes fit, of 536870913 that no cache holds"):
        sized(2**29, uncached=2**29 + 1)


def test_without_room_for_the_smallest_the_first_refusal_counts():
    with pytest.raises(Unsupported, match=r"^needs 2147483648 bytes, 1000 are free$"):
        sized(1000)


def test_a_record_has_the_work_that_was_done():
    asked = SUITE.find_benchmark("hbm.copy")
    device = MeasuredDevice({"stream": room(2**32)}, lambda _: FakeWatch())
    result = measure_repeat(task(asked), find=lambda _: device)
    assert result.status == "ok"
    assert asked.windows
    assert (result.benchmark.name, result.benchmark.windows) == (asked.name, [])
    assert (asked.work.array_bytes, result.benchmark.work.array_bytes) == (2**32, 2**31)
    assert [gap.code for gap in result.gaps] == ["reduced-size"]
    assert compute_digest(result.benchmark.work) in asked.map_sizes()


def test_devices_that_measure_together_keep_to_the_full_size():
    class Together:
        def wait_until_ready(self, _):
            pass

    device = fake_device(room(2**29), kind="stream")(None)
    result = measure_repeat(task(benchmark(STREAM, "bytes")), find=lambda _: device, together=Together())
    assert result.status == "unsupported"
    assert result.measurement is MISSING


class Half:
    """Processes that have room for a size, and not for a larger one."""

    is_stuck = False

    def __init__(self, largest):
        self.largest, self.asked = largest, []

    def run(self, _words, given, _interrupt, **_limits):
        asked = RepeatTask.model_validate_json(given)
        self.asked.append(asked.benchmark.work.array_bytes)
        work = asked.benchmark.work.model_copy(update={"array_bytes": min(self.asked[-1], self.largest)})
        windows = asked.benchmark.windows if work == asked.benchmark.work else []
        benchmark = asked.benchmark.model_copy(update={"work": work, "windows": windows})
        record = measured(asked.model_copy(update={"benchmark": benchmark}))
        return EndedProcess(record.to_json(), "", 0)


@pytest.fixture
def ran():
    """The records of the repeats of a copy, and the sizes that its processes were asked for."""

    def run(largest):
        suite = SUITE.model_copy(update={"benchmarks": [SUITE.find_benchmark("hbm.copy")]})
        children, kept = Half(largest), []
        made = SuiteRun(
            run_id="run-1", suite=suite, seed=7, fencing_token=1, attempt=1, nonce="ab" * 16,
            node_id="node-1", boot_id_sha256="0" * 64, inventory_sha256="0" * 64, accelerator_index=0,
            accelerators=(0,),
        )  # fmt: skip
        run_suite(made, children, InterruptSignal(), WorkerStatus(), kept.append)
        return kept, children.asked

    return run


def test_the_next_repeat_begins_with_the_size_of_the_one_before(ran):
    kept, asked = ran(2**31)
    assert asked == [2**32, 2**31, 2**31]
    assert [one.status for one in kept] == ["ok"] * 3
    assert {one.benchmark.work.array_bytes for one in kept} == {2**31}


def test_a_size_that_no_halving_leads_to_is_a_wrong_record(ran):
    kept, asked = ran(2**31 + 2**30)
    assert asked == [2**32] * 3
    assert [one.failure.reason for one in kept] == ["WRONG_RECORD"] * 3


class TestSuites:
    def test_what_bounds_a_smaller_size_is_what_bounded_the_full_one(self):
        reduced = 0
        for one in SUITE.benchmarks:
            for size in list(one.list_sizes())[1:]:
                reduced += 1
                work = size.work
                assert type(work).model_validate(work.model_dump()) == work
                assert work.is_memory_bound(one.metric) == one.work.is_memory_bound(one.metric)
                if work.kernel_bound == "arithmetic" and not work.is_memory_bound(one.metric):
                    assert work.count_work().flops >= LEAST_FLOPS, one.name
        assert reduced > 100

    def test_a_message_and_a_transform_have_one_size(self):
        for name in ("collective.all_reduce_2x1gib", "peer.latency", "fft.fp32", "cache.read", "power.gemm"):
            assert len(list(SUITE.find_benchmark(name).list_sizes())) == 1, name

    def test_a_product_becomes_shorter_on_its_longest_side(self):
        sizes = [
            (size.work.m, size.work.n, size.work.k)
            for size in SUITE.find_benchmark("gemm_shape.bf16_512x14336x4096").list_sizes()
        ]
        assert sizes == [(512, 14336, 4096), (512, 7168, 4096)]

    def test_experts_become_fewer_before_they_become_smaller(self):
        grouped = SUITE.find_benchmark("gemm_grouped.bf16_64x4").list_sizes()
        sizes = [(size.work.groups, size.work.m, size.work.n, size.work.k) for size in grouped]
        assert sizes[:5] == [*((groups, 4, 4096, 2048) for groups in (64, 32, 16, 8)), (8, 4, 2048, 2048)]

    def test_sides_of_scaled_products_stay_multiples_of_their_blocks(self):
        scaled = SUITE.find_benchmark("gemm_scaled.nvfp4_m16")
        work = scaled.work.model_copy(update={"n": 17 * 128})
        sizes = [size.work.n for size in scaled.model_copy(update={"work": work}).list_sizes()]
        assert set(sizes) == {17 * 128}
