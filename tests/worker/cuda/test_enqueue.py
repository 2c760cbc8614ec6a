"""Launches that the host enqueues, from C and from Python, on the stand-in of the driver."""

import shutil
from types import SimpleNamespace

import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import enqueue_latency, host_compiler
from service.worker.cuda.bindings import CudaError
from tests.worker.cuda.test_cuda import prepared


@pytest.fixture
def compilers(monkeypatch):
    """Sets the compilers that are looked for; what they have built is forgotten."""
    host_compiler.build_library.cache_clear()
    yield lambda *names: monkeypatch.setattr(host_compiler, "COMPILERS", names)
    host_compiler.build_library.cache_clear()


def enqueues(caller, launches=5):
    return prepared("enqueue_latency", metric="seconds", caller=caller, launches=launches)


@pytest.mark.parametrize("name", ["cc", "g++"])
def test_a_loop_in_c_calls_the_driver_as_often_as_asked(driver, compilers, name):
    if not shutil.which(name):
        pytest.skip(f"no {name}")
    compilers("no-such-compiler", name)
    with enqueues("c") as timed:
        driver.forget()
        assert timed.execute(3) > 0
        assert driver.journal == ["empty"] * 15
        assert timed.facts.library == "cuLaunchKernel from C"
        assert timed.facts.algorithm.startswith(f"loop compiled by {name} ")
        assert timed.facts.timer == "host_clock"
        assert timed.check() is None


def test_python_enqueues_through_cuda_bindings_and_takes_longer(driver):
    """Also where the driver itself does as much as the stand-in, which notes each call."""
    with enqueues("cuda_bindings", 500) as timed:
        driver.forget()
        took = min(timed.execute(1) for _ in range(5))
        assert driver.journal == ["empty"] * 2500
        assert timed.facts.library == "cuLaunchKernel through cuda-bindings"
        assert timed.facts.algorithm is None
    with enqueues("c", 500) as timed:
        assert took > min(timed.execute(1) for _ in range(5))


def test_without_a_compiler_c_is_unsupported_and_python_does_not_stand_in(driver, compilers):
    compilers("no-such-compiler")
    with (
        pytest.raises(Unsupported, match=r"^enqueue\.c needs a C compiler on the host: none of no-such-comp"),
        enqueues("c"),
    ):
        pass
    compilers("false")
    with pytest.raises(Unsupported, match=r"/false: no reason given$"), enqueues("c"):
        pass


def test_what_may_not_be_loaded_is_unsupported(driver, compilers, monkeypatch):
    """As from a temporary directory in which nothing may be executed."""

    def refuse(path):
        raise OSError(f"{path}: failed to map segment from shared object\nand more")

    monkeypatch.setattr(host_compiler.ctypes, "CDLL", refuse)
    with pytest.raises(Unsupported, match=r"^enqueue\.c cannot be loaded: .*shared object$"), enqueues("c"):
        pass


def test_a_launch_that_the_driver_refuses_is_a_failure(driver, monkeypatch):
    def time_enqueues(*_):
        return -719

    refusing = host_compiler.HostLibrary(SimpleNamespace(time_enqueues=time_enqueues), "a compiler")
    monkeypatch.setattr(enqueue_latency.host_compiler, "build_library", lambda _: refusing)
    with enqueues("c") as timed, pytest.raises(CudaError, match="CUDA_ERROR_LAUNCH_FAILED"):
        timed.execute(1)
