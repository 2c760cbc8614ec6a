"""What decoding and training of a small decoder share: its arrays, its kernels, its products."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from service.protocol.work import DecodeLoop, TrainingStep
from service.worker.benchmark import Facts, Unsupported
from service.worker.cuda import numbers
from service.worker.cuda.bindings import versions
from service.worker.cuda.cublaslt import KINDS, Algorithm, Matmul, Product
from service.worker.cuda.device import THREADS, Device, run
from service.worker.decoder import matrices, table_number, tokens, turns

Queue = Callable[[], None]
WAVES = 8
TRIALS = 3
STORED = {"bf16": "u2", "fp32": "f4"}


class Net:
    """A decoder on a device: everything is allocated and every launch packed before anything is timed."""

    def __init__(self, device: Device, work: DecodeLoop | TrainingStep, seed: int, stack: ExitStack) -> None:
        self.device, self.work, self.seed = device, work, seed
        self.width = work.element_bytes
        self._stack = stack
        self._products: dict[Product, tuple[Matmul, Algorithm]] = {}
        self._first: Matmul | None = None
        self.most_blocks = device.multiprocessors * WAVES
        self.matrices = matrices(work)

    def fill_weights(self) -> None:
        """Every matrix and the table of tokens, from the seed."""
        work = self.work
        self.weights = {name: self.array(each.rows * each.columns) for name, each in self.matrices.items()}
        self.table = self.array(work.vocabulary * work.hidden)
        self.refill_weights()

    def refill_weights(self) -> None:
        """The weights as they were at first."""
        for name, each in self.matrices.items():
            self.fill(self.weights[name], each.number, each.rows * each.columns)
        self.fill(self.table, table_number(self.work), self.work.vocabulary * self.work.hidden)

    def fill(self, address: int, number: int, count: int) -> None:
        """Numbers of the seed."""
        name = numbers.FILLS[self.work.dtype]
        run(self.device, ("random.cu", name), address, count, numbers.seed_of(self.seed, number))

    def array(self, count: int, width: int | None = None) -> int:
        """Address of as many elements, of the type of the work or of another width."""
        return self.device.allocate(max(count * (width or self.width), 16))

    def uploaded(self, held: np.ndarray[Any, Any]) -> int:
        """Address of a copy."""
        address = self.array(held.nbytes, 1)
        self.device.to_device(address, np.ascontiguousarray(held))
        return address

    def token_ids(self, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """The first token ids of the seed."""
        return tokens(self.work, self.seed, np.arange(count))

    def angles(self, positions: int) -> int:
        """Address of cosines and sines, side by side."""
        parts = turns(np.arange(positions), self.work.head_size)
        return self.uploaded(np.stack(parts, axis=-1).astype(np.float32))

    def values(self, address: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """What lies there."""
        held = np.empty(count, STORED[self.work.dtype])
        self.device.to_host(held, address)
        return (numbers.bf16_from_bits(held) if self.work.dtype == "bf16" else held).astype(np.float64)

    def over(self, name: str, elements: int, *arguments: int) -> Queue:
        """A kernel with a thread an element."""
        return self._launch(name, -(-elements // THREADS), *arguments)

    def rows(self, name: str, rows: int, *arguments: int) -> Queue:
        """A kernel with a block a row."""
        return self._launch(name, rows, *arguments)

    def plain(self, name: str, *arguments: int) -> Queue:
        """A kernel of one block that has no type."""
        return self.device.launcher(self.device.kernel("decoder.cu", name), 1, *arguments)

    def _launch(self, name: str, blocks: int, *arguments: int) -> Queue:
        kernel = self.device.kernel("decoder.cu", f"{name}_{self.work.dtype}")
        return self.device.launcher(kernel, max(min(blocks, self.most_blocks), 1), *arguments)

    def product(self, shape: Product, a: int, b: int, c: int, added: int | None = None) -> Queue:
        """C = alpha A B + beta C by the fastest of cuBLASLt's proposals, tried on the first of its shape."""
        if shape not in self._products:
            matmul = Matmul(self.device, shape, self._stack, self._first)
            self._first = self._first or matmul
            times = [
                (self._trial(matmul, algorithm, a, b, c), place, algorithm)
                for place, algorithm in enumerate(matmul.algorithms())
            ]
            self._products[shape] = matmul, min(times)[2]
        matmul, algorithm = self._products[shape]
        return lambda: matmul.queue(algorithm, a, b, c, added)

    def _trial(self, matmul: Matmul, algorithm: Algorithm, a: int, b: int, c: int) -> int:
        def once() -> int:
            self.device.flush()
            return self.device.timed(lambda: matmul.queue(algorithm, a, b, c))

        once()
        return min(once() for _ in range(TRIALS))

    def facts(self, *, own: str, working_set_bytes: int, uses_graph: bool) -> Facts:
        """For the record."""
        if self._first is None:
            raise Unsupported("no product was asked for")
        return Facts(
            library=f"cublasLt {self._first.version}, own kernels {own}",
            algorithm=f"{len(self._products)} shapes of products, each by the fastest proposal",
            math_mode=self._first.mode,
            accumulation=KINDS[self.work.dtype].accumulation,
            data=f"weights and cache: {numbers.NORMAL}; token ids uniform",
            timer="cuda_event",
            working_set_bytes=working_set_bytes,
            flush_bytes=self.device.flush_bytes,
            uses_graph=uses_graph,
            software=(*self.device.software(), *versions("nvmath-python", "nvidia-cublas")),
        )


def in_turn(launches: list[Queue]) -> Queue:
    """All of them, one after the other."""

    def queue() -> None:
        for launch in launches:
            launch()

    return queue
