"""Shared parts of decoding and training of a small decoder: its arrays, kernels and products."""

import math
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from service.protocol.work.training import DecodeLoopWork, TrainingStepWork
from service.worker.benchmark import MeasurementFacts, Unsupported
from service.worker.cuda import numbers
from service.worker.cuda.bindings import list_versions
from service.worker.cuda.cublaslt import (
    KINDS,
    Matmul,
    MatmulAlgorithm,
    MatrixProduct,
    time_proposals,
)
from service.worker.cuda.device import THREADS, CudaDevice, run_kernel
from service.worker.decoder import compute_rotary_angles, generate_tokens, get_table_number, list_matrices

QueueLaunch = Callable[[], None]
WAVES = 8
TRIALS = 3
STORED = {"bf16": "u2", "fp32": "f4"}


class CudaDecoder:
    """A decoder on a device: all memory is allocated and every launch packed before anything is timed."""

    def __init__(
        self, device: CudaDevice, work: DecodeLoopWork | TrainingStepWork, seed: int, stack: ExitStack
    ) -> None:
        self.device, self.work, self.seed = device, work, seed
        self.width = work.element_bytes
        self._stack = stack
        self._products: dict[MatrixProduct, tuple[Matmul, MatmulAlgorithm]] = {}
        self._first: Matmul | None = None
        self.most_blocks = device.multiprocessors * WAVES
        self.matrices = list_matrices(work)

    def fill_weights(self) -> None:
        """Allocates and fills every matrix and the embedding table from the seed."""
        work = self.work
        self.weights = {
            name: self.allocate_array(each.rows * each.columns) for name, each in self.matrices.items()
        }
        self.table = self.allocate_array(work.vocabulary * work.hidden)
        self.refill_weights()

    def refill_weights(self) -> None:
        """Resets the weights to their initial values."""
        for name, each in self.matrices.items():
            self.fill_array(self.weights[name], each.number, each.rows * each.columns)
        self.fill_array(self.table, get_table_number(self.work), self.work.vocabulary * self.work.hidden)

    def fill_array(self, address: int, number: int, count: int) -> None:
        """Fills an array with numbers of the seed."""
        name = numbers.FILLS[self.work.dtype]
        run_kernel(self.device, ("random.cu", name), address, count, numbers.derive_seed(self.seed, number))

    def allocate_array(self, count: int, width: int | None = None) -> int:
        """Allocates elements of the type of the work or of another width, and returns the address."""
        return self.device.allocate(max(count * (width or self.width), 16))

    def upload_array(self, held: np.ndarray[Any, Any]) -> int:
        """Uploads a copy and returns its address."""
        address = self.allocate_array(held.nbytes, 1)
        self.device.to_device(address, np.ascontiguousarray(held))
        return address

    def generate_token_ids(self, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """Generates the first token ids of the seed."""
        return generate_tokens(self.work, self.seed, np.arange(count))

    def upload_angles(self, positions: int) -> int:
        """Uploads interleaved cosines and sines, and returns the address."""
        parts = compute_rotary_angles(np.arange(positions), self.work.head_size)
        return self.upload_array(np.stack(parts, axis=-1).astype(np.float32))

    def read_values(self, address: int, count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Reads values from an address as float64."""
        held = np.empty(count, STORED[self.work.dtype])
        self.device.to_host(held, address)
        return (numbers.decode_bf16(held) if self.work.dtype == "bf16" else held).astype(np.float64)

    def read_weights(self, number: int, first: int, count: int) -> np.ndarray[Any, Any]:
        """Reads weights of a matrix or of the embedding table by its number among the arrays, as fp32."""
        address = [*self.weights.values(), self.table][number]
        held = np.empty(count, STORED[self.work.dtype])
        self.device.to_host(held, address + first * self.width)
        return numbers.decode_bf16(held) if self.work.dtype == "bf16" else held

    def build_element_launch(self, name: str, elements: int, *arguments: int) -> QueueLaunch:
        """Builds a launch with a thread an element."""
        return self._build_launch(name, -(-elements // THREADS), *arguments)

    def build_row_launch(self, name: str, rows: int, *arguments: int) -> QueueLaunch:
        """Builds a launch with a block a row."""
        return self._build_launch(name, rows, *arguments)

    def build_plain_launch(self, name: str, *arguments: int) -> QueueLaunch:
        """Builds a launch of a kernel of one block without a type."""
        return self.device.build_launch(self.device.load_kernel("decoder.cu", name), 1, *arguments)

    def _build_launch(self, name: str, blocks: int, *arguments: int) -> QueueLaunch:
        kernel = self.device.load_kernel("decoder.cu", f"{name}_{self.work.dtype}")
        return self.device.build_launch(kernel, max(min(blocks, self.most_blocks), 1), *arguments)

    def build_product(
        self, shape: MatrixProduct, a: int, b: int, c: int, added: int | None = None
    ) -> QueueLaunch:
        """Builds C = alpha A B + beta C by cuBLASLt's fastest proposal, timed on the first of a shape."""
        if shape not in self._products:
            matmul = Matmul(self.device, shape, self._stack, self._first)
            self._first = self._first or matmul
            times, _ = time_proposals(
                self.device,
                matmul,
                lambda algorithm: self._time_algorithm(matmul, algorithm, a, b, c),
                math.inf,
            )
            self._products[shape] = matmul, min(times, key=lambda pair: pair[0])[1]
        matmul, algorithm = self._products[shape]
        return lambda: matmul.enqueue_product(algorithm, a, b, c, added)

    def _time_algorithm(self, matmul: Matmul, algorithm: MatmulAlgorithm, a: int, b: int, c: int) -> int:
        def time_once() -> int:
            self.device.flush_cache()
            return self.device.time_work(lambda: matmul.enqueue_product(algorithm, a, b, c))

        time_once()
        return min(time_once() for _ in range(TRIALS))

    def build_facts(self, *, own: str, working_set_bytes: int, uses_graph: bool) -> MeasurementFacts:
        """Builds the facts for the record."""
        if self._first is None:
            raise Unsupported("no product was built")
        return MeasurementFacts(
            library=f"cublasLt {self._first.version}, own kernels {own}",
            algorithm=f"{len(self._products)} shapes of products, each by the fastest proposal",
            math_mode=self._first.mode,
            accumulation=KINDS[self.work.dtype].accumulation,
            data=f"weights and cache: {numbers.NORMAL}; token ids uniform",
            timer="cuda_event",
            working_set_bytes=working_set_bytes,
            flush_bytes=self.device.flush_bytes,
            uses_graph=uses_graph,
            software=(*self.device.list_software(), *list_versions("nvmath-python", "nvidia-cublas")),
        )


def chain_launches(launches: list[QueueLaunch]) -> QueueLaunch:
    """Chains launches in sequence."""

    def enqueue_all() -> None:
        for launch in launches:
            launch()

    return enqueue_all
