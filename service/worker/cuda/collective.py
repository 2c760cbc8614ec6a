"""Collectives of the accelerators of this node, by the C interface of NCCL.

One process has a communicator for each accelerator and groups its calls. 65,536 elements of every accelerator
are checked against NumPy.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import CollectiveWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import nccl, numbers
from service.worker.cuda.bindings import CudaError, check_status
from service.worker.cuda.device import CudaDevice, run_kernel
from service.worker.cuda.nccl import NcclCommunicators

ELEMENT_BYTES = 4
RUN = 1024
"""Neighbouring elements that are compared together."""
RUNS = 64
SPOIL = 0xFFFFFFFF
"""NaN: no element with these bits passes."""
EXACT_RANKS = 4
DIVIDED = frozenset({"all_gather", "reduce_scatter", "all_to_all"})

Values = np.ndarray[Any, Any]


class CollectiveExchange:
    """One collective of whole numbers of fp32; rank 0 is the requested accelerator."""

    def __init__(
        self, ranks: Sequence[CudaDevice], library: NcclCommunicators, work: CollectiveWork, seed: int
    ) -> None:
        self._ranks, self._library, self._work = ranks, library, work
        self._count = work.payload_bytes // ELEMENT_BYTES
        part = self._count // len(ranks)
        sends = part if work.operation == "all_gather" else self._count
        self._left = part if work.operation == "reduce_scatter" else self._count
        self._seeds = [numbers.derive_seed(seed, number) for number in range(len(ranks))]
        self._sent, self._received = [], []
        for rank, own in zip(ranks, self._seeds, strict=True):
            rank.make_current()
            self._sent.append(rank.allocate(_round_up_bytes(sends)))
            self._received.append(rank.allocate(_round_up_bytes(self._left)))
            run_kernel(rank, ("random.cu", "fill_whole"), self._sent[-1], sends, own)
            rank.synchronize()
        self._streams = [rank.driver.CUstream(rank.stream) for rank in ranks]
        self._handles = [rank.stream for rank in ranks]
        self._ended = [_create_event(rank) for rank in ranks]
        self._start, self._stop = _create_event(ranks[0]), _create_event(ranks[0])
        self.facts = MeasurementFacts(
            library=f"NCCL {library.version}",
            algorithm=f"{work.algorithm}, one process for {len(ranks)} accelerators",
            accumulation="fp32" if work.operation in ("all_reduce", "reduce_scatter") else None,
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=ELEMENT_BYTES * (sends + self._left),
            software=ranks[0].list_software(),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds from before the first to after the last collective, on the slowest one."""
        driver, (first, *others) = self._ranks[0].driver, self._streams
        check_status(driver.cuEventRecord(self._start, first))
        for stream in others:
            check_status(driver.cuStreamWaitEvent(stream, self._start, 0))
        for _ in range(iterations):
            self._enqueue_collective()
        for stream, ended in zip(others, self._ended[1:], strict=True):
            check_status(driver.cuEventRecord(ended, stream))
            check_status(driver.cuStreamWaitEvent(first, ended, 0))
        check_status(driver.cuEventRecord(self._stop, first))
        check_status(driver.cuEventSynchronize(self._stop))
        return self._ranks[0].compute_elapsed_ns(self._start, self._stop)

    def check(self) -> CorrectnessCheck:
        """Spoils every result, exchanges once, and compares a sample on every rank with NumPy's.

        Numbers are below 2^22, so sums of four are exact in fp32; sums of n in any order are off by at most
        (n - 1) 2^-24 of them (Higham, Accuracy, 4.2).
        """
        for rank, target in zip(self._ranks, self._received, strict=True):
            rank.make_current()
            run_kernel(rank, ("flush.cu", "spoil"), target, _round_up_bytes(self._left) // 16, SPOIL)
            rank.synchronize()
        self.execute(1)
        error = max(self._compute_error(number) for number in range(len(self._ranks)))
        adds = self._work.operation in ("all_reduce", "reduce_scatter")
        tolerance = (len(self._ranks) - 1) * 2.0**-24 if adds and len(self._ranks) > EXACT_RANKS else 0.0
        return CorrectnessCheck(
            method=f"up to {RUN * RUNS} elements of every accelerator against NumPy",
            largest_error=min(error, 1e30),
            tolerance=tolerance,
            passed=error <= tolerance,
        )

    def _enqueue_collective(self) -> None:
        work = self._work
        self._library.enqueue_collective(
            work.operation, self._sent, self._received, self._count, self._handles
        )

    def _compute_error(self, number: int) -> float:
        """Returns the largest error on a rank, as a share of the largest number that may be there."""
        places = _select_positions(self._left, self._seeds[number])
        wanted = compute_expected(self._work, self._seeds, number, places)
        rank, found = self._ranks[number], np.empty(places.shape, np.float32)
        rank.make_current()
        for row, first in enumerate(places[:, 0].tolist()):
            rank.to_host(found[row], self._received[number] + ELEMENT_BYTES * first)
        off = np.abs(found.astype(np.float64) - wanted)
        # NaN is larger than everything here, and would be lost by max().
        return float(np.max(np.where(np.isfinite(off), off, 1e30))) / float(np.max(wanted))


def compute_expected(work: CollectiveWork, seeds: Sequence[int], rank: int, places: Values) -> Values:
    """Returns the expected values of a rank at positions of its result, in float64."""
    part = work.payload_bytes // ELEMENT_BYTES // len(seeds)

    def generate_values(number: int, at: Values) -> Values:
        return numbers.generate_integers(seeds[number], at).astype(np.float64)

    def select_by_part(value: Callable[[int, Values], Values]) -> Values:
        within = np.stack([value(number, places) for number in range(len(seeds))])
        return np.asarray(np.take_along_axis(within, (places // part)[None], axis=0)[0])

    match work.operation:
        case "all_reduce":
            return sum(
                (generate_values(number, places) for number in range(len(seeds))),
                start=np.zeros(places.shape),
            )
        case "reduce_scatter":
            own = places + rank * part
            return sum(
                (generate_values(number, own) for number in range(len(seeds))), start=np.zeros(places.shape)
            )
        case "all_gather":
            return select_by_part(lambda number, at: generate_values(number, at % part))
        case "all_to_all":
            return select_by_part(lambda number, at: generate_values(number, at % part + rank * part))
        case "broadcast":
            return generate_values(0, places)
        case "send_receive":
            return generate_values((rank - 1) % len(seeds), places)


def _round_up_bytes(count: int) -> int:
    """Rounds bytes of elements up to the unit that the kernels write at once."""
    return -(-ELEMENT_BYTES * count // 16) * 16


def _create_event(device: CudaDevice) -> Any:  # noqa: ANN401
    """Creates an event of the device's own context."""
    device.make_current()
    return device.create_event()


def _select_positions(count: int, seed: int) -> Values:
    """Selects positions in runs of neighbours: the first, the last, and others by the seed."""
    width = min(RUN, count)
    rows = max(min(RUNS, count // width), 1)
    drawn = numbers.generate_bits(seed ^ 1, np.arange(rows)) % np.uint64(count - width + 1)
    drawn[0], drawn[-1] = 0, count - width
    return np.asarray((drawn[:, None] + np.arange(width, dtype=np.uint64)).astype(np.int64))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares buffers on every accelerator; :class:`Unsupported` with too few of them, or without NCCL."""
    work = benchmark.work
    if not isinstance(work, CollectiveWork):
        raise Unsupported(f"{work.kind} is not a collective")
    chosen = devices.select_indices(index, work.devices)
    if work.payload_bytes % (ELEMENT_BYTES * (work.devices if work.operation in DIVIDED else 1)):
        raise Unsupported(f"{work.payload_bytes} bytes cannot be divided among {work.devices} accelerators")
    with ExitStack() as stack:
        ranks = [stack.enter_context(devices.open_device(each)) for each in chosen]
        library = stack.enter_context(
            nccl.open_communicators([rank.ordinal for rank in ranks], work.algorithm)
        )
        exchange = CollectiveExchange(ranks, library, work, seed)
        if work.algorithm != "default":
            _check_algorithm(exchange, work.algorithm)
        yield exchange


def _check_algorithm(exchange: CollectiveExchange, algorithm: str) -> None:
    """Raises :class:`Unsupported` if NCCL lacks the algorithm here, which only a collective reveals."""
    try:
        exchange.execute(1)
    except CudaError as error:
        raise Unsupported(f"{algorithm}: {error}") from None
