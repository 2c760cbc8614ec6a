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
    "decode_loop": _lazily("service.worker.cuda.decode"),
    "fft": _lazily("service.worker.cuda.fft"),
    "training_step": _lazily("service.worker.cuda.training"),
    "stream": _lazily("service.worker.cuda.stream"),
    "strided_read": _lazily("service.worker.cuda.strided"),
    "cache_stream": _lazily("service.worker.cuda.cache"),
    "bank_conflict": _lazily("service.worker.cuda.bank_conflict"),
    "divergence": _lazily("service.worker.cuda.divergence"),
    "occupancy": _lazily("service.worker.cuda.occupancy"),
    "host_link": _lazily("service.worker.cuda.link"),
    "optimizer_step": _lazily("service.worker.cuda.optimizer"),
    "gradient_accumulation": _lazily("service.worker.cuda.accumulation"),
    "gradient_compression": _lazily("service.worker.cuda.compression"),
    "peer_link": _lazily("service.worker.cuda.peer"),
    "collective": _lazily("service.worker.cuda.collective"),
    "external_tool": _lazily("service.worker.cuda.external"),
    "launch_latency": _lazily("service.worker.cuda.launch"),
    "power": _lazily("service.worker.cuda.power"),
    "capacity": _lazily("service.worker.cuda.capacity"),
    "context_memory": _lazily("service.worker.cuda.memory"),
    "host_stream": _lazily("service.worker.cpu.stream"),
    "storage": _lazily("service.worker.cpu.storage"),
}
"""What measures a kind of work, by its name in a suite; the last two do without the accelerator."""
