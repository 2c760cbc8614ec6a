"""Lookup of the benchmarks of a device: a module prepares the kind of work that it is named after."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from pkgutil import iter_modules

from service.protocol.suites import Benchmark
from service.protocol.work import WORK_KINDS
from service.worker.benchmark import BenchmarkPreparer, PreparedBenchmark


def find_preparers(package: str, path: list[str]) -> dict[str, BenchmarkPreparer]:
    """Returns the preparer of each kind of work that a package has a module of.

    A module is imported when its benchmark is prepared, so that no other benchmark needs its libraries.
    """
    names = {module.name for module in iter_modules(path)}
    return {kind: _import_lazily(f"{package}.{kind}") for kind in WORK_KINDS if kind in names}


def _import_lazily(module: str) -> BenchmarkPreparer:
    def import_and_prepare(
        benchmark: Benchmark, seed: int, index: int | None
    ) -> AbstractContextManager[PreparedBenchmark]:
        found: Callable[..., AbstractContextManager[PreparedBenchmark]] = import_module(module).prepare
        return found(benchmark, seed, index)

    return import_and_prepare
