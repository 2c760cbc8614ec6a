"""Collectives of processes over shared memory, in a ring, for a node without accelerators."""

import json
import mmap
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
from pydantic import MISSING

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import CollectiveWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.host_timed import NUMPY, build_correctness, build_generator, compute_checksum
from service.worker.host import available_memory_bytes, usable_processors
from service.worker.process import build_module_command, get_pipe, kill_process
from service.worker.ring import BUFFERS, ELEMENT_BYTES, map_buffers

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")


class CollectiveRing:
    """The processes of one collective, timed from the start of the first to the end of the last."""

    def __init__(
        self, work: CollectiveWork, shared: np.ndarray, processes: list["subprocess.Popen[str]"]
    ) -> None:
        self._work, self._shared, self._processes = work, shared, processes
        self._turns = 0
        self.facts = MeasurementFacts(
            library=f"numpy {np.__version__} add and copyto of fp32, shared memory, pipes for tokens",
            algorithm=f"ring of {len(processes)} processes",
            accumulation=None if work.operation == "all_gather" else "fp32",
            data="uniform(0, 1)",
            timer="host_clock",
            working_set_bytes=shared.nbytes,
            threads=len(processes),
            software=(NUMPY,),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds of ``iterations`` collectives in sequence."""
        for process in self._processes:
            pipe = get_pipe(process.stdin)
            pipe.write(f"{iterations}\n")
            pipe.flush()
        self._turns += iterations
        begun, ended = zip(*(self._read_times(process) for process in self._processes), strict=True)
        return max(int(max(ended)) - int(min(begun)), 1)

    def _read_times(self, process: "subprocess.Popen[str]") -> tuple[int, int]:
        words = get_pipe(process.stdout).readline().split()
        if not words:
            raise RuntimeError(f"a process of the ring has ended with status {process.wait()}")
        return int(words[0]), int(words[1])

    def check(self) -> CorrectnessCheck:
        """Spoils every result, exchanges once, and compares every element with sums in float64.

        Sums of n numbers in any order are off by at most (n - 1) 2^-24 of them (Higham, Accuracy, 4.2).
        """
        ranks = len(self._processes)
        self._shared[:, 1:] = np.nan
        self.execute(1)
        left = self._shared[:, 2 - self._turns % 2].reshape(ranks, ranks, -1)
        sent = self._shared[:, 0].reshape(ranks, ranks, -1)
        match self._work.operation:
            case "all_gather":
                own = sent[np.arange(ranks), np.arange(ranks)]
                found, wanted = left, np.broadcast_to(own, left.shape)
            case "reduce_scatter":
                found = left[np.arange(ranks), np.arange(ranks)]
                wanted = sent.sum(axis=0, dtype=np.float64)
            case _:
                found = left
                wanted = np.broadcast_to(sent.sum(axis=0, dtype=np.float64), left.shape)
        error = float(np.max(np.abs(found - wanted)) / np.max(wanted))
        tolerance = 0.0 if self._work.operation == "all_gather" else (ranks - 1) * 2.0**-24
        return build_correctness("every element of every process", error, tolerance, compute_checksum(found))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares processes that wait for their first exchange; :class:`Unsupported` with too few processors."""
    del accelerator_index
    work = benchmark.get_work(CollectiveWork)
    _check_support(work)
    count = work.payload_bytes // ELEMENT_BYTES
    with ExitStack() as stack:
        memory = _create_memory(work, stack)
        shared = map_buffers(mmap.mmap(memory, 0), work.devices, count)
        shared[:, 0] = build_generator(benchmark, seed).random((work.devices, count), np.float32)
        shared[:, 1:] = np.nan
        yield CollectiveRing(work, shared, _start_processes(work, memory, stack))


def _check_support(work: CollectiveWork) -> None:
    usable, needed = len(usable_processors()), BUFFERS * work.devices * work.payload_bytes
    room = available_memory_bytes()
    if work.operation not in OPERATIONS or work.algorithm not in ("default", "ring"):
        raise Unsupported(f"{work.operation} by {work.algorithm} is not exchanged by processes")
    if work.processes is not MISSING:
        raise Unsupported("a process for each accelerator is that of a node with accelerators")
    if work.devices > usable:
        raise Unsupported(f"{work.devices} processes on {usable} processors")
    if work.payload_bytes % (ELEMENT_BYTES * work.devices):
        raise Unsupported(f"{work.payload_bytes} bytes cannot be divided among {work.devices} processes")
    if room is not None and 2 * needed > room:
        raise Unsupported(f"{needed} bytes of buffers, and {room} bytes of memory are available")


def _create_memory(work: CollectiveWork, stack: ExitStack) -> int:
    """Creates memory for the buffers of all processes, and returns its descriptor."""
    descriptor = os.memfd_create("ironlaw-ring")
    stack.callback(os.close, descriptor)
    os.ftruncate(descriptor, BUFFERS * work.devices * work.payload_bytes)
    return descriptor


def _start_processes(work: CollectiveWork, memory: int, stack: ExitStack) -> list["subprocess.Popen[str]"]:
    """Starts a process for each place; one that ends closes its pipes, so that its neighbours end too."""
    pipes = [os.pipe() for _ in range(work.devices)]
    processes = []
    count = work.payload_bytes // ELEMENT_BYTES
    for rank in range(work.devices):
        token_in, token_out = pipes[rank - 1][0], pipes[rank][1]
        place = [rank, work.devices, work.operation, count, memory, token_in, token_out]
        process = subprocess.Popen(  # noqa: S603  # fixed words and numbers
            [*build_module_command("service.worker.ring"), json.dumps(place)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            pass_fds=(memory, token_in, token_out),
        )
        stack.callback(kill_process, process)
        processes.append(process)
    for pipe in pipes:
        for descriptor in pipe:
            os.close(descriptor)
    return processes
