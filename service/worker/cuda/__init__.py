"""Benchmarks of an NVIDIA accelerator. Nothing of CUDA is imported before a benchmark runs."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module

from service.protocol.suites import Benchmark
from service.worker.benchmark import BenchmarkPreparer, PreparedBenchmark


def _load_lazily(module: str) -> BenchmarkPreparer:
    def import_and_prepare(
        benchmark: Benchmark, seed: int, index: int | None
    ) -> AbstractContextManager[PreparedBenchmark]:
        found: Callable[..., AbstractContextManager[PreparedBenchmark]] = import_module(module).prepare
        return found(benchmark, seed, index)

    return import_and_prepare


PREPARE: dict[str, BenchmarkPreparer] = {
    "gemm": _load_lazily("service.worker.cuda.gemm"),
    "attention": _load_lazily("service.worker.cuda.attention"),
    "decode_loop": _load_lazily("service.worker.cuda.decode"),
    "fft": _load_lazily("service.worker.cuda.fft"),
    "training_step": _load_lazily("service.worker.cuda.training"),
    "stream": _load_lazily("service.worker.cuda.stream"),
    "strided_read": _load_lazily("service.worker.cuda.strided"),
    "cache_stream": _load_lazily("service.worker.cuda.cache"),
    "bank_conflict": _load_lazily("service.worker.cuda.bank_conflict"),
    "divergence": _load_lazily("service.worker.cuda.divergence"),
    "occupancy": _load_lazily("service.worker.cuda.occupancy"),
    "host_link": _load_lazily("service.worker.cuda.link"),
    "optimizer_step": _load_lazily("service.worker.cuda.optimizer"),
    "gradient_accumulation": _load_lazily("service.worker.cuda.accumulation"),
    "gradient_compression": _load_lazily("service.worker.cuda.compression"),
    "peer_link": _load_lazily("service.worker.cuda.peer"),
    "collective": _load_lazily("service.worker.cuda.collective"),
    "external_tool": _load_lazily("service.worker.cuda.external"),
    "launch_latency": _load_lazily("service.worker.cuda.launch"),
    "power": _load_lazily("service.worker.cuda.power"),
    "capacity": _load_lazily("service.worker.cuda.capacity"),
    "context_memory": _load_lazily("service.worker.cuda.memory"),
    "host_stream": _load_lazily("service.worker.cpu.stream"),
    "storage": _load_lazily("service.worker.cpu.storage"),
}
"""Preparers by kind of work in a suite; the last two do not use the accelerator."""
