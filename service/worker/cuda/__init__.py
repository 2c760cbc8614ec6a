"""What an NVIDIA accelerator is asked to do. Nothing of CUDA is imported before a benchmark runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module

from service.protocol.suites import Benchmark
from service.worker.benchmark import Prepare, Prepared


def _lazily(module: str) -> Prepare:
    def prepare(benchmark: Benchmark, seed: int, index: int | None) -> AbstractContextManager[Prepared]:
        found: Callable[..., AbstractContextManager[Prepared]] = import_module(module).prepare
        return found(benchmark, seed, index)

    return prepare


PREPARE: dict[str, Prepare] = {
    "gemm": _lazily("service.worker.cuda.gemm"),
    "attention": _lazily("service.worker.cuda.attention"),
    "fft": _lazily("service.worker.cuda.fft"),
    "stream": _lazily("service.worker.cuda.stream"),
    "strided_read": _lazily("service.worker.cuda.strided"),
    "host_link": _lazily("service.worker.cuda.link"),
    "peer_link": _lazily("service.worker.cuda.peer"),
    "collective": _lazily("service.worker.cuda.collective"),
    "launch_latency": _lazily("service.worker.cuda.launch"),
    "power": _lazily("service.worker.cuda.power"),
    "context_memory": _lazily("service.worker.cuda.memory"),
}
"""What measures a kind of work, by its name in a suite."""
