"""Reads of the shared memory of a multiprocessor, by an own kernel."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import BankConflictWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import THREADS, CudaDevice, run_kernel
from service.worker.cuda.stream import SPOIL

TURNED, UNROLL, BANKS = 4096, 16, 32
"""Constants of ``bank_conflict.cu``: words before a turn wraps, reads of a turn, words between them."""
WORDS = TURNED + UNROLL * BANKS

WordArray = np.ndarray[Any, np.dtype[np.uint32]]


class SharedReads:
    """Each block fills its memory from the same table; each thread sums the words that it reads."""

    def __init__(self, device: CudaDevice, work: BankConflictWork, seed: int) -> None:
        self._device, self._work = device, work
        self._words = numbers.generate_bits(numbers.derive_seed(seed, 0), np.arange(WORDS)).astype(np.uint32)
        table = device.allocate(self._words.nbytes)
        device.to_device(table, self._words)
        self._sums = device.allocate(4 * work.threads)
        kernel = device.load_kernel("bank_conflict.cu", "bank_conflict")
        blocks = -(-work.threads // THREADS)
        arguments = (table, self._sums, work.threads, work.reads, work.stride_words)
        self._launch = device.build_launch(kernel, blocks, *arguments)
        self.facts = MeasurementFacts(
            library="own kernel bank_conflict",
            algorithm=f"{blocks} blocks of {THREADS} threads, {UNROLL} reads at a time",
            data="random words",
            timer="cuda_event",
            working_set_bytes=4 * WORDS,
            flush_bytes=device.flush_bytes,
            software=device.list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` launches after a flush."""
        return self._device.time_launches(self._launch, iterations)

    def check(self) -> CorrectnessCheck:
        """Spoils the sums, runs the kernel once, and compares the sum of every thread."""
        found = np.empty(self._work.threads, np.uint32)
        run_kernel(self._device, ("flush.cu", "spoil"), self._sums, found.nbytes // 16, SPOIL)
        self._launch()
        self._device.to_host(found, self._sums)
        thread = np.arange(self._work.threads)
        first = (thread % 32 * self._work.stride_words + thread // 32) % TURNED
        wrong = int(np.count_nonzero(found != _compute_thread_sums(self._words, self._work.reads)[first]))
        return CorrectnessCheck(
            method="sum of every thread against NumPy",
            largest_error=float(wrong),
            tolerance=0.0,
            passed=not wrong,
        )


def _compute_thread_sums(words: WordArray, reads: int) -> WordArray:
    """Returns the sums of the words that a thread reads from each start below ``TURNED``, modulo 2^32."""
    turns, rest = divmod(reads, UNROLL)
    of_turn = sum(
        (words[j * BANKS : j * BANKS + TURNED] for j in range(UNROLL)), start=np.zeros(TURNED, np.uint32)
    )
    whole = _sum_windows(of_turn, turns)
    return np.asarray(whole + np.roll(_sum_windows(words[:TURNED], rest), -turns), np.uint32)


def _sum_windows(values: WordArray, count: int) -> WordArray:
    """Returns the sums of ``count`` neighbours from each position, wrapping around, modulo 2^32."""
    rounds, rest = divmod(count, len(values))
    twice = np.concatenate([np.zeros(1, np.uint32), values, values]).cumsum(dtype=np.uint32)
    part = twice[rest : rest + len(values)] - twice[: len(values)]
    of_rounds = rounds * int(values.sum(dtype=np.uint32)) % 2**32
    return np.asarray(part + np.uint32(of_rounds), np.uint32)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares a table of random words; raises :class:`Unsupported` if the sums do not fit."""
    if not isinstance(benchmark.work, BankConflictWork):
        raise Unsupported(f"{benchmark.work.kind} is not a bank conflict benchmark")
    with devices.open_device(index) as device:
        yield SharedReads(device, benchmark.work, seed)
