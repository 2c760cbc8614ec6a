"""Collectives of the accelerators of this node, by the C interface of NCCL.

One process has a communicator for each accelerator and groups its calls, or each accelerator has a process
of its own (:mod:`service.worker.cuda.nccl_rank`). 65,536 elements of every accelerator are checked against
NumPy.
"""

import json
import selectors
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from pydantic import MISSING

from service.protocol.nodes import NodeSoftware
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.links import CollectiveWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import nccl, numbers
from service.worker.cuda.bindings import CudaError, check_status
from service.worker.cuda.device import CudaDevice, run_kernel
from service.worker.cuda.nccl import NcclCommunicators
from service.worker.process import build_module_command, get_pipe, kill_process

ELEMENT_BYTES = 4
RUN = 1024
"""Neighbouring elements that are compared together."""
RUNS = 64
SPOIL = 0xFFFFFFFF
"""NaN: no element with these bits passes."""
EXACT_RANKS = 4
DIVIDED = frozenset({"all_gather", "reduce_scatter", "all_to_all"})

Values = np.ndarray[Any, Any]
Answer = dict[str, Any]


class RankBuffers:
    """Input and result of one rank: whole numbers of fp32, from a seed of its own."""

    def __init__(self, device: CudaDevice, work: CollectiveWork, seed: int, rank: int) -> None:
        self._device, self._work, self._rank = device, work, rank
        self._seeds = [numbers.derive_seed(seed, number) for number in range(work.devices)]
        self.count = work.payload_bytes // ELEMENT_BYTES
        part = self.count // work.devices
        self._sends = part if work.operation == "all_gather" else self.count
        self._left = part if work.operation == "reduce_scatter" else self.count
        self.size = ELEMENT_BYTES * (self._sends + self._left)
        device.make_current()
        if work.in_place is MISSING:
            self.sent, self.received = (self._allocate(count) for count in (self._sends, self._left))
        else:
            own, address = ELEMENT_BYTES * rank * part, self._allocate(self.count)
            self.sent = address + (own if work.operation == "all_gather" else 0)
            self.received = address + (own if work.operation == "reduce_scatter" else 0)
            self.size = ELEMENT_BYTES * self.count
        self.reset()

    def reset(self) -> None:
        """Spoils the result, unless it is input too, and writes the input."""
        self._device.make_current()
        if self._work.in_place is MISSING or self._work.operation == "all_gather":
            vectors = _round_up_bytes(self._left) // 16
            run_kernel(self._device, ("flush.cu", "spoil"), self.received, vectors, SPOIL)
        run_kernel(self._device, ("random.cu", "fill_whole"), self.sent, self._sends, self._seeds[self._rank])
        self._device.synchronize()

    def compute_error(self) -> float:
        """Returns the largest error of a sample, as a share of the largest number that may be there."""
        places = _select_positions(self._left, self._seeds[self._rank])
        wanted = compute_expected(self._work, self._seeds, self._rank, places)
        found = np.empty(places.shape, np.float32)
        self._device.make_current()
        for row, first in enumerate(places[:, 0].tolist()):
            self._device.to_host(found[row], self.received + ELEMENT_BYTES * first)
        off = np.abs(found.astype(np.float64) - wanted)
        # NaN is larger than everything here, and would be lost by max().
        return float(np.max(np.where(np.isfinite(off), off, 1e30))) / float(np.max(wanted))

    def _allocate(self, count: int) -> int:
        return self._device.allocate(_round_up_bytes(count))


