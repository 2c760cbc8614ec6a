"""Copies between several accelerators at once, by the copy engines: each pair on a stream of its own.

Every byte of every pair is checked.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import permutations

from service.protocol.suites import Benchmark
from service.protocol.work.links import PeerLinkWork, PeerMatrixWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.device import CudaDevice
from service.worker.cuda.peer_link import CopyDirection, PeerCopies, enable_peer_access


class PeerMatrix(PeerCopies):
    """Copies of all pairs of a pattern, from before the first to after the last."""

    def __init__(
        self, ranks: Sequence[CudaDevice], work: PeerMatrixWork, seed: int, through_host: int
    ) -> None:
        one_way = PeerLinkWork(
            kind="peer_link", direction="one_way", method="copy_engine", transfer_bytes=work.transfer_bytes
        )
        self._ways = []
        for number, (source, target) in enumerate(list_pairs(work, ranks)):
            way = CopyDirection(source, target, one_way, numbers.derive_seed(seed, number))
            source.make_current()
            way.stream = source.create_stream()
            self._ways.append(way)
        self._first = self._ways[0].source
        self._first.make_current()
        self._driver, self._events = (
            self._first.driver,
            (self._first.create_event(), self._first.create_event()),
        )
        through = f"{through_host} of them by way of the host" if through_host else "directly"
        self.facts = MeasurementFacts(
            library="cuMemcpyPeerAsync",
            algorithm=f"copy engines, {work.pattern} of {len(ranks)}, {len(self._ways)} pairs, {through}",
            data="random bytes",
            timer="cuda_event",
            working_set_bytes=2 * work.transfer_bytes * len(self._ways),
            software=self._first.list_software(),
        )


def list_pairs(work: PeerMatrixWork, ranks: Sequence[CudaDevice]) -> list[tuple[CudaDevice, CudaDevice]]:
    """Returns the source and the target of each pair."""
    first, *others = ranks
    match work.pattern:
        case "all_to_one":
            return [(other, first) for other in others]
        case "one_to_all":
            return [(first, other) for other in others]
        case "all_to_all":
            return list(permutations(ranks, 2))


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares buffers of all pairs; raises :class:`Unsupported` if there are fewer accelerators."""
    work = benchmark.work
    if not isinstance(work, PeerMatrixWork):
        raise Unsupported(f"{work.kind} is not a matrix of copies between accelerators")
    chosen = devices.select_indices(index, work.devices)
    with ExitStack() as stack:
        ranks = [stack.enter_context(devices.open_device(each)) for each in chosen]
        reached = {
            frozenset((one.ordinal, other.ordinal)): enable_peer_access(one.driver, one, other)
            for place, one in enumerate(ranks)
            for other in ranks[place + 1 :]
        }
        pairs = list_pairs(work, ranks)
        through = sum(not reached[frozenset((one.ordinal, other.ordinal))] for one, other in pairs)
        yield PeerMatrix(ranks, work, seed, through)
