"""Attention of random numbers: by cuDNN, packages for PyTorch, its own back ends, or own kernels.

Own kernels follow the order of FlashAttention-2: 128 queries a block for prompts; decoding reads the cache
once, in parts of the context; heads have 64 or 128 elements. PyTorch runs ``scaled_dot_product_attention`` on
the stream that is timed, which is held until all of its calls are queued: one takes the host up to 0.1 ms.
Rows of some heads are checked against float64.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np

from service.protocol.nodes import NodeGap
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import AttentionWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cuda import device as devices
from service.worker.cuda import numbers
from service.worker.cuda.attention_packages import FlashAttention3, FlashInferAttention, PackageAttention
from service.worker.cuda.attention_reference import (
    STORED,
    WIDTHS,
    AttentionReference,
    compute_sizes,
    decode_elements,
    list_input_sizes,
)
from service.worker.cuda.bindings import list_versions, load_module
from service.worker.cuda.cudnn import CudnnAttention, CudnnMissing
from service.worker.cuda.device import CACHE_SHARE, CudaDevice, run_kernel
from service.worker.errors import get_first_line

TOLERANCES = {"fp32": 1e-4, "bf16": 3e-2, "fp16": 4e-3, "fp8_e4m3": 0.35}
"""Largest error over the root mean square of a row of the result.

The largest element of a row is about 3.5 of these and is rounded to half a unit in the last of 8 and 11 bits:
7e-3 and 9e-4. Weights are rounded as well, which adds 2^-9 and 2^-12 at random; PyTorch's `math` also rounds
the scores, of which the largest is about 4. fp8 has 4 bits: 0.22 of the largest element, and 0.04 at random.
"""
GRADIENT_TOLERANCES = {"bf16": 6e-2, "fp16": 8e-3}
"""Twice those of a result: gradients are products of weights and of scores' gradients, which are rounded."""
QUERY_TILE = 128
GROUP_ROWS = 16
TILE_KEYS = 16
WARPS = 8
TRIALS = 3
CHECKED_HEADS = 4
BACK_ENDS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}


