"""Collectives of the accelerators of this node, by NCCL in one process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import Collective
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import nccl, numbers
from service.worker.cuda.bindings import CudaError, done
from service.worker.cuda.device import Device, run
from service.worker.cuda.nccl import Nccl

ELEMENT_BYTES = 4
RUN = 1024
"""Neighbouring elements that are looked at together."""
RUNS = 64
SPOIL = 0xFFFFFFFF
"""No number: not one element of it passes."""
EXACT_RANKS = 4
DIVIDED = frozenset({"all_gather", "reduce_scatter", "all_to_all"})

Values = np.ndarray[Any, Any]


class Exchange:
    """One collective of whole numbers of fp32; rank 0 is the accelerator that was asked for."""

    def __init__(self, ranks: Sequence[Device], library: Nccl, work: Collective, seed: int) -> None:
        self._ranks, self._library, self._work = ranks, library, work
        self._count = work.payload_bytes // ELEMENT_BYTES
        part = self._count // len(ranks)
        sends = part if work.operation == "all_gather" else self._count
        self._left = part if work.operation == "reduce_scatter" else self._count
        self._seeds = [numbers.seed_of(seed, number) for number in range(len(ranks))]
        self._sent, self._received = [], []
        for rank, own in zip(ranks, self._seeds, strict=True):
            rank.use()
            self._sent.append(rank.allocate(_whole_vectors(sends)))
            self._received.append(rank.allocate(_whole_vectors(self._left)))
            run(rank, ("random.cu", "fill_whole"), self._sent[-1], sends, own)
            rank.synchronize()
        self._streams = [rank.driver.CUstream(rank.stream) for rank in ranks]
        self._handles = [rank.stream for rank in ranks]
        self._ended = [_event(rank) for rank in ranks]
        self._start, self._stop = _event(ranks[0]), _event(ranks[0])
        self.facts = Facts(
            library=f"NCCL {library.version}",
            algorithm=f"{work.algorithm}, one process for {len(ranks)} accelerators",
            accumulation="fp32" if work.operation in ("all_reduce", "reduce_scatter") else None,
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=ELEMENT_BYTES * (sends + self._left),
            software=ranks[0].software(),
        )

    def execute(self, iterations: int) -> int:
        """Nanoseconds from before the first collective to after the last, on whichever ends last."""
        driver, (first, *others) = self._ranks[0].driver, self._streams
        done(driver.cuEventRecord(self._start, first))
        for stream in others:
            done(driver.cuStreamWaitEvent(stream, self._start, 0))
        for _ in range(iterations):
            self._queue()
        for stream, ended in zip(others, self._ended[1:], strict=True):
            done(driver.cuEventRecord(ended, stream))
            done(driver.cuStreamWaitEvent(first, ended, 0))
        done(driver.cuEventRecord(self._stop, first))
        done(driver.cuEventSynchronize(self._stop))
        return self._ranks[0].between(self._start, self._stop)

    def check(self) -> Correctness:
        """Spoils every result, exchanges once, compares a sample on every rank with NumPy's.

        Numbers are below 2^22, so sums of four are exact in fp32; sums of n in any order are off by at most
        (n - 1) 2^-24 of them (Higham, Accuracy, 4.2).
        """
        for rank, target in zip(self._ranks, self._received, strict=True):
            rank.use()
            run(rank, ("flush.cu", "flush"), target, _whole_vectors(self._left) // 16, SPOIL)
            rank.synchronize()
        self.execute(1)
        error = max(self._error(number) for number in range(len(self._ranks)))
        adds = self._work.operation in ("all_reduce", "reduce_scatter")
        tolerance = (len(self._ranks) - 1) * 2.0**-24 if adds and len(self._ranks) > EXACT_RANKS else 0.0
        return Correctness(
            method=f"up to {RUN * RUNS} elements of every accelerator against NumPy",
            largest_error=min(error, 1e30),
            tolerance=tolerance,
            passed=error <= tolerance,
        )

    def _queue(self) -> None:
        work = self._work
        self._library.queue(work.operation, self._sent, self._received, self._count, self._handles)

    def _error(self, number: int) -> float:
        """Largest error on a rank, as a share of the largest number that may be there."""
        places = _sample(self._left, self._seeds[number])
        wanted = expected(self._work, self._seeds, number, places)
        rank, found = self._ranks[number], np.empty(places.shape, np.float32)
        rank.use()
        for row, first in enumerate(places[:, 0].tolist()):
            rank.to_host(found[row], self._received[number] + ELEMENT_BYTES * first)
        off = np.abs(found.astype(np.float64) - wanted)
        # NaN is larger than everything here, and would be lost by max().
        return float(np.max(np.where(np.isfinite(off), off, 1e30))) / float(np.max(wanted))


def expected(work: Collective, seeds: Sequence[int], rank: int, places: Values) -> Values:
    """What a rank has to hold at places of its result, in float64."""
    part = work.payload_bytes // ELEMENT_BYTES // len(seeds)

    def of(number: int, at: Values) -> Values:
        return numbers.whole(seeds[number], at).astype(np.float64)

    def by_part(value: Callable[[int, Values], Values]) -> Values:
        within = np.stack([value(number, places) for number in range(len(seeds))])
        return np.asarray(np.take_along_axis(within, (places // part)[None], axis=0)[0])

    match work.operation:
        case "all_reduce":
            return sum((of(number, places) for number in range(len(seeds))), start=np.zeros(places.shape))
        case "reduce_scatter":
            own = places + rank * part
            return sum((of(number, own) for number in range(len(seeds))), start=np.zeros(places.shape))
        case "all_gather":
            return by_part(lambda number, at: of(number, at % part))
        case "all_to_all":
            return by_part(lambda number, at: of(number, at % part + rank * part))
        case "broadcast":
            return of(0, places)
        case "send_receive":
            return of((rank - 1) % len(seeds), places)


def _whole_vectors(count: int) -> int:
    """Bytes of elements, rounded up to what the kernels that fill and spoil write at once."""
    return -(-ELEMENT_BYTES * count // 16) * 16


def _event(device: Device) -> Any:  # noqa: ANN401
    """An event of the device's own context."""
    device.use()
    return device.event()


