"""How much work each kind is, against loops that count."""

import math
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from service.protocol.suites import Benchmark
from service.protocol.work import WORK_KINDS, BenchmarkWork
from service.protocol.work.base import Work
from service.worker import cpu, cuda

sides = st.integers(1, 7)
ADAPTER = TypeAdapter(BenchmarkWork)


def amount(**work):
    return ADAPTER.validate_python(work).count_work()


class Counted:
    """A number that counts what is done with it."""

    operations = 0

    def __add__(self, other):
        Counted.operations += 1
        return self

    __mul__ = __add__


@given(sides, sides, sides)
def test_a_product_is_a_multiplication_and_an_addition_for_each_term(m, n, k):
    """Of the loop that adds each term to what is there, as BLAS does (C = A B + C)."""
    Counted.operations, one = 0, Counted()
    for _ in range(m):
        for _ in range(n):
            entry = one
            for _ in range(k):
                entry = entry + one * one
    assert amount(kind="gemm", dtype="fp32", m=m, n=n, k=k).flops == Counted.operations


def moves(pattern, a, b, c, place):
    """One turn of the loop of a pattern, element by element."""
    match pattern:
        case "read":
            b.read(place)
        case "write":
            a.write(place)
        case "copy":
            a.write(b.read(place))
        case "triad":
            a.write(b.read(place) + 3 * c.read(place))


@pytest.mark.parametrize("pattern", ["read", "write", "copy", "triad"])
def test_a_pattern_moves_each_element_that_its_loop_names(pattern):
    class Array:
        moved = 0

        def read(self, _):
            Array.moved += 8
            return 1

        write = read

    for place in range(25):
        moves(pattern, Array(), Array(), Array(), place)
    assert amount(kind="stream", pattern=pattern, array_bytes=200).moved_bytes == Array.moved


@given(st.integers(1, 50), st.integers(4, 5000))
def test_a_strided_read_uses_one_word_for_each_whole_stride(words, array_bytes):
    stride = 4 * words
    used = sum(4 for start in range(0, array_bytes, stride) if start + stride <= array_bytes)
    assert amount(kind="strided_read", stride_bytes=stride, array_bytes=array_bytes).moved_bytes == used


@pytest.mark.parametrize(("direction", "ways"), [("host_to_device", 1), ("device_to_host", 1), ("both", 2)])
def test_a_link_carries_its_payload_each_way(direction, ways):
    work = {"kind": "host_link", "memory": "pinned", "transfer_bytes": 4096}
    assert amount(direction=direction, **work).moved_bytes == ways * 4096


def operations_of_radix_2(points):
    """Real operations of the decimation in time: 10 a butterfly (a complex product and two sums)."""
    if points == 1:
        return 0
    return 2 * operations_of_radix_2(points // 2) + 10 * (points // 2)


@pytest.mark.parametrize("exponent", range(1, 15))
def test_a_transform_counts_what_radix_2_does(exponent):
    points = 2**exponent
    found = amount(kind="fft", dtype="fp32", points=points, batch=3).flops
    assert found == 3 * operations_of_radix_2(points)


def test_a_transform_of_another_length_follows_the_same_line():
    assert amount(kind="fft", dtype="fp64", points=1000, batch=1).flops == round(5000 * math.log2(1000))


def test_storage_moves_its_file_and_launches_are_parts():
    storage = {"kind": "storage", "direction": "read", "file_bytes": 10**6, "block_bytes": 4096}
    assert amount(**storage).moved_bytes == 10**6
    assert amount(kind="launch_latency", method="graph", launches=250).parts == 250


@pytest.mark.parametrize(
    "work",
    [
        {"kind": "power", "load": "idle", "window_seconds": 10.0, "settle_seconds": 5.0},
        {"kind": "context_memory", "with_library": True},
    ],
)
def test_of_what_is_read_nothing_is_counted(work):
    found = amount(**work)
    assert (found.flops, found.moved_bytes) == (0, 0)


def benchmark(metric, **work):
    return Benchmark.model_validate(
        {"name": "x", "work": work, "metric": metric, "direction": "higher", "formula": "x"}
    )


def test_a_figure_is_work_over_the_median_time():
    """Ten products of 2 x 2 x 2 in a sample, 16 operations each; 2 s is the middle of the samples."""
    gemm = benchmark("flops_per_second", kind="gemm", dtype="fp64", m=2, n=2, k=2)
    assert gemm.compute_figure([1.0, 2.0, 100.0], inner_iterations=10) == 16 * 10 / 2.0
    copy = benchmark("bytes_per_second", kind="stream", pattern="copy", array_bytes=1000)
    assert copy.compute_figure([0.5], inner_iterations=4) == 2 * 1000 * 4 / 0.5


def test_a_latency_is_that_of_one_launch():
    latency = benchmark("seconds", kind="launch_latency", method="stream", launches=100)
    assert latency.compute_figure([0.004], inner_iterations=20) == pytest.approx(2e-6)


@pytest.mark.parametrize(("metric", "load"), [("watts", "idle"), ("bytes", "context")])
def test_a_reading_is_the_figure(metric, load):
    power = benchmark(metric, kind="power", load=load, window_seconds=10.0, settle_seconds=0.0)
    assert power.compute_figure([70.0, 72.0, 90.0], inner_iterations=1) == 72.0


@pytest.mark.parametrize(
    "work",
    [
        {"kind": "shell", "command": "true"},
        {"kind": "gemm", "dtype": "fp64", "m": 0, "n": 1, "k": 1},
        {"kind": "gemm", "dtype": "fp64", "m": 131_073, "n": 1, "k": 1},
        {"kind": "gemm", "dtype": "fp128", "m": 1, "n": 1, "k": 1},
        {"kind": "gemm", "dtype": "fp64", "m": 1, "n": 1, "k": 1, "library": "mine.so"},
        {"kind": "strided_read", "stride_bytes": 6, "array_bytes": 4096},
        {"kind": "stream", "pattern": "copy", "array_bytes": 2**41},
        {
            "kind": "storage",
            "direction": "read",
            "file_bytes": 4096,
            "block_bytes": 512,
            "path": "/etc/passwd",
        },
    ],
)
def test_a_suite_can_ask_for_nothing_else(work):
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(work)


@pytest.mark.parametrize("kind", WORK_KINDS.values(), ids=WORK_KINDS)
def test_a_kind_counts_its_own_work(kind):
    assert kind.count_work is not Work.count_work


def test_a_kind_is_measured_by_the_module_of_its_name():
    assert cuda.PREPARE.keys() == WORK_KINDS.keys()
    assert all(callable(import_module(f"service.worker.cuda.{kind}").prepare) for kind in cuda.PREPARE)
    assert all(callable(import_module(f"service.worker.cpu.{kind}").prepare) for kind in cpu.PREPARE)