class CollectiveExchange:
    """One collective of this process; rank 0 is the requested accelerator."""

    def __init__(
        self, ranks: Sequence[CudaDevice], library: NcclCommunicators, work: CollectiveWork, seed: int
    ) -> None:
        self._ranks, self._library, self._work = ranks, library, work
        self._buffers = [RankBuffers(rank, work, seed, number) for number, rank in enumerate(ranks)]
        self._streams = [rank.driver.CUstream(rank.stream) for rank in ranks]
        self._ended = [_create_event(rank) for rank in ranks]
        self._start, self._stop = _create_event(ranks[0]), _create_event(ranks[0])
        self.facts = MeasurementFacts(
            library=f"NCCL {library.version}",
            algorithm=f"{work.algorithm}, one process for {len(ranks)} accelerators",
            accumulation=find_accumulation(work),
            data=numbers.WHOLE,
            timer="cuda_event",
            working_set_bytes=self._buffers[0].size,
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
        """Spoils every result, exchanges once, and compares a sample on every rank with NumPy's."""
        for buffers in self._buffers:
            buffers.reset()
        self.execute(1)
        return build_check(self._work, max(buffers.compute_error() for buffers in self._buffers))

    def _enqueue_collective(self) -> None:
        self._library.enqueue_collective(
            self._work.operation,
            [buffers.sent for buffers in self._buffers],
            [buffers.received for buffers in self._buffers],
            self._buffers[0].count,
            [rank.stream for rank in self._ranks],
        )


def find_accumulation(work: CollectiveWork) -> str | None:
    """Returns the format in which a collective adds, None if it does not."""
    return "fp32" if work.operation in ("all_reduce", "reduce_scatter") else None


def build_check(work: CollectiveWork, error: float) -> CorrectnessCheck:
    """Returns the verdict on the largest error of all ranks.

    Numbers are below 2^22, so sums of four are exact in fp32; sums of n in any order are off by at most
    (n - 1) 2^-24 of them (Higham, Accuracy, 4.2).
    """
    is_rounded = find_accumulation(work) is not None and work.devices > EXACT_RANKS
    tolerance = (work.devices - 1) * 2.0**-24 if is_rounded else 0.0
    return CorrectnessCheck(
        method=f"up to {RUN * RUNS} elements of every accelerator against NumPy",
        largest_error=min(error, 1e30),
        tolerance=tolerance,
        passed=error <= tolerance,
    )


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
    if work.processes is not MISSING:
        with open_ranks(work, seed, chosen) as several:
            yield several
        return
    with ExitStack() as stack:
        ranks = [stack.enter_context(devices.open_device(each)) for each in chosen]
        library = stack.enter_context(
            nccl.open_communicators([rank.ordinal for rank in ranks], work.algorithm)
        )
        exchange = CollectiveExchange(ranks, library, work, seed)
        if work.algorithm != "default":
            _check_algorithm(exchange, work.algorithm)
        yield exchange


class CollectiveProcesses:
    """Processes of one collective, each with its accelerator, that answer to lines of their input."""

    def __init__(self, work: CollectiveWork, processes: Sequence["subprocess.Popen[str]"]) -> None:
        self._work, self._processes = work, processes
        facts = self._read_answers(processes)
        identity = self._ask(processes[:1], "identity")[0]["identity"]
        self._ask(processes, f"join {identity}")
        mode = " in place" if work.in_place is not MISSING else ""
        grows = bool(mode) and work.operation == "all_reduce"
        self.facts = MeasurementFacts(
            library=f"NCCL {facts[0]['version']}",
            algorithm=f"{work.algorithm}{mode}, a process for each of {len(processes)} accelerators",
            accumulation=find_accumulation(work),
            data=numbers.WHOLE + (", added up until they are infinite" if grows else ""),
            timer="cuda_event",
            working_set_bytes=facts[0]["size"],
            uses_graph=work.launch is not MISSING,
            executions_per_launch=facts[0]["executions_per_launch"],
            software=tuple(NodeSoftware(**each) for each in facts[0]["software"]),
        )

    def execute(self, iterations: int) -> int:
        """Returns the nanoseconds that the slowest process took, from when all had begun."""
        return max(int(answer["ns"]) for answer in self._ask(self._processes, f"execute {iterations}"))

    def check(self) -> CorrectnessCheck:
        """Lets every process write its input anew, exchange once, and compare a sample with NumPy's."""
        self._ask(self._processes, "reset")
        self._ask(self._processes, "once")
        errors = [answer["error"] for answer in self._ask(self._processes, "compare")]
        return build_check(self._work, max(errors))

    def _ask(self, processes: Sequence["subprocess.Popen[str]"], line: str) -> list[Answer]:
        for process in processes:
            pipe = get_pipe(process.stdin)
            pipe.write(f"{line}\n")
            pipe.flush()
        return self._read_answers(processes)

    def _read_answers(self, processes: Sequence["subprocess.Popen[str]"]) -> list[Answer]:
        """Reads a line of each in the order in which they come: one that refuses may leave others waiting."""
        answers: dict[int, Answer] = {}
        with selectors.DefaultSelector() as waiting:
            for place, process in enumerate(processes):
                waiting.register(get_pipe(process.stdout), selectors.EVENT_READ, place)
            while len(answers) < len(processes):
                for key, _ in waiting.select():
                    answers[key.data] = self._read_answer(processes[key.data])
                    waiting.unregister(key.fileobj)
        return [answers[place] for place in range(len(processes))]

    def _read_answer(self, process: "subprocess.Popen[str]") -> Answer:
        line = get_pipe(process.stdout).readline()
        if not line:
            raise RuntimeError(f"the process of an accelerator has ended with status {process.wait()}")
        answer: Answer = json.loads(line)
        if "unsupported" in answer:
            raise Unsupported(answer["unsupported"])
        return answer


@contextmanager
def open_ranks(work: CollectiveWork, seed: int, chosen: Sequence[int]) -> Iterator[CollectiveProcesses]:
    """Starts a process for each accelerator, and lets them join; one that ends makes all end."""
    with ExitStack() as stack:
        processes = []
        for rank, index in enumerate(chosen):
            process = start_rank([rank, index, seed, work.model_dump(mode="json")])
            stack.callback(kill_process, process)
            processes.append(process)
        yield CollectiveProcesses(work, processes)


def start_rank(place: Sequence[object]) -> "subprocess.Popen[str]":
    """Starts the process of one accelerator."""
    return subprocess.Popen(  # noqa: S603  # fixed words and numbers
        [*build_module_command("service.worker.cuda.nccl_rank"), json.dumps(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _check_algorithm(exchange: CollectiveExchange, algorithm: str) -> None:
    """Raises :class:`Unsupported` if NCCL lacks the algorithm here, which only a collective reveals."""
    try:
        exchange.execute(1)
    except CudaError as error:
        raise Unsupported(f"{algorithm}: {error}") from None
