"""Messages between RDMA adapters of this node, of device or host memory, by the programs of perftest.

The adapter nearest to the accelerator is the client. The server, on 127.0.0.1 too, has another one of the
same rate, or the same one. The programs are ``ib_write_bw``, ``ib_read_bw``, ``ib_send_lat`` and their
sisters, with a fixed list of arguments; what they print is parsed and never run. A bandwidth is the average
of one queue pair, in 10^9 bits a second by ``--report_gbits``; a latency is the median of :data:`EXCHANGES`.
Adapters reach device memory by DMA-BUF, or by the peer memory of the driver where that is refused.

A figure is that of one adapter without NCCL and its channels, and within one node: no constant is drawn of
it.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from service.formats.measurements.perftest import BANDWIDTH, LATENCY, measurements_from_perftest
from service.planning.errors import PlanningError
from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.suites import Benchmark
from service.protocol.work.links import RdmaLinkWork
from service.worker import nvml
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda.external_tool import VERSION, build_environment
from service.worker.cuda.host_link import bind_local_processors
from service.worker.cuda.process_pair import ADDRESS, PairOutcome, ask_program, run_pair
from service.worker.cuda.rdma_adapters import RdmaPort, list_ports, select_ports
from service.worker.redaction import to_one_line

MEASURED_SECONDS = 5
"""Duration of a bandwidth test, whose beginning and end perftest leaves out."""
EXCHANGES = 10_000
"""Messages of a latency test."""
SECONDS = 60.0
"""Time for a client, after which both programs are killed."""
SLACK = 1.02
"""Largest ratio of a bandwidth through the network to the rate of its port."""
REFUSED = (
    "Couldn't allocate MR",
    "failed to create mr",
    "DMA-BUF is not supported on this GPU",
    "does not support DMA-BUF",
    "cuMemGetHandleForAddressRange error",
)
"""Parts of what perftest says where memory of a device cannot be registered (``src/cuda_memory.c`` and
``src/perftest_resources.c``)."""
ON_DEVICE = {"MLX5_SCATTER_TO_CQE": "0"}
"""Environment without which some adapters put short messages beside their completions on the host (README of
perftest)."""
CONNECTIONS = {"efa": ("-c", "SRD")}
"""Arguments for the connections of adapters that have no reliable ones (man page of perftest)."""
_SHOWN_CHARACTERS = 200


class MemoryAccess(NamedTuple):
    """Means by which adapters reach the memory of the messages, and the arguments that ask for it."""

    name: str
    arguments: tuple[str, ...] = ()

    def is_listed(self, usage: str) -> bool:
        """Returns true if a program lists the arguments; older ones have ``--use_cuda`` without a device."""
        return all(argument.rstrip("0") in usage for argument in self.arguments)


HOST = MemoryAccess("host memory")
DMA_BUF = MemoryAccess("device memory by DMA-BUF", ("--use_cuda=0", "--use_cuda_dmabuf"))
PEER_MEMORY = MemoryAccess("device memory by peer memory of the driver", ("--use_cuda=0",))


class RdmaPair:
    """One test of perftest between two ports; its time is derived from the figure that it reports."""

    def __init__(
        self,
        benchmark: Benchmark,
        program: str,
        ports: tuple[RdmaPort, RdmaPort],
        environment: Mapping[str, str],
        gaps: tuple[NodeGap, ...],
    ) -> None:
        """Asks the program what it can do; :class:`Unsupported` without it or its access to the memory."""
        self._work, self._program = benchmark.get_work(RdmaLinkWork), program
        self._is_latency = benchmark.metric == "seconds"
        path = shutil.which(program)
        if path is None:
            raise Unsupported(f"{program} of perftest is not installed")
        self._path, self._ports = path, ports
        self._environment = {**environment, **(ON_DEVICE if self._work.memory == "device" else {})}
        self._ways = self._list_ways()
        version = VERSION.search(ask_program((path, "--version")))
        software = (NodeSoftware(name="perftest", version=version[1]),) if version else ()
        self.facts = MeasurementFacts(
            library=f"{program} of perftest, as installed here",
            data="that of perftest",
            timer="host_clock",
            software=software,
            gaps=gaps,
        )

    def times_ns(self) -> list[int]:
        """Returns the nanoseconds of one message.

        Raises:
            Unsupported: The memory of the accelerator cannot be registered with the adapters.
            RuntimeError: A program failed or hung, printed something else, or a rate above that of the port.
        """
        refusals = []
        for way in self._ways:
            outcome = run_pair(partial(self._build_commands, way), self._environment, seconds=SECONDS)
            if outcome.failure is None:
                self._record(way)
                return [max(round(self._parse_seconds(outcome.printed) * 1e9), 1)]
            if way is HOST or not _is_registration_refused(outcome):
                said = "; ".join(to_one_line(each[-_SHOWN_CHARACTERS:]) for each in outcome.complaints)
                raise RuntimeError(f"{self._program}: {outcome.failure}: {said}")
            refusals.append(way.name)
        raise Unsupported(f"adapters cannot register {' nor '.join(refusals)}")

    def _list_ways(self) -> Sequence[MemoryAccess]:
        """Returns the ways to the memory that this build of perftest knows."""
        if self._work.memory == "host":
            return (HOST,)
        usage = ask_program((self._path, "--help"))
        ways = [way for way in (DMA_BUF, PEER_MEMORY) if way.is_listed(usage)]
        if not ways:
            raise Unsupported(f"{self._program} is built without CUDA")
        return ways

    def _build_arguments(self, port: RdmaPort, way: MemoryAccess) -> tuple[str, ...]:
        inline = ("-I", "0") if way is not HOST and self._work.operation != "read" else ()
        counted = (
            ("-n", str(EXCHANGES), *inline)
            if self._is_latency
            else ("-D", str(MEASURED_SECONDS), "--report_gbits")
        )
        counted += CONNECTIONS.get(port.driver, ())
        size = str(self._work.message_bytes)
        return ("-d", port.adapter, "-i", str(port.number), "-s", size, "-F", *counted, *way.arguments)

    def _build_commands(self, way: MemoryAccess, port: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Builds the command lines of server and client."""
        client, server = (
            (self._path, *self._build_arguments(each, way), "-p", str(port)) for each in self._ports
        )
        return server, (*client, ADDRESS)

    def _record(self, way: MemoryAccess) -> None:
        client, server = self._ports
        to = "itself" if client == server else server.describe()
        words = " ".join((self._program, *self._build_arguments(client, way)))
        self.facts = replace(self.facts, algorithm=f"{words}, {way.name}, {client.describe()} to {to}")

    def _parse_seconds(self, printed: str) -> float:
        try:
            read = measurements_from_perftest(printed)
        except PlanningError as error:
            raise RuntimeError(f"{self._program} printed unexpected output: {error}") from None
        metric, statistic = (LATENCY, "p50") if self._is_latency else (BANDWIDTH, "mean")
        for reading in (one for run in read.runs for one in run.readings):
            asked = (metric, statistic, self._work.message_bytes)
            if (reading.metric, reading.statistic, reading.of["bytes"]) == asked:
                return reading.value if self._is_latency else self._derive_seconds(reading.value)
        refused = "; ".join(each.detail for each in read.refused)
        raise RuntimeError(f"no {metric} of the messages is in what {self._program} printed: {refused}")

    def _derive_seconds(self, rate: float) -> float:
        limit = min(port.bytes_per_second or float("inf") for port in self._ports)
        if self._work.path == "between_adapters" and rate > SLACK * limit:
            raise RuntimeError(f"{rate:.4g} bytes per second are above the rate of the port, {limit:.4g}")
        return self._work.message_bytes / rate


