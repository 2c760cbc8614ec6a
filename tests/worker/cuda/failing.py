"""A process that measures on stand-ins of the driver and of libraries, which fail as ``FAKE_FAULT`` says."""

import importlib
import os
import sys
import time
from types import SimpleNamespace

import pynvml

from service.worker.child import list_devices, main, measure_task
from service.worker.cuda import bindings, compiler, device, gemm
from tests.worker.cuda import host_kernels
from tests.worker.cuda.fake_cublas import FakeCublas
from tests.worker.cuda.fake_cublaslt import FakeLt
from tests.worker.cuda.fake_cufft import FakeCufft
from tests.worker.cuda.fake_nvml import MOVED, FakeNvml, process

NOT_PERMITTED, UNKNOWN = b"800", b"999"


def _refuse(status):
    def refused():
        raise pynvml.NVMLError(status)

    return refused


class Machine:
    """The stand-ins; each fault is a method."""

    def __init__(self):
        self.driver = host_kernels.driver()
        self.lt = FakeLt(lambda microseconds: self.driver.fake_advance(float(microseconds)))
        self.cublas = FakeCublas(lambda microseconds: self.driver.fake_advance(float(microseconds)))
        self._queued = []
        self.lt.queue = self.cublas.queue = self._queue
        self.nvml = FakeNvml(
            nvmlSystemGetCudaDriverVersion=13000,
            nvmlDeviceGetUUID="GPU-00000000",
            nvmlDeviceGetName="NVIDIA H200",
        )
        self.cufft = FakeCufft(lambda microseconds: self.driver.fake_advance(float(microseconds)))
        self.nvml.fields = dict.fromkeys(MOVED, 7)

    def _queue(self, stream, work):
        self._queued.append(host_kernels.WORK(work))
        self.driver.fake_queue(stream, self._queued[-1])

    def nothing(self):
        """Everything works, and kernels are compiled as the worker does it."""

    def refused_proposal(self):
        self.lt.refused = {1: "CUBLAS_STATUS_NOT_SUPPORTED (15)"}

    def refused_proposals(self):
        self.lt.refused = dict.fromkeys(range(3), "CUBLAS_STATUS_NOT_SUPPORTED (15)")

    def unsupported_type(self):
        self.lt.supports = False

    def little_memory(self):
        self.driver.fake_memory(2**16)

    def refused_reading(self):
        self.nvml.answers["nvmlDeviceGetTotalEccErrors"] = _refuse(pynvml.NVML_ERROR_NO_PERMISSION)

    def refused_context(self):
        self.driver.fake_fact(b"retain", NOT_PERMITTED)

    def lost_device(self):
        self.driver.fake_fact(b"sync_event", UNKNOWN)
        self.nvml.answers["nvmlDeviceGetTemperature"] = _refuse(pynvml.NVML_ERROR_GPU_IS_LOST)

    def renumbered_field(self):
        self.nvml.answers["nvmlSystemGetDriverVersion"] = "575.57.08"

    def hang(self):
        self.driver.fake_fact(b"hang", b"1")

    def simulated(self):
        """A device of a real size whose kernels and products take no time and compute nothing."""
        self.driver.fake_simulate()
        self.driver.fake_memory(80 * 10**9)
        for attribute, value in {"16": b"132", "38": b"52428800"}.items():
            self.driver.fake_fact(f"attribute:{attribute}".encode(), value)
        self.lt.queue = lambda _stream, _work: self.lt._advance(1000.0)
        self.cublas.queue = lambda _stream, _work: self.driver.fake_advance(1000.0)
        self.cufft = FakeCufft(lambda _: None)
        self.cufft.xt_exec = lambda *_: self.driver.fake_advance(1000.0)
        self.nvml.answers |= {
            "nvmlDeviceGetTotalEnergyConsumption": lambda: int(300_000 * time.monotonic()),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * 10**9, used=0),
            "nvmlDeviceGetComputeRunningProcesses": [process(used=500 * 2**20)],
        }

    def install(self):
        """Make this process find the stand-ins."""
        modules = importlib.import_module
        found = {
            "pynvml": self.nvml,
            "nvmath.bindings.cublasLt": self.lt,
            "nvmath.bindings.cublas": self.cublas,
            "nvmath.bindings.cufft": self.cufft,
        }
        importlib.import_module = bindings.import_module = lambda name: found.get(name) or modules(name)
        device.LEAST_FLUSH_BYTES, device.FLUSHED_CACHES = 2**20, 1
        gemm.MOST_SETS = 64


def _prepare():
    machine = Machine()
    fault = os.environ["FAKE_FAULT"]
    getattr(machine, fault)()
    if fault != Machine.nothing.__name__:
        compiler.compile_cubin = host_kernels.compile_nothing
    machine.install()


def measure(given, words):
    """What a worker's process does, on that machine."""
    _prepare()
    return measure_task(given, words)


def inventory(given, words):
    """What the machine has, as the worker lists it."""
    _prepare()
    return list_devices(given, words)


if __name__ == "__main__":
    main(sys.argv[1:], {"measure": measure, "inventory": inventory})