def _sample(count: int, seed: int) -> Values:
    """Places in rows of neighbours: the first, the last, and others by the seed."""
    width = min(RUN, count)
    rows = max(min(RUNS, count // width), 1)
    drawn = numbers.random_bits(seed ^ 1, np.arange(rows)) % np.uint64(count - width + 1)
    drawn[0], drawn[-1] = 0, count - width
    return np.asarray((drawn[:, None] + np.arange(width, dtype=np.uint64)).astype(np.int64))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[Prepared]:
    """Buffers on every accelerator; :class:`Unsupported` with too few of them, or without NCCL."""
    work = benchmark.work
    if not isinstance(work, Collective):
        raise Unsupported(f"{work.kind} is not a collective")
    chosen = devices.beginning_with(index, work.devices)
    if work.payload_bytes % (ELEMENT_BYTES * (work.devices if work.operation in DIVIDED else 1)):
        raise Unsupported(f"{work.payload_bytes} bytes cannot be divided among {work.devices} accelerators")
    with ExitStack() as stack:
        ranks = [stack.enter_context(devices.opened(each)) for each in chosen]
        library = stack.enter_context(nccl.opened([rank.ordinal for rank in ranks], work.algorithm))
        exchange = Exchange(ranks, library, work, seed)
        if work.algorithm != "default":
            _try(exchange, work.algorithm)
        yield exchange


def _try(exchange: Exchange, algorithm: str) -> None:
    """Whether NCCL has the algorithm here it says only when it is asked for a collective."""
    try:
        exchange.execute(1)
    except CudaError as error:
        raise Unsupported(f"{algorithm}: {error}") from None
