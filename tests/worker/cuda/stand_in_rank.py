"""A process of a collective on the fake driver: a fork, which starts in a moment."""

import ctypes
import importlib
import json
import os
import signal
import sys
import traceback
from types import SimpleNamespace

from service.worker import nvml
from service.worker.cuda import compiler, nccl, nccl_rank
from tests.worker.cuda import host_kernels
from tests.worker.cuda.fake_nvml import EachDevice, FakeNvml

RANKS = 4


def build_nccl():
    """The NCCL of the tests, under the name by which the loader looks for it."""
    source = host_kernels.SHIM.with_name("fake_nccl.cpp").read_text()
    return ctypes.CDLL(str(host_kernels._built("nccl", source, link=(f"-Wl,-soname,{nccl.LIBRARY}",))))


class ForkedRank:
    """What of a started process is used: its pipes, its status and its end."""

    def __init__(self, place):
        given, self.stdin = _open_pipe()
        self.stdout, answers = _open_pipe()
        self._status = None
        self._id = os.fork()
        if not self._id:
            self.stdin.close()
            self.stdout.close()
            _serve(place, given, answers)
        given.close()
        answers.close()

    def poll(self):
        if self._status is None:
            ended, status = os.waitpid(self._id, os.WNOHANG)
            self._status = status if ended else None
        return self._status

    def wait(self):
        if self._status is None:
            self._status = os.waitpid(self._id, 0)[1]
        return self._status

    def kill(self):
        if self.poll() is None:
            os.kill(self._id, signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stdout.close()
        self.stdin.close()
        self.wait()


def _open_pipe():
    reading, writing = os.pipe()
    return os.fdopen(reading, "r"), os.fdopen(writing, "w")


def _serve(place, given, answers):
    """Never returns: the tests go on in the parent alone."""
    try:
        sys.stdin = given
        os.dup2(answers.fileno(), 1)
        answers.close()
        _serve_rank(place)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _serve_rank(place):
    fake = FakeNvml()
    addresses = [SimpleNamespace(busId=f"00000000:{17 + number}:00.0".encode()) for number in range(RANKS)]
    fake.answers |= {"nvmlDeviceGetCount": RANKS, "nvmlDeviceGetPciInfo": EachDevice(addresses)}
    modules = importlib.import_module
    nvml.importlib = SimpleNamespace(import_module=lambda name: fake if name == "pynvml" else modules(name))
    compiler.compile_cubin = host_kernels.compile_nothing
    driver = host_kernels.driver()
    driver.fake_reset()
    driver.fake_fact(b"devices", str(RANKS).encode())
    build_nccl().fake_nccl_driver(driver.fake_queue_call)
    nccl_rank.main([json.dumps(place)])
    assert fake.open == 0