def _is_registration_refused(outcome: PairOutcome) -> bool:
    return any(part in said for part in REFUSED for said in outcome.complaints)


def select_program(benchmark: Benchmark) -> str:
    """Returns the program that measures a benchmark; raises :class:`Unsupported` where there is none."""
    work = benchmark.get_work(RdmaLinkWork)
    ending = "lat" if benchmark.metric == "seconds" else "bw"
    if (ending, work.operation, work.memory) == ("lat", "write", "device"):
        raise Unsupported("perftest measures no latency of writes to device memory")
    return f"ib_{work.operation}_{ending}"


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:  # noqa: ARG001
    """Prepares two ports and command lines; the seed is not used.

    Raises :class:`Unsupported` if perftest is not installed, or the node has no such adapters.
    """
    work = benchmark.work
    if not isinstance(work, RdmaLinkWork):
        raise Unsupported(f"{work.kind} is not a transfer between RDMA adapters")
    (index,) = devices.select_indices(index, 1)
    program = select_program(benchmark)
    with nvml.open_nvml() as bindings:
        if nvml.has_slices(bindings):
            raise Unsupported(
                "tools are not asked on a host with slices (MIG): they number devices otherwise"
            )
    driver = devices.load_driver()
    bus_id = devices.read_bus_id(driver, devices.find_device_number(driver, index))
    ports = select_ports(list_ports(), bus_id, work.path)
    with bind_local_processors(bus_id) as gaps:
        yield RdmaPair(benchmark, program, ports, build_environment((index,)), gaps)
