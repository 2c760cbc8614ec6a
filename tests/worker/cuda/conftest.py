"""A CUDA driver and an NVML of which every answer is known."""

import importlib
import shutil

import pytest

from service.worker import nvml
from service.worker.cuda import compiler, device
from tests.worker.cuda import host_kernels
from tests.worker.cuda.fake_nvml import FakeNvml


@pytest.fixture
def fake_nvml(monkeypatch):
    """The NVML of an idle device; a test changes its answers."""
    fake = FakeNvml()
    modules = importlib.import_module
    monkeypatch.setattr(
        nvml.importlib, "import_module", lambda name: fake if name == "pynvml" else modules(name)
    )
    yield fake
    assert fake.open == 0


class Driver:
    """The device of the fake driver: what it was asked, how long it takes, how much memory it has."""

    def __init__(self):
        self._library = host_kernels.driver()
        self._queued = []

    def takes(self, name, microseconds):
        """How long a kernel takes, or a copy, by the clock of the events."""
        self.fact(name, microseconds)

    def fact(self, name, value):
        self._library.fake_fact(name.encode(), str(value).encode())

    def memory(self, size):
        self._library.fake_memory(size)

    def reset(self):
        self._library.fake_reset()

    def advance(self, microseconds):
        """Let time pass on the clock of the events."""
        self._library.fake_advance(float(microseconds))

    def queue(self, stream, work):
        """Do what a library puts on a stream: at once, or whenever a graph of it is launched."""
        self._queued.append(host_kernels.WORK(work))
        self._library.fake_queue(stream, self._queued[-1])

    def forget(self):
        self._library.fake_forget()

    @property
    def journal(self):
        return self._library.fake_journal().decode().split()

    @property
    def alive(self):
        return self._library.fake_alive()


@pytest.fixture
def driver(fake_nvml, monkeypatch):
    """A device of compute capability 9.0 with two multiprocessors, 1 MiB of cache and 1 GiB of memory."""
    # A flush on this processor takes 10 ms for each MiB.
    monkeypatch.setattr(device, "LEAST_FLUSH_BYTES", 2**20)
    monkeypatch.setattr(device, "FLUSHED_CACHES", 1)
    monkeypatch.setattr(compiler, "compile_cubin", host_kernels.compile_nothing)
    if not shutil.which("g++"):
        pytest.skip("no g++ to run the kernels on this processor with")
    fake = Driver()
    fake.reset()
    yield fake
    assert fake.alive == 0
