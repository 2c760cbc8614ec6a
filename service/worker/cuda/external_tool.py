"""Transfers that other tools measure on this accelerator if they are installed. Nothing depends on them.

The tools are ``nvbandwidth -j``, nccl-tests and ``dcgmi diag -r pcie -j``. A tool runs with a fixed list of
arguments, and its output is parsed and never run. The times are the payload over the bandwidth that it
reports, or the time.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple

from service.formats.measurements.dcgm import (
    FROM_DEVICE,
    TO_DEVICE,
    measurements_from_dcgm_diagnostics,
)
from service.formats.measurements.nccl_tests import (
    PROGRAMS,
    SECONDS,
    measurements_from_nccl_tests,
)
from service.formats.measurements.nvbandwidth import TRANSFER, measurements_from_nvbandwidth
from service.formats.measurements.readings import FileMeasurements
from service.planning.errors import PlanningError
from service.protocol.nodes import NodeSoftware
from service.protocol.suites import Benchmark
from service.protocol.work.links import ExternalToolWork
from service.worker import nvml
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.process import get_pipe

MEBIBYTE = 2**20
MOST_OUTPUT_BYTES = 2**22
_TO_HOST = {
    f"{way}_memcpy_{engine}" for way in ("host_to_device", "device_to_host") for engine in ("ce", "sm")
}
_TO_PEER = {f"device_to_device_memcpy_{way}_{engine}" for way in ("read", "write") for engine in ("ce", "sm")}
_DCGM = {"pcie_host_to_device": TO_DEVICE, "pcie_device_to_host": FROM_DEVICE}
VERSION = re.compile(r"[Vv]ersion\"?\s*:?\s*\"?v?(\d+(?:\.\d+)+)")


class ToolCommand(NamedTuple):
    """Command line of a tool."""

    program: str
    arguments: tuple[str, ...]
    indices: tuple[int, ...]
    """Accelerators that are visible to the tool."""
    timer: Literal["cuda_event", "host_clock"]


class ToolReport:
    """One run of a tool; its times are reported, or derived from the bandwidth that it reports."""

    def __init__(
        self, path: str, plan: ToolCommand, work: ExternalToolWork, environment: Mapping[str, str]
    ) -> None:
        self._command = (path, *plan.arguments)
        self._work, self._environment = work, environment
        self.facts = MeasurementFacts(
            library=f"{plan.program}, as installed here",
            algorithm=" ".join((plan.program, *plan.arguments)),
            data="that of the tool",
            timer=plan.timer,
        )

    def times_ns(self) -> list[int]:
        """Returns the nanoseconds of one transfer.

        Raises:
            RuntimeError: The tool failed, or printed something else.
        """
        printed = run_command(self._command, self._environment)
        version = VERSION.search(printed)
        if version:
            software = NodeSoftware(name=self._work.tool, version=version[1])
            self.facts = replace(self.facts, software=(software,))
        try:
            return [round(parse_seconds(self._work, printed) * 1e9)]
        except PlanningError as error:
            raise RuntimeError(f"{self._work.tool} printed unexpected output: {error}") from None


def build_plan(work: ExternalToolWork, index: int) -> ToolCommand:
    """Builds the command line of a test; raises :class:`Unsupported` for an unknown one."""
    match work.tool:
        case "nvbandwidth" if work.test in _TO_HOST | _TO_PEER:
            if work.transfer_bytes % MEBIBYTE:
                raise Unsupported("nvbandwidth requires whole mebibytes")
            count = 2 if work.test in _TO_PEER else 1
            arguments = ("-j", "-t", work.test, "-b", str(work.transfer_bytes // MEBIBYTE))
            return ToolCommand(
                "nvbandwidth", arguments, tuple(devices.select_indices(index, count)), "cuda_event"
            )
        case "nccl_tests" if work.test in PROGRAMS:
            indices = tuple(devices.select_indices(index, 2, all_of_them=True))
            size = str(work.transfer_bytes)
            counts = ("-g", str(len(indices)), "-w", "5", "-n", "20", "-c", "1")
            return ToolCommand(f"{work.test}_perf", ("-b", size, "-e", size, *counts), indices, "host_clock")
        case "dcgm" if work.test in _DCGM:
            return ToolCommand(
                "dcgmi", ("diag", "-r", "pcie", "-j", "-i", str(index)), (index,), "host_clock"
            )
    raise Unsupported(f"{work.tool} is not used for {work.test}")


def parse_seconds(work: ExternalToolWork, printed: str) -> float:
    """Returns the seconds of one transfer of the payload, from the output of a tool.

    Raises:
        PlanningError: It is not in the format of the tool.
        RuntimeError: It does not contain the test.
    """
    wanted: dict[str, str | int] = {}
    match work.tool:
        case "nvbandwidth":
            wanted = {"test": work.test, "row": 0, "column": 1 if work.test in _TO_PEER else 0}
            rate = _find_reading(measurements_from_nvbandwidth(printed), TRANSFER, wanted)
        case "nccl_tests":
            wanted = {"bytes": work.transfer_bytes, "placement": "out_of_place"}
            return _find_reading(measurements_from_nccl_tests(printed), SECONDS, wanted)
        case "dcgm":
            rate = _find_reading(measurements_from_dcgm_diagnostics(printed), _DCGM[work.test], wanted)
    return work.transfer_bytes / rate


def _find_reading(read: FileMeasurements, metric: str, of: Mapping[str, str | int]) -> float:
    """Returns the first reading of a metric for the given subject."""
    for run in read.runs:
        for one in run.readings:
            if one.metric == metric and all(one.of.get(name) == each for name, each in of.items()):
                return one.value
    refused = "; ".join(each.detail for each in read.refused)
    raise RuntimeError(f"no {metric} is in what the tool printed: {refused}")


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Returns the output of a command; raises RuntimeError if it fails or prints too much."""
    with subprocess.Popen(  # noqa: S603  # a fixed list of arguments
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **environment}
    ) as process:
        printed = get_pipe(process.stdout).read(MOST_OUTPUT_BYTES + 1)
        if len(printed) > MOST_OUTPUT_BYTES:
            process.kill()
            raise RuntimeError(f"more than {MOST_OUTPUT_BYTES} bytes were printed")
    if process.returncode:
        raise RuntimeError(f"{os.path.basename(command[0])} ended with status {process.returncode}")  # noqa: PTH119
    return printed.decode(errors="replace")


def build_environment(indices: Sequence[int]) -> dict[str, str]:
    """Builds an environment in which a tool sees these accelerators alone, in this order."""
    with nvml.open_nvml() as bindings:
        names = [
            nvml.decode_text(bindings.nvmlDeviceGetUUID(nvml.get_handle(bindings, index)))
            for index in indices
        ]
    return {"CUDA_VISIBLE_DEVICES": ",".join(names)}


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:  # noqa: ARG001
    """Prepares a command line; :class:`Unsupported` if the tool is not installed. The seed is not used."""
    work = benchmark.work
    if not isinstance(work, ExternalToolWork):
        raise Unsupported(f"{work.kind} is not measured by a tool")
    if index is None:
        raise Unsupported("the benchmark needs an accelerator")
    plan = build_plan(work, index)
    path = shutil.which(plan.program)
    if path is None:
        raise Unsupported(f"{plan.program} is not installed")
    with nvml.open_nvml() as bindings:
        if nvml.has_slices(bindings):
            raise Unsupported(
                "tools are not asked on a host with slices (MIG): they number devices otherwise"
            )
    driver = devices.load_driver()
    for each in plan.indices:
        devices.find_device_number(driver, each)
    yield ToolReport(path, plan, work, build_environment(plan.indices))
