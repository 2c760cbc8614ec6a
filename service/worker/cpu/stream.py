"""Memory bandwidth: arrays read, written, copied and added by every usable processor at once."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.memory import (
    STREAM_ARRAYS,
    WORD_BYTES,
    HostStreamWork,
    StreamWork,
    StridedReadWork,
)
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
from service.worker.host import usable_processors

ELEMENT_BYTES = 8
BLOCK = 2**15
"""Elements that triad multiplies before it adds to them: 256 KiB, which stay in cache."""
LINE = 64 // ELEMENT_BYTES
_OPERATIONS = {
    "read": "add.reduce",
    "write": "copyto of a scalar",
    "copy": "copyto",
    "triad": "multiply, add",
}

Arrays = list[np.ndarray]
Part = slice


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """One pattern over arrays of fp64: read sum(b), write a = s, copy a = b, triad a = b + s c.

    ``amount`` counts the bytes that the pattern names. What the memory moves on top of that is the fetch
    of a line before it is written, where the processor does not avoid it: up to ``array_bytes`` more of
    write, copy and triad. Triad is multiplied and added in blocks that stay in cache, so that its second pass
    over ``a`` costs no memory traffic: over whole arrays it would move 5 ``array_bytes`` for 3 that count.
    """
    del accelerator_index
    work = benchmark.work
    if not isinstance(work, StreamWork | HostStreamWork):
        raise Unsupported(f"{work.kind} is not a stream")
    if work.array_bytes % ELEMENT_BYTES:
        raise Unsupported(f"arrays of fp64, and {work.array_bytes} bytes are no multiple of {ELEMENT_BYTES}")
    count = work.array_bytes // ELEMENT_BYTES
    turns = build_rotation(STREAM_ARRAYS[work.pattern] * work.array_bytes)
    random = build_generator(benchmark, seed)
    scalar = float(random.uniform(0.5, 1.5))
    sources = {"write": 0, "triad": 2}.get(work.pattern, 1)
    drawn = [random.random(count) for _ in range(sources)]
    targets = 0 if work.pattern == "read" else 1
    # Targets start as NaN, so that an element that is never written is noticed.
    sets = [
        [np.full(count, np.nan) for _ in range(targets)] + [source.copy() for source in drawn]
        for _ in range(turns.count)
    ]
    parts = split_elements(count, len(usable_processors()))
    tasks = [[_build_task(work.pattern, arrays, part, scalar) for part in parts] for arrays in sets]
    facts = _build_facts(
        f"{_OPERATIONS[work.pattern]} of fp64",
        "uniform(0, 1), the same in every buffer" if drawn else "one number",
        turns,
        len(parts),
    )
    with open_task_pool(tasks) as run:
        found: dict[int, list[object]] = {}
        yield HostTimed(
            facts,
            lambda index: found.__setitem__(index, run(index)),
            lambda index: _verify_result(work.pattern, sets[index], scalar, found[index]),
        )


@contextmanager
def prepare_strided(
    benchmark: Benchmark, seed: int, accelerator_index: int | None
) -> Iterator[PreparedBenchmark]:
    """The sum of words of fp32 that lie ``stride_bytes`` apart."""
    del accelerator_index
    work = benchmark.get_work(StridedReadWork)
    words = work.array_bytes // work.stride_bytes
    if not words:
        raise Unsupported(f"a stride of {work.stride_bytes} bytes in an array of {work.array_bytes}")
    step = work.stride_bytes // WORD_BYTES
    turns = build_rotation(work.array_bytes)
    drawn = build_generator(benchmark, seed).random(work.array_bytes // WORD_BYTES, np.float32)
    views = [drawn.copy()[: words * step : step] for _ in range(turns.count)]
    parts = split_elements(words, len(usable_processors()))
    tasks = [[_build_sum(view[part]) for part in parts] for view in views]
    facts = _build_facts(
        f"add.reduce of fp32, {work.stride_bytes} bytes apart",
        "uniform(0, 1), the same in every buffer",
        turns,
        len(parts),
    )
    with open_task_pool(tasks) as run:
        found: dict[int, list[object]] = {}
        yield HostTimed(
            facts,
            lambda index: found.__setitem__(index, run(index)),
            lambda index: _verify_sum(views[index], found[index]),
        )


def split_elements(count: int, ways: int) -> list[Part]:
    """At most ``ways`` parts of ``count`` elements, equal but for whole cache lines."""
    lines = math.ceil(count / LINE)
    edges = [min(lines * way // ways * LINE, count) for way in range(ways + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]


@contextmanager
def open_task_pool(tasks: list[list[Callable[[], object]]]) -> Iterator[Callable[[int], list[object]]]:
    """Opens a pool that runs the tasks of one number in a thread each; NumPy releases the GIL."""
    if len(tasks[0]) == 1:
        yield lambda index: [tasks[index][0]()]
        return
    with ThreadPoolExecutor(len(tasks[0])) as pool:
        yield lambda index: list(pool.map(_call_task, tasks[index]))


def _call_task(task: Callable[[], object]) -> object:
    return task()


def _build_task(pattern: str, arrays: Arrays, part: Part, scalar: float) -> Callable[[], object]:
    views = [array[part] for array in arrays]
    match pattern:
        case "read":
            return _build_sum(views[0])
        case "write":
            return lambda: np.copyto(views[0], scalar)
        case "copy":
            return lambda: np.copyto(views[0], views[1])
        case _:
            return _build_triad(views, scalar)


def _build_sum(view: np.ndarray) -> Callable[[], object]:
    return lambda: np.add.reduce(view)


def _build_triad(views: Arrays, scalar: float) -> Callable[[], object]:
    blocks = [
        tuple(view[start : start + BLOCK] for view in views) for start in range(0, len(views[0]), BLOCK)
    ]
    multiply, add = np.multiply, np.add

    def run_triad() -> None:
        for a, b, c in blocks:
            multiply(c, scalar, a)
            add(a, b, a)

    return run_triad


def _build_facts(operation: str, data: str, turns: BufferRotation, threads: int) -> MeasurementFacts:
    return MeasurementFacts(
        library=f"numpy {np.__version__} {operation}",
        data=data,
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=threads,
        software=(NUMPY,),
        gaps=turns.gaps,
    )


def _verify_result(pattern: str, arrays: Arrays, scalar: float, found: list[object]) -> CorrectnessCheck:
    """Every element against the formula in long double; of read, the sum against an exact one.

    Triad rounds twice, each time by at most u of a result that is a sum of positive numbers.
    """
    if pattern == "read":
        return _verify_sum(arrays[0], found)
    error = largest = np.longdouble(0)
    for start in range(0, len(arrays[0]), BLOCK):
        a, *sources = (array[start : start + BLOCK] for array in arrays)
        wanted = _compute_expected(sources, np.longdouble(scalar))
        # np.maximum hands NaN on, which max() would lose.
        error = np.maximum(error, np.max(np.abs(a - wanted)))
        largest = np.maximum(largest, np.max(wanted))
    return build_correctness(
        "every element against the formula in long double",
        float(error / largest),
        float(np.finfo(np.float64).eps) if pattern == "triad" else 0.0,
        compute_checksum(arrays[0][:BLOCK]),
    )


def _compute_expected(sources: Arrays, scalar: np.longdouble) -> np.ndarray:
    if not sources:
        return np.array([scalar])
    if len(sources) == 1:
        return sources[0]
    b, c = sources
    return np.asarray(b + scalar * c)


def _verify_sum(array: np.ndarray, found: list[object]) -> CorrectnessCheck:
    """Pairwise sums err by at most (16 + log2 n) u of the sum of magnitudes (Higham, Accuracy, 4.2)."""
    wanted = math.fsum(
        math.fsum(array[start : start + BLOCK].tolist()) for start in range(0, len(array), BLOCK)
    )
    parts = np.array(found, np.float64)
    rounding = float(np.finfo(array.dtype).eps) / 2
    return build_correctness(
        "sum of all elements against an exact sum",
        abs(math.fsum(parts) - wanted) / wanted,
        (16 + math.log2(len(array))) * 2 * rounding,
        compute_checksum(parts),
    )
