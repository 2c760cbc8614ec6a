"""Size of a benchmark on a small or busy device: the largest that its free memory holds."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from service.protocol.nodes import NodeGap
from service.protocol.suites import Benchmark
from service.worker.benchmark import BenchmarkPreparer, NoRoom, PreparedBenchmark, Unsupported

REDUCED_SIZE = "reduced-size"
"""Code of the gap in place of the size that was asked for."""


class SizedBenchmark(NamedTuple):
    """A prepared benchmark, and its size."""

    benchmark: Benchmark
    prepared: PreparedBenchmark
    gaps: tuple[NodeGap, ...] = ()
    """The reason that it is smaller than was asked for, if it is."""


@contextmanager
def prepare_largest(
    prepare: BenchmarkPreparer, sizes: Iterable[Benchmark], seed: int, index: int | None
) -> Iterator[SizedBenchmark]:
    """Prepares the first of some sizes, from the largest down, that the device has room for.

    Raises:
        Unsupported: There is room for none of them, or the caches hold too much of the first that fits.
    """
    refusals: list[NoRoom] = []
    for size in sizes:
        with ExitStack() as stack:
            try:
                prepared = stack.enter_context(prepare(size, seed, index))
            except NoRoom as error:
                # A copy: the traceback of the error keeps what a library has allocated.
                refusals.append(NoRoom(str(error), error.uncached_bytes))
                continue
            if not refusals:
                yield SizedBenchmark(size, prepared)
                return
            _check_uncached(size, prepared, refusals[0])
            yield SizedBenchmark(size, prepared, (_build_gap(size, refusals[0]),))
            return
    raise refusals[0]


def _check_uncached(size: Benchmark, prepared: PreparedBenchmark, refusal: NoRoom) -> None:
    """Raises :class:`Unsupported` if data of work that memory bounds could stay in the cache."""
    data = prepared.facts.working_set_bytes
    if size.work.is_memory_bound(size.metric) and data < refusal.uncached_bytes:
        raise Unsupported(f"{refusal}; {data} bytes fit, of {refusal.uncached_bytes} that no cache holds")


def _build_gap(size: Benchmark, refusal: NoRoom) -> NodeGap:
    members = ", ".join(f"{name} {getattr(size.work, name)}" for name in size.work.halved)
    return NodeGap(pointer="/benchmark/work", code=REDUCED_SIZE, detail=f"{refusal}: measured with {members}")
