"""The kernels, compiled by both compilers and run on this processor: what they compute and touch."""

import mmap
import shutil
import subprocess

import numpy as np
import pytest

from service.protocol.work.memory import StreamWork, StridedReadWork
from service.worker.cuda import compiler, numbers
from tests.worker.cuda.host_kernels import KERNELS, counted, run

SEED = 0x1234_5678_9ABC_DEF1
BLOCKS, THREADS = 3, 256
MAP_NORESERVE = 0x4000  # of Linux; Python has no name for it before 3.13
# Some of each: whole tiles, a part of one, fewer elements than threads.
VECTORS = [1, 700, 3 * 4 * 256, 3 * 4 * 256 + 1, 10_007]

on_this_processor = pytest.mark.skipif(not shutil.which("g++"), reason="no g++ to run the kernels with")


@pytest.mark.parametrize("file", ["stream.cu", "random.cu"])
@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc")
def test_a_file_compiles_on_its_own(file, tmp_path):
    """A sample: `make gpu-kernels` compiles every file by nvcc, too."""
    command = ["nvcc", "-std=c++17", "-arch=sm_90", "-cubin", "-Werror", "all-warnings"]
    command += ["-o", str(tmp_path / "out.cubin"), str(KERNELS / file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.cubin").read_bytes().startswith(b"\x7fELF")


def test_a_file_is_compiled_once_for_an_architecture():
    first = compiler.compile_cubin("empty.cu", 9, 0)
    assert compiler.compile_cubin("empty.cu", 9, 0) is first
    assert compiler.compile_cubin("empty.cu", 8, 0) != first


def test_an_architecture_that_the_compiler_does_not_know_is_unsupported():
    with pytest.raises(compiler.Unsupported, match=r"empty.cu for sm_123: .+"):
        compiler.compile_cubin("empty.cu", 12, 3)


@on_this_processor
@pytest.mark.parametrize("vectors", VECTORS)
def test_read_sums_every_word_and_touches_each_once(vectors):
    array = np.random.default_rng(1).integers(0, 2**32, 4 * vectors, np.uint32)
    sums = np.full(BLOCKS * THREADS, 0xFFFFFFFF, np.uint32)
    read, written = counted("stream.cu", "stream_read", BLOCKS, THREADS, array, vectors, sums)
    assert sums.sum(dtype=np.uint32) == array.sum(dtype=np.uint32)
    assert read == (
        StreamWork(kind="stream", pattern="read", array_bytes=array.nbytes).count_work().moved_bytes,
        0,
    )
    assert written == (0, sums.nbytes)


@on_this_processor
@pytest.mark.parametrize("vectors", VECTORS)
def test_write_leaves_the_expected_words_and_reads_nothing(vectors):
    array = np.zeros(4 * vectors, np.uint32)
    (touched,) = counted("stream.cu", "stream_write", BLOCKS, THREADS, array, vectors, SEED)
    assert np.array_equal(array, numbers.generate_written_words(SEED, np.arange(array.size)))
    assert touched == (
        0,
        StreamWork(kind="stream", pattern="write", array_bytes=array.nbytes).count_work().moved_bytes,
    )


@on_this_processor
@pytest.mark.parametrize("vectors", VECTORS)
def test_copy_reads_one_array_and_writes_the_other(vectors):
    source = np.random.default_rng(2).integers(0, 2**32, 4 * vectors, np.uint32)
    target = np.zeros_like(source)
    touched = counted("stream.cu", "stream_copy", BLOCKS, THREADS, target, source, vectors)
    assert np.array_equal(target, source)
    assert touched == [(0, source.nbytes), (source.nbytes, 0)]
    amount = StreamWork(kind="stream", pattern="copy", array_bytes=source.nbytes).count_work()
    assert sum(map(sum, touched)) == amount.moved_bytes


@on_this_processor
@pytest.mark.parametrize("vectors", VECTORS)
def test_triad_adds_three_times_an_array_to_another(vectors):
    b, c = (np.random.default_rng(seed).normal(size=4 * vectors).astype(np.float32) for seed in (3, 4))
    a = np.zeros_like(b)
    touched = counted("stream.cu", "stream_triad", BLOCKS, THREADS, a, b, c, vectors)
    assert np.array_equal(a, b + np.float32(3) * c)
    assert touched == [(0, a.nbytes), (a.nbytes, 0), (a.nbytes, 0)]
    amount = StreamWork(kind="stream", pattern="triad", array_bytes=a.nbytes).count_work()
    assert sum(map(sum, touched)) == amount.moved_bytes


@on_this_processor
@pytest.mark.parametrize("count", [1, 500, 3 * 8 * 256, 3 * 8 * 256 + 5, 20_011])
def test_strided_read_touches_one_word_of_each_stride(count):
    stride = 7
    array = np.random.default_rng(5).integers(0, 2**32, count * stride, np.uint32)
    sums = np.full(BLOCKS * THREADS, 0xFFFFFFFF, np.uint32)
    read, _ = counted("strided.cu", "strided_read", BLOCKS, THREADS, array, count, stride, sums)
    assert sums.sum(dtype=np.uint32) == array[::stride].sum(dtype=np.uint32)
    work = StridedReadWork(kind="strided_read", stride_bytes=4 * stride, array_bytes=array.nbytes)
    assert read == (work.count_work().moved_bytes, 0)


@on_this_processor
def test_checksums_are_those_of_numpy():
    array = np.random.default_rng(6).integers(0, 2**22, 50_001).astype(np.float32)
    sums = np.zeros(BLOCKS * THREADS, np.uint64)
    run("checksum.cu", "weighted_sum", BLOCKS, THREADS, array, array.size, sums)
    weights = 2 * np.arange(array.size, dtype=np.uint64) + np.uint64(1)
    assert sums.sum(dtype=np.uint64) == (array.astype(np.uint64) * weights).sum(dtype=np.uint64)
    swapped = array.copy()
    swapped[[3, 4]] = swapped[[4, 3]]
    other = np.zeros_like(sums)
    run("checksum.cu", "weighted_sum", BLOCKS, THREADS, swapped, array.size, other)
    assert other.sum(dtype=np.uint64) != sums.sum(dtype=np.uint64)
    run("checksum.cu", "sum_words", BLOCKS, THREADS, array, array.size // 3, 3, sums)
    assert sums.sum() == array.view(np.uint32)[: array.size // 3 * 3 : 3].sum(dtype=np.uint64)


@on_this_processor
def test_spoil_overwrites_everything():
    array = np.zeros(4 * 9_999, np.uint32)
    (touched,) = counted("flush.cu", "spoil", BLOCKS, THREADS, array, 9_999, 0x1_5A5A5A5A)
    assert set(array.tolist()) == {0x5A5A5A5A}
    assert touched == (0, array.nbytes)


@on_this_processor
def test_a_cache_is_emptied_by_reads_alone():
    """A line that was written would go to memory during what is timed next."""
    array, never = np.full(4 * 9_999, 0x5A5A5A5A, np.uint32), np.ones(4, np.uint32)
    assert counted("flush.cu", "flush", BLOCKS, THREADS, array, 9_999, never) == [(array.nbytes, 0), (0, 0)]
    # A word of 0 would be stored: without a store that can happen, a compiler leaves out the reads.
    array[-4:] = 0
    run("flush.cu", "flush", BLOCKS, THREADS, array, 9_999, never)
    assert never[0] == 0


FORMATS = {
    "fp64": np.float64,
    "fp32": np.float32,
    "bf16": np.uint16,
    "fp16": np.float16,
    "fp8_e4m3": np.uint8,
    "int8": np.int8,
}


def _value_of_code(code):
    """A number of fp8 e4m3 by its definition: sign, exponent with bias 7, three bits."""
    sign, exponent, mantissa = -1 if code >> 7 else 1, code >> 3 & 15, code & 7
    return sign * (mantissa / 8 * 2**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7))


@on_this_processor
@pytest.mark.parametrize("dtype", FORMATS)
def test_random_numbers_of_every_format_are_those_of_numpy(dtype):
    count = 200_003
    held = np.zeros(count, FORMATS[dtype])
    run("random.cu", numbers.FILLS[dtype], BLOCKS, THREADS, held, count, SEED)
    found = held.astype(np.float64)
    if dtype == "bf16":
        found = numbers.decode_bf16(held).astype(np.float64)
    if dtype == "fp8_e4m3":
        found = np.array([_value_of_code(code) for code in range(256)])[held]
    places = np.arange(count)
    assert np.array_equal(found, numbers.generate_normal(dtype, SEED, places))
    # Any of them without the others.
    assert np.array_equal(numbers.generate_normal(dtype, SEED, places[[7, 199_999]]), found[[7, 199_999]])
    scale = 18.48 if dtype == "int8" else 1.0
    assert abs(found.mean()) < 0.01 * scale
    assert found.std() == pytest.approx(scale, rel=0.01)


@on_this_processor
def test_rounding_is_that_of_ieee_754():
    """Half precision of NumPy is its own; a value is nearest among all codes of fp8 by search."""
    places = np.arange(30_000)
    single = numbers.generate_normal("fp32", SEED, places).astype(np.float32)
    assert np.array_equal(
        numbers.generate_normal("fp16", SEED, places), single.astype(np.float16).astype(np.float64)
    )
    codes = np.array([_value_of_code(code) for code in range(256) if code & 127 != 127])
    distance = np.abs(codes[None, :] - single[:2000, None].astype(np.float64))
    chosen = np.abs(numbers.generate_normal("fp8_e4m3", SEED, places[:2000]) - single[:2000])
    assert np.array_equal(chosen, distance.min(axis=1))
    assert numbers.round_to_fp8_e4m3(np.array([1.0625, 1.1875, -0.0029296875])).tolist() == [
        1.0,
        1.25,
        -0.00390625,
    ]


@on_this_processor
def test_stream_arrays_hold_whole_numbers():
    held = np.zeros(100_000, np.float32)
    run("random.cu", "fill_whole", BLOCKS, THREADS, held, held.size, SEED)
    assert np.array_equal(held, numbers.generate_integers(SEED, np.arange(held.size)))
    assert held.max() < 2**22
    assert np.array_equal(held, np.round(held))
    other = np.zeros_like(held)
    run("random.cu", "fill_whole", BLOCKS, THREADS, other, held.size, numbers.derive_seed(SEED, 1))
    assert np.count_nonzero(held == other) < 10


def test_random_bits_are_those_of_the_paper():
    """First outputs of splitmix64 from the state 1234567, as published with its code."""
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert numbers.generate_bits(1234567, np.arange(3)).tolist() == known


@on_this_processor
def test_places_beyond_four_gibibytes_are_reached():
    """An array of 12 GiB of which 13 pages are ever touched."""
    stride, count = 2**28, 13
    size = 4 * (stride * (count - 1) + 1024)
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE) as pages:
        array = np.frombuffer(pages, np.uint32)
        array[::stride] = 10 ** np.arange(count) % 2**32
        sums = np.zeros(THREADS, np.uint32)
        run("strided.cu", "strided_read", 1, THREADS, array, count, stride, sums)
        assert sums[:count].tolist() == array[::stride].tolist()
        del array
