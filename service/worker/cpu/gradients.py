"""Accumulation and compression of gradients, by NumPy on every usable processor."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import GradientAccumulationWork, GradientCompressionWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.host_timed import (
    NUMPY,
    BufferRotation,
    HostTimed,
    build_correctness,
    build_generator,
    build_rotation,
    compute_checksum,
)
from service.worker.cpu.stream import Part, open_task_pool, split_elements
from service.worker.cuda.numbers import decode_bf16
from service.worker.gradients import BLOCK, LARGEST, encode_bf16, quantize_int8, quantize_sign
from service.worker.host import usable_processors

AT_A_TIME = 16 * BLOCK
"""Gradients of one pass: with intermediate values they stay in the processor's own cache."""
SCALE_TOLERANCE = 1e-6

CompressionTask = Callable[[], object]


@contextmanager
def prepare_accumulation(
    benchmark: Benchmark, seed: int, accelerator_index: int | None
) -> Iterator[PreparedBenchmark]:
    """Prepares sums of fp32 and gradients of fp32, or of bf16 as raw bits, which NumPy can hold."""
    del accelerator_index
    work = benchmark.get_work(GradientAccumulationWork)
    turns = build_rotation((6 if work.gradient_dtype == "bf16" else 8) * work.parameters)
    random = build_generator(benchmark, seed)
    begun, gradient = (random.standard_normal(work.parameters, np.float32) for _ in range(2))
    kept = encode_bf16(gradient) if work.gradient_dtype == "bf16" else gradient
    sets = [(begun.copy(), kept.copy()) for _ in range(turns.count)]
    parts = split_elements(work.parameters, len(usable_processors()))
    tasks = [[_build_addition(total[part], own[part]) for part in parts] for total, own in sets]
    with open_task_pool(tasks) as run:

        def verify_set(index: int) -> CorrectnessCheck:
            total, own = sets[index]
            total[:] = begun
            run(index)
            wanted = begun + (decode_bf16(own) if own.dtype == np.uint16 else own)
            wrong = float(np.count_nonzero(total != wanted))
            return build_correctness("every sum from the seed", wrong, 0.0, compute_checksum(total))

        yield HostTimed(
            _build_facts(f"add of {work.gradient_dtype} to fp32", turns, len(parts)), run, verify_set
        )


def _build_addition(total: np.ndarray, gradient: np.ndarray) -> CompressionTask:
    if gradient.dtype == np.float32:
        return lambda: np.add(total, gradient, out=total)
    room = np.empty(AT_A_TIME, np.uint32)

    def add_gradient() -> None:
        for start in range(0, len(total), AT_A_TIME):
            part = total[start : start + AT_A_TIME]
            wide = room[: len(part)]
            np.left_shift(gradient[start : start + AT_A_TIME], 16, out=wide, dtype=np.uint32)
            np.add(part, wide.view(np.float32), out=part)

    return add_gradient