class CudaAttention:
    """The kernels of ``attention.cu``; raises :class:`Unsupported` for work that they do not cover."""

    gaps: tuple[NodeGap, ...] = ()
    result_scale = 1.0

    def __init__(self, device: CudaDevice, work: AttentionWork) -> None:
        _check_support(device, work)
        width, sizes = WIDTHS[work.dtype], compute_sizes(work)
        self.q, self.result = (device.allocate(width * sizes.query) for _ in range(2))
        self.k, self.v = (device.allocate(width * sizes.key) for _ in range(2))
        self.inputs = self.q, self.k, self.v
        self._device, self._work = device, work
        self.library = "own kernel attention"
        self.software = device.list_software()
        if work.phase == "prefill":
            units = work.batch * work.query_heads
            blocks = units * -(-work.context_tokens // QUERY_TILE)
            kernel = device.load_kernel("attention.cu", f"prefill_{work.dtype}_{work.head_size}")
            shape = (work.batch, work.query_heads, work.kv_heads, work.context_tokens)
            self.queue = device.build_launch(kernel, blocks, self.q, self.k, self.v, self.result, *shape)
            self.algorithm = f"{blocks} blocks of {QUERY_TILE} queries"

    def finish_setup(self) -> None:
        """Chooses by trial the number of parts in which the context of a decoding step is read."""
        if self._work.phase == "prefill":
            return
        device, work = self._device, self._work
        units, most = (
            count_decode_units(work.batch, work.query_heads, work.kv_heads),
            compute_most_splits(work),
        )
        rows = work.batch * work.query_heads
        length = device.allocate(8)
        device.to_device(length, np.array([work.context_tokens], np.uint64))
        sums = device.allocate(4 * rows * most * work.head_size)
        tops = device.allocate(8 * rows * most)
        shared = (
            work.dtype,
            work.head_size,
            work.batch,
            work.query_heads,
            work.kv_heads,
            work.context_tokens,
        )
        found = []
        for splits in [2**power for power in range(most.bit_length()) if 2**power <= most]:
            shape = DecodeQuery(*shared, splits)
            matrices = self.q, self.k, self.v, self.result
            queue = build_decode_launch(device, shape, matrices, (sums, tops, length))
            device.time_work(queue)
            found.append((min(self._time_launch(queue) for _ in range(TRIALS)), splits, queue))
        _, splits, self.queue = min(found, key=lambda each: each[0])
        self.algorithm = f"{units * splits} blocks, context in {splits} parts; fastest of {len(found)}"

    def _time_launch(self, queue: Callable[[], None]) -> int:
        self._device.flush_cache()
        return self._device.time_work(queue)

    def open_context(self) -> ExitStack:
        """Returns an empty context: nothing has to be set."""
        return ExitStack()

    def get_result_address(self) -> int:
        """Returns the address of the result."""
        return self.result

    def invalidate_result(self) -> None:
        """Invalidates the result."""
        size = WIDTHS[self._work.dtype] * compute_sizes(self._work).query
        run_kernel(self._device, ("flush.cu", "spoil"), self.result, size // 16, 0xFFFFFFFF)


def require_first_form(work: AttentionWork, back_end: str) -> None:
    """Raises :class:`Unsupported` for pages, 8 bits, the backward pass, and values of their own size."""
    if work.suite_form > 1:
        raise Unsupported(f"{back_end} is not used for pages, 8 bits, gradients and values of their own size")


def _check_support(device: CudaDevice, work: AttentionWork) -> None:
    require_first_form(work, "the own kernel")
    if work.head_size > 128:  # noqa: PLR2004  # the largest of which a warp keeps the result in registers
        raise Unsupported("own kernels require heads of 64 or 128 elements")
    if work.dtype == "fp32" and work.phase == "prefill":
        raise Unsupported("the own kernel for prompts requires bf16 or fp16")
    if device.capability < (8, 0):
        raise Unsupported("own kernels of attention require compute capability 8.0 or newer")


def count_decode_units(batch: int, query_heads: int, kv_heads: int) -> int:
    """Counts the blocks that read the cache once: one per sequence, key head and 16 query heads of it."""
    return batch * kv_heads * -(-query_heads // kv_heads // GROUP_ROWS)


def compute_most_splits(work: AttentionWork) -> int:
    """Returns the most parts of the context: each warp has a tile, and sums take at most 1/8 of the cache."""
    tiles = -(-work.context_tokens // (TILE_KEYS * WARPS))
    cache = 2 * WIDTHS[work.dtype] * compute_sizes(work).key
    return max(min(tiles, 64, cache // 8 // (4 * compute_sizes(work).query)), 1)


class DecodeQuery(NamedTuple):
    """One query a sequence over a cache with room for ``capacity`` keys, read in ``splits`` parts."""

    dtype: str
    head_size: int
    batch: int
    query_heads: int
    kv_heads: int
    capacity: int
    splits: int


def build_decode_launch(
    device: CudaDevice,
    shape: DecodeQuery,
    matrices: tuple[int, int, int, int],
    work_space: tuple[int, int, int],
) -> Callable[[], None]:
    """Builds a launch over Q, K, V and the result, with ``sums``, ``tops`` and ``length`` as work space.

    ``sums`` has 4 bytes, times rows, splits and ``head_size``; ``tops`` 8 bytes, times rows and splits;
    ``length`` is a word of 64 bits on the device, so that a graph can be replayed as the context grows.
    """
    q, k, v, result = matrices
    sums, tops, length = work_space
    dtype, head_size, batch, query_heads, kv_heads, capacity, splits = shape
    blocks = count_decode_units(batch, query_heads, kv_heads) * splits
    decode = device.build_launch(
        device.load_kernel("attention.cu", f"decode_{dtype}_{head_size}"),
        blocks, q, k, v, sums, tops, length, capacity, query_heads // kv_heads, splits,
    )  # fmt: skip
    rows = batch * query_heads
    combine = device.build_launch(
        device.load_kernel("attention.cu", f"combine_{dtype}"),
        -(-rows * head_size // devices.THREADS), sums, tops, result, rows, head_size, splits,
    )  # fmt: skip

    def enqueue_decode() -> None:
        decode()
        combine()

    return enqueue_decode


class TorchAttention:
    """One of the back ends of scaled_dot_product_attention, and no other, on the stream of the device."""

    algorithm: str | None = None
    gaps: tuple[NodeGap, ...] = ()
    result_scale = 1.0

    def __init__(self, device: CudaDevice, work: AttentionWork) -> None:
        require_first_form(work, "PyTorch")
        self._torch = torch = load_module("torch")
        self._work, self._attention = work, load_module("torch.nn.attention")
        self._back_end = getattr(self._attention.SDPBackend, BACK_ENDS[work.back_end])
        # PyTorch would otherwise use TF32 for fp32 if a setting allows it.
        torch.backends.cuda.matmul.allow_tf32 = False
        where = torch.device("cuda", device.ordinal)
        # Otherwise PyTorch returns to the context of its first device after each call.
        torch.cuda.set_device(where)
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[work.dtype]
        queries = work.context_tokens if work.phase == "prefill" else 1
        shapes = (work.query_heads, queries), *[(work.kv_heads, work.context_tokens)] * 2
        try:
            self._tensors = [
                torch.empty((work.batch, *shape, work.head_size), dtype=dtype, device=where)
                for shape in shapes
            ]
        except torch.cuda.OutOfMemoryError as error:
            raise device.build_refusal(get_first_line(error)) from None
        self.q, self.k, self.v = (int(tensor.data_ptr()) for tensor in self._tensors)
        self.inputs = self.q, self.k, self.v
        self._stream = torch.cuda.ExternalStream(device.stream, device=where)
        self._out: Any = None
        self.library = f"torch {torch.__version__} scaled_dot_product_attention {BACK_ENDS[work.back_end]}"
        self.software = (*device.list_software(), *list_versions("torch"))

    def finish_setup(self) -> None:
        """Runs once; raises :class:`Unsupported` if the back end does not support these shapes."""
        try:
            with self.open_context():
                self.queue()
        except RuntimeError as error:
            raise Unsupported(f"{BACK_ENDS[self._work.back_end]}: {get_first_line(error)}") from None

    def open_context(self) -> ExitStack:
        """Returns the context in which it runs, with back end and stream set."""
        stack = ExitStack()
        stack.enter_context(self._torch.inference_mode())
        stack.enter_context(self._torch.cuda.stream(self._stream))
        stack.enter_context(self._attention.sdpa_kernel(self._back_end))
        return stack

    def queue(self) -> None:
        """Enqueues one execution on the stream."""
        work = self._work
        self._out = self._torch.nn.functional.scaled_dot_product_attention(
            *self._tensors,
            is_causal=work.phase == "prefill",
            enable_gqa=work.query_heads != work.kv_heads,
        )

    def get_result_address(self) -> int:
        """Returns the address of the contiguous result: a back end may leave rows in another order."""
        with self.open_context():
            self._out = self._out.contiguous()
        return int(self._out.data_ptr())

    def invalidate_result(self) -> None:
        """Drops the result; the next may have another address."""
        self._out = None


BackEnd = CudaAttention | TorchAttention | CudnnAttention | PackageAttention
PACKAGES = {"flash3": FlashAttention3, "flashinfer": FlashInferAttention}


class AttentionTimed:
    """Attention by one back end. Data that could be cached are flushed before each execution."""

    def __init__(self, device: CudaDevice, work: AttentionWork, seed: int, back_end: BackEnd) -> None:
        self._device, self._work, self._back_end = device, work, back_end
        counts, fill = list_input_sizes(work), ("random.cu", numbers.FILLS[work.dtype])
        self._seeds = [numbers.derive_seed(seed, number) for number in range(4)]
        self._reference = AttentionReference(work, self._seeds, seed)
        for address, count, of_array in zip(
            back_end.inputs, counts, _order_seeds(work, self._seeds), strict=True
        ):
            run_kernel(device, fill, address, count, of_array)
        back_end.finish_setup()
        self._flushes_each = work.count_work().moved_bytes < CACHE_SHARE * device.l2_bytes
        self.facts = MeasurementFacts(
            library=back_end.library,
            algorithm=back_end.algorithm,
            accumulation="fp32",
            data=numbers.NORMAL,
            timer="cuda_event",
            working_set_bytes=work.count_work().moved_bytes,
            flush_bytes=device.flush_bytes,
            software=back_end.software,
            gaps=back_end.gaps,
        )

    def execute(self, iterations: int) -> int:
        """Returns nanoseconds of ``iterations`` executions after a flush; of few data, each after its own."""
        if self._flushes_each:
            return sum(self._time_executions(1) for _ in range(iterations))
        return self._time_executions(iterations)

    def _time_executions(self, iterations: int) -> int:
        def enqueue_executions() -> None:
            for _ in range(iterations):
                self._back_end.queue()

        with self._back_end.open_context():
            return self._device.time_queued(enqueue_executions)

    def check(self) -> CorrectnessCheck:
        """Compares rows of some heads, with first and last of a prompt, with float64 from the seed."""
        self._back_end.invalidate_result()
        with self._back_end.open_context():
            self._back_end.queue()
        if self._work.phase == "backward":
            errors, tolerance = self._compute_gradient_errors(), GRADIENT_TOLERANCES[self._work.dtype]
        else:
            errors, tolerance = self._compute_result_errors(), TOLERANCES[self._work.dtype]
        largest = float(np.max(errors))
        largest = min(largest, 1e30) if np.isfinite(largest) else 1e30
        return CorrectnessCheck(
            method=f"{len(errors)} rows against float64 of the same numbers",
            largest_error=largest,
            tolerance=tolerance,
            passed=largest <= tolerance,
        )

    def _compute_result_errors(self) -> list[float]:
        address, errors = self._back_end.get_result_address(), list[float]()
        for unit, queries in self._select_rows():
            expected = self._reference.compute_rows(unit, queries)
            found = np.stack([self._read_row(address, unit, query) for query in queries])
            errors += _compute_errors(found / self._back_end.result_scale, expected)
        return errors

    def _compute_gradient_errors(self) -> list[float]:
        """Compares rows of all three gradients, and the sums of that of V over all keys."""
        if not isinstance(self._back_end, CudnnAttention):
            raise Unsupported("gradients are computed by cuDNN alone")
        work, reference = self._work, self._reference
        of_queries, of_keys, of_values = self._back_end.get_gradient_addresses()
        errors = list[float]()
        for unit, queries in self._select_rows():
            # The first query sees one key: its gradient is zero.
            later = [query for query in queries if query]
            wanted = reference.compute_query_gradients(unit, later)
            start = unit * work.queries
            found = np.stack([self._read(of_queries, start + each, 1, work.head_size)[0] for each in later])
            errors += _compute_errors(found, wanted)
            kv_unit = unit // (work.query_heads // work.kv_heads)
            gradients, first = reference.compute_key_gradients(kv_unit), kv_unit * work.context_tokens
            for place, key in enumerate(reference.list_last_keys()):
                row = self._read(of_keys, first + key, 1, work.head_size)
                errors += _compute_errors(row, gradients.keys[place : place + 1])
                row = self._read(of_values, first + key, 1, work.values)
                errors += _compute_errors(row, gradients.values[place : place + 1])
            whole = self._read(of_values, first, work.context_tokens, work.values).sum(axis=0, keepdims=True)
            errors += _compute_errors(whole, gradients.sum_of_values[None])
        return errors

    def _select_rows(self) -> list[tuple[int, list[int]]]:
        """Selects heads of queries, counted through the sequences, and queries of each."""
        work = self._work
        units, last = work.batch * work.query_heads, work.context_tokens - 1
        drawn = numbers.generate_bits(self._seeds[0] ^ 1, np.arange(2 * CHECKED_HEADS)).reshape(-1, 2)
        chosen = [units - 1, *[int(unit) % units for unit in drawn[1:, 0]]]
        if work.phase == "decode":
            return [(unit, [0]) for unit in chosen]
        return [
            (unit, sorted({0, last, int(query) % (last + 1)}))
            for unit, query in zip(chosen, drawn[:, 1], strict=True)
        ]

    def _read_row(self, address: int, unit: int, query: int) -> np.ndarray[Any, Any]:
        row = unit * self._work.queries + query
        return np.asarray(self._read(address, row, 1, self._work.values)[0])

    def _read(self, address: int, first: int, count: int, size: int) -> np.ndarray[Any, Any]:
        """Reads neighbouring rows of a matrix on the device."""
        held = np.empty((count, size), STORED[self._work.dtype])
        self._device.to_host(held, address + first * size * held.itemsize)
        return decode_elements(self._work.dtype, held)


def _order_seeds(work: AttentionWork, seeds: list[int]) -> list[int]:
    """Returns the seed of each input: Q, K, V unless it is part of K, and the gradient of the result."""
    of_query, of_key, of_value, of_gradient = seeds
    found = [of_query, of_key, *([] if work.shares_latent else [of_value])]
    return [*found, of_gradient] if work.phase == "backward" else found


def _compute_errors(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> list[float]:
    """Returns the largest error of each row, over the root mean square of the expected row."""
    errors = np.abs(found - expected).max(axis=1) / np.sqrt(np.mean(expected**2, axis=1))
    return [float(error) for error in errors]


@contextmanager
def prepare(benchmark: Benchmark, seed: int, index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares Q, K and V from the seed; raises :class:`Unsupported` if the back end cannot run them."""
    work = benchmark.work
    if not isinstance(work, AttentionWork):
        raise Unsupported(f"{work.kind} is not attention")
    with devices.open_device(index) as device, ExitStack() as stack:
        needed = WIDTHS[work.dtype] * sum(compute_sizes(work)) * (2 if work.phase == "backward" else 1)
        device.demand_room(needed)
        yield AttentionTimed(device, work, seed, _open_back_end(device, work, seed, stack))


def _open_back_end(device: CudaDevice, work: AttentionWork, seed: int, stack: ExitStack) -> BackEnd:
    """Opens the back end of the work. cuDNN runs through PyTorch where its front end is missing."""
    match work.back_end:
        case "own":
            return CudaAttention(device, work)
        case "cudnn":
            return _open_cudnn(device, work, seed, stack)
        case "flash3" | "flashinfer":
            return PACKAGES[work.back_end](device, work, seed)
        case _:
            return TorchAttention(device, work)


def _open_cudnn(
    device: CudaDevice, work: AttentionWork, seed: int, stack: ExitStack
) -> CudnnAttention | TorchAttention:
    try:
        return CudnnAttention(device, work, seed, stack)
    except CudnnMissing as missing:
        try:
            through = TorchAttention(device, work)
        except Unsupported:
            raise missing from None
        through.gaps = (NodeGap(pointer="/measurement/library", code="no-front-end", detail=str(missing)),)
        return through
