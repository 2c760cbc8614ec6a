"""Power of a device by the energy counter of NVML between its steps: idle, with a context, under a load."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import GemmWork
from service.protocol.work.device import PowerWork
from service.protocol.work.memory import StreamWork
from service.worker import nvml
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, TimedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda.device import CudaDevice
from service.worker.cuda.gemm import MatrixProduct
from service.worker.cuda.stream import StreamBandwidth

SHORTEST_WINDOW_SECONDS = 10.0
"""Least window: the counter moves in steps of up to 0.1 s (documentation of Zeus), 1% of it."""
STEP_SECONDS = 2.0
POLL_SECONDS = 0.002
BATCH_SECONDS = 0.1
GEMM_SIDE = 8192
STREAM_BYTES = 2**30
DECODE_ROWS, DECODE_SIDE = 16, 8192
"""Sequences of a batch, and the side of the weights that are streamed for them."""


class EnergyWindows:
    """Watts in consecutive windows, each of which begins and ends on a step of the counter."""

    def __init__(
        self,
        energy: Callable[[], int],
        work: PowerWork,
        load: Callable[[], None] | None,
        facts: MeasurementFacts,
    ) -> None:
        self._energy, self._work, self._load = energy, work, load
        self.facts = facts

    def read(self) -> list[float]:
        """Returns watts, one figure for each window of 10 s or more."""
        windows = max(int(self._work.window_seconds // SHORTEST_WINDOW_SECONDS), 1)
        seconds = self._work.window_seconds / windows
        with _run_load(self._load) as check:
            time.sleep(self._work.settle_seconds)
            edges = [self._read_edge()]
            for _ in range(windows):
                time.sleep(seconds)
                check()
                edges.append(self._read_edge())
        return [(last[1] - first[1]) / 1e3 / (last[0] - first[0]) for first, last in pairwise(edges)]

    def _read_edge(self) -> tuple[float, int]:
        """Returns seconds and millijoules at the moment when the counter moves."""
        before, limit = self._energy(), time.monotonic() + STEP_SECONDS
        while time.monotonic() < limit:
            now = self._energy()
            if now < before:
                raise RuntimeError(f"the energy counter went back from {before} to {now} mJ")
            if now > before:
                return time.monotonic(), now
            time.sleep(POLL_SECONDS)
        raise Unsupported(f"the energy counter did not move for {STEP_SECONDS} s")


@contextmanager
def _run_load(load: Callable[[], None] | None) -> Iterator[Callable[[], None]]:
    """Repeats a load during the block; yields a check that raises the error that stopped it."""
    over, failures = threading.Event(), list[Exception]()

    def repeat_load() -> None:
        try:
            while load and not over.is_set():
                load()
        except Exception as error:  # noqa: BLE001  # raised again by the check
            failures.append(error)

    def check_failures() -> None:
        if failures:
            raise failures[0]

    thread = threading.Thread(target=repeat_load, name="load", daemon=True)
    thread.start()
    try:
        yield check_failures
    finally:
        over.set()
        thread.join()
    check_failures()


class PacedLoad:
    """A load that runs for a share of the time; too long a wait shortens the following ones."""

    def __init__(self, load: Callable[[], None], share: float) -> None:
        self._load, self._share = load, share
        self._started: float | None = None
        self._busy = 0.0

    def __call__(self) -> None:
        """Runs one batch, and the wait that belongs to it."""
        begun = time.monotonic()
        if self._started is None:
            self._started = begun
        self._load()
        ended = time.monotonic()
        self._busy += ended - begun
        time.sleep(max(self._started + self._busy / self._share - ended, 0.0))


def _build_benchmark(device: CudaDevice, work: PowerWork, seed: int, stack: ExitStack) -> TimedBenchmark:
    side, rows = GEMM_SIDE, GEMM_SIDE
    match work.load:
        case "stream":
            stream = StreamWork(kind="stream", pattern="copy", array_bytes=STREAM_BYTES)
            return StreamBandwidth(device, stream, seed)
        case "decode":
            side, rows = DECODE_SIDE, DECODE_ROWS
    return MatrixProduct(device, GemmWork(kind="gemm", dtype="bf16", m=rows, n=side, k=side), seed, stack)


def _build_load(
    device: CudaDevice, work: PowerWork, seed: int, stack: ExitStack
) -> tuple[Callable[[], None], MeasurementFacts]:
    """Builds batches that fill their share of about 0.1 s; the gap between two full ones is microseconds."""
    timed = _build_benchmark(device, work, seed, stack)
    iterations = max(round(work.duty * BATCH_SECONDS * 1e9 / timed.execute(1)), 1)

    def run_batch() -> None:
        # The context belongs to a thread, and this is another thread.
        device.make_current()
        timed.execute(iterations)

    return PacedLoad(run_batch, work.duty) if work.duty < 1 else run_batch, timed.facts


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares the device for the load; raises :class:`Unsupported` if it has no energy counter."""
    work = benchmark.work
    if not isinstance(work, PowerWork):
        raise Unsupported(f"{work.kind} is not a power benchmark")
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    if work.load in ("idle", "context") and work.duty < 1:
        raise Unsupported(f"{work.load} has no load that can run part of the time")
    with ExitStack() as stack:
        bindings = stack.enter_context(nvml.open_nvml())
        unit = nvml.find_unit(bindings, index)
        if unit.is_slice:
            raise Unsupported("the device is divided (MIG), and its power is that of all slices")
        energy = _build_counter(bindings, unit.handle)
        load, facts = None, MeasurementFacts(library="NVML energy counter", data="none", timer="nvml")
        if work.load != "idle":
            device = stack.enter_context(devices.open_device(index))
            facts = replace(facts, software=device.list_software())
            if work.load != "context":
                load, of_load = _build_load(device, work, seed, stack)
                facts = MeasurementFacts(
                    library=f"NVML energy counter; load {of_load.library}, {work.duty:.0%} of the time",
                    algorithm=of_load.algorithm,
                    math_mode=of_load.math_mode,
                    accumulation=of_load.accumulation,
                    data=of_load.data,
                    timer="nvml",
                    working_set_bytes=of_load.working_set_bytes,
                    software=of_load.software,
                )
        yield EnergyWindows(energy, work, load, facts)


def _build_counter(bindings: Any, handle: Any) -> Callable[[], int]:  # noqa: ANN401
    def read_energy() -> int:
        return int(bindings.nvmlDeviceGetTotalEnergyConsumption(handle))

    try:
        read_energy()
    except bindings.NVMLError as error:
        raise Unsupported(f"energy counter: {error}") from None
    return read_energy