@contextmanager
def prepare_compression(
    benchmark: Benchmark, seed: int, accelerator_index: int | None
) -> Iterator[PreparedBenchmark]:
    """Prepares gradients and errors of fp32; the rounding loss is the error of the next execution.

    The largest are selected by one thread, because NumPy's selection has no more.
    """
    del accelerator_index
    work = benchmark.get_work(GradientCompressionWork)
    if work.parameters % BLOCK:
        raise Unsupported(f"the number of gradients must be a multiple of {BLOCK}")
    turns = build_rotation(8 * work.parameters)
    random = build_generator(benchmark, seed)
    gradient, error = (random.standard_normal(work.parameters, np.float32) for _ in range(2))
    sets = [(gradient.copy(), error.copy()) for _ in range(turns.count)]
    ways = 1 if work.method == "top_k" else len(usable_processors())
    parts = [
        slice(part.start * BLOCK, part.stop * BLOCK)
        for part in split_elements(work.parameters // BLOCK, ways)
    ]
    method = _METHODS[work.method](work, sets, parts)
    with open_task_pool(method.tasks) as run:

        def verify_set(index: int) -> CorrectnessCheck:
            sets[index][1][:] = error
            method.invalidate_result()
            method.run(index, run)
            wrong = method.count_errors(gradient + error, sets[index][1])
            return build_correctness(
                "all that is sent and kept from the seed", float(wrong), 0.0, compute_checksum(sets[index][1])
            )

        facts = _build_facts(f"compression, {work.method}", turns, len(parts))
        yield HostTimed(facts, lambda index: method.run(index, run), verify_set)


GradientSets = list[tuple[np.ndarray, np.ndarray]]
RunCompression = Callable[[int], list[object]]


class _Int8:
    """Compression to 8 bits and a scale for each block."""

    def __init__(self, work: GradientCompressionWork, sets: GradientSets, parts: list[Part]) -> None:
        self.sent = np.zeros(work.parameters, np.int8)
        self.scales = np.zeros(work.parameters // BLOCK, np.float32)
        self.tasks = [[self._build_task(*own, part) for part in parts] for own in sets]

    def run(self, index: int, run: RunCompression) -> None:
        """Compresses one set."""
        run(index)

    def invalidate_result(self) -> None:
        """Invalidates the compressed values."""
        self.sent[:], self.scales[:] = -128, np.nan

    def count_errors(self, values: np.ndarray, error: np.ndarray) -> int:
        """Counts differences from the expected compressed values and errors."""
        wanted = quantize_int8(values)
        found = (self.sent, self.scales, error)
        return sum(int(np.count_nonzero(one != other)) for one, other in zip(found, wanted, strict=True))

    def _build_task(self, gradient: np.ndarray, error: np.ndarray, part: Part) -> CompressionTask:
        room = np.empty((2, AT_A_TIME // BLOCK, BLOCK), np.float32)

        def compress_part() -> None:
            for start in range(part.start, part.stop, AT_A_TIME):
                here = slice(start, min(start + AT_A_TIME, part.stop))
                blocks = slice(here.start // BLOCK, here.stop // BLOCK)
                shape = (blocks.stop - blocks.start, BLOCK)
                p, t = room[0, : shape[0]], room[1, : shape[0]]
                np.add(gradient[here].reshape(shape), error[here].reshape(shape), out=p)
                np.abs(p, out=t)
                largest = t.max(axis=1)
                np.divide(largest, np.float32(LARGEST), out=self.scales[blocks])
                with np.errstate(divide="ignore"):
                    inverse = np.where(largest, np.float32(LARGEST) / largest, np.float32(0))
                np.multiply(p, inverse[:, None], out=t)
                np.rint(t, out=t)
                np.copyto(self.sent[here].reshape(shape), t, casting="unsafe")
                np.multiply(t, self.scales[blocks, None], out=t)
                np.subtract(p, t, out=error[here].reshape(shape))

        return compress_part


class _Sign:
    """Compression to one bit and the mean size, which is known once every part has been summed."""

    def __init__(self, work: GradientCompressionWork, sets: GradientSets, parts: list[Part]) -> None:
        self.sent = np.zeros(work.parameters // 8, np.uint8)
        self.scale = np.float32(0)
        self._count = work.parameters
        self.tasks = [
            tasks
            for own in sets
            for tasks in (
                [_build_size_task(*own, part) for part in parts],
                [self._build_sign_task(own[1], part) for part in parts],
            )
        ]

    def run(self, index: int, run: RunCompression) -> None:
        """Compresses one set in two rounds."""
        self.scale = np.float32(math.fsum(np.array(run(2 * index), np.float64)) / self._count)
        run(2 * index + 1)

    def invalidate_result(self) -> None:
        """Invalidates the compressed values."""
        self.sent[:] = ~self.sent
        self.scale = np.float32(np.nan)

    def count_errors(self, values: np.ndarray, error: np.ndarray) -> int:
        """Counts differences from the expected compressed values and errors."""
        mean = float(np.abs(values).mean(dtype=np.float64))
        below, lost = quantize_sign(values, self.scale)
        wrong = int(np.count_nonzero(np.unpackbits(self.sent).astype(bool) != below))
        wrong += int(np.count_nonzero(error != lost))
        return wrong + (not abs(float(self.scale) - mean) <= SCALE_TOLERANCE * mean)

    def _build_sign_task(self, error: np.ndarray, part: Part) -> CompressionTask:
        room, below = np.empty(AT_A_TIME, np.float32), np.empty(AT_A_TIME, bool)

        def write_signs() -> None:
            for start in range(part.start, part.stop, AT_A_TIME):
                p = error[start : min(start + AT_A_TIME, part.stop)]
                t, bits = room[: p.size], below[: p.size]
                np.less(p, 0, out=bits)
                self.sent[start // 8 : start // 8 + p.size // 8] = np.packbits(bits)
                np.copysign(self.scale, p, out=t)
                np.subtract(p, t, out=p)

        return write_signs


def _build_size_task(gradient: np.ndarray, error: np.ndarray, part: Part) -> CompressionTask:
    """Builds a task that adds the gradients to the errors and returns the sum of sizes."""
    room = np.empty(AT_A_TIME, np.float32)

    def sum_sizes() -> float:
        total = 0.0
        for start in range(part.start, part.stop, AT_A_TIME):
            here = slice(start, min(start + AT_A_TIME, part.stop))
            p, t = error[here], room[: here.stop - here.start]
            np.add(gradient[here], p, out=p)
            np.abs(p, out=t)
            total += float(np.add.reduce(t, dtype=np.float64))
        return total

    return sum_sizes


class _TopK:
    """Compression to the largest values and their positions."""

    def __init__(self, work: GradientCompressionWork, sets: GradientSets, _parts: list[Part]) -> None:
        self._kept = max(math.ceil(work.kept_share * work.parameters), 1)
        self.places = np.zeros(self._kept, np.int64)
        self.values = np.zeros(self._kept, np.float32)
        self._sizes = np.empty(work.parameters, np.float32)
        self.tasks = [[self._build_task(*own)] for own in sets]

    def run(self, index: int, run: RunCompression) -> None:
        """Compresses one set."""
        run(index)

    def invalidate_result(self) -> None:
        """Invalidates the compressed values."""
        self.places[:], self.values[:] = 0, np.nan

    def count_errors(self, values: np.ndarray, error: np.ndarray) -> int:
        """Counts differences from the expected compressed values and errors."""
        whole, least = error.copy(), np.sort(np.abs(values))[-self._kept]
        whole[self.places] += self.values
        return (
            int(np.count_nonzero(whole != values))
            + int(np.count_nonzero(~(np.abs(self.values) >= least)))
            + self._kept
            - np.unique(self.places).size
        )

    def _build_task(self, gradient: np.ndarray, error: np.ndarray) -> CompressionTask:
        def select_largest() -> None:
            np.add(gradient, error, out=error)
            np.abs(error, out=self._sizes)
            self.places[:] = np.argpartition(self._sizes, -self._kept)[-self._kept :]
            self.values[:] = error[self.places]
            error[self.places] = 0

        return select_largest


_METHODS: dict[str, Callable[[GradientCompressionWork, GradientSets, list[Part]], _Int8 | _Sign | _TopK]] = {
    "int8": _Int8,
    "sign": _Sign,
    "top_k": _TopK,
}


def _build_facts(operation: str, turns: BufferRotation, threads: int) -> MeasurementFacts:
    return MeasurementFacts(
        library=f"numpy {np.__version__} {operation}",
        accumulation="fp32",
        data="normal(0, 1), the same in every buffer",
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=threads,
        software=(NUMPY,),
        gaps=turns.gaps,
    )
