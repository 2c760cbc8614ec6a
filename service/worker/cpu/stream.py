"""Memory bandwidth: arrays read, written, copied and added by every usable processor at once."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import STREAM_ARRAYS, WORD_BYTES, HostStream, Stream, StridedRead
from service.worker.benchmark import Facts, Prepared, Unsupported
from service.worker.cpu.host_timed import (
    NUMPY,
    HostTimed,
    Rotation,
    checksum,
    correctness,
    generator,
    rotation,
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
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[Prepared]:
    """One pattern over arrays of fp64: read sum(b), write a = s, copy a = b, triad a = b + s c.

    ``amount`` counts the bytes that the pattern names. What the memory moves on top of that is the fetch
    of a line before it is written, where the processor does not avoid it: up to ``array_bytes`` more of
    write, copy and triad. Triad is multiplied and added in blocks that stay in cache, so that its second pass
    over ``a`` costs no memory traffic: over whole arrays it would move 5 ``array_bytes`` for 3 that count.
    """
    del accelerator_index
    work = benchmark.work
    if not isinstance(work, Stream | HostStream):
        raise Unsupported(f"{work.kind} is not a stream")
    if work.array_bytes % ELEMENT_BYTES:
        raise Unsupported(f"arrays of fp64, and {work.array_bytes} bytes are no multiple of {ELEMENT_BYTES}")
    count = work.array_bytes // ELEMENT_BYTES
    turns = rotation(STREAM_ARRAYS[work.pattern] * work.array_bytes)
    random = generator(benchmark, seed)
    scalar = float(random.uniform(0.5, 1.5))
    sources = {"write": 0, "triad": 2}.get(work.pattern, 1)
    drawn = [random.random(count) for _ in range(sources)]
    targets = 0 if work.pattern == "read" else 1
    # Targets start as NaN, so that an element that is never written is noticed.
    sets = [
        [np.full(count, np.nan) for _ in range(targets)] + [source.copy() for source in drawn]
        for _ in range(turns.count)
    ]
    parts = split(count, len(usable_processors()))
    tasks = [[_task(work.pattern, arrays, part, scalar) for part in parts] for arrays in sets]
    facts = _facts(
        f"{_OPERATIONS[work.pattern]} of fp64",
        "uniform(0, 1), the same in every buffer" if drawn else "one number",
        turns,
        len(parts),
    )
    with side_by_side(tasks) as run:
        found: dict[int, list[object]] = {}
        yield HostTimed(
            facts,
            lambda index: found.__setitem__(index, run(index)),
            lambda index: _verified(work.pattern, sets[index], scalar, found[index]),
        )


@contextmanager
def prepare_strided(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[Prepared]:
    """The sum of words of fp32 that lie ``stride_bytes`` apart."""
    del accelerator_index
    work = benchmark.get_work(StridedRead)
    words = work.array_bytes // work.stride_bytes
    if not words:
        raise Unsupported(f"a stride of {work.stride_bytes} bytes in an array of {work.array_bytes}")
    step = work.stride_bytes // WORD_BYTES
    turns = rotation(work.array_bytes)
    drawn = generator(benchmark, seed).random(work.array_bytes // WORD_BYTES, np.float32)
    views = [drawn.copy()[: words * step : step] for _ in range(turns.count)]
    parts = split(words, len(usable_processors()))
    tasks = [[_sum(view[part]) for part in parts] for view in views]
    facts = _facts(
        f"add.reduce of fp32, {work.stride_bytes} bytes apart",
        "uniform(0, 1), the same in every buffer",
        turns,
        len(parts),
    )
    with side_by_side(tasks) as run:
        found: dict[int, list[object]] = {}
        yield HostTimed(
            facts,
            lambda index: found.__setitem__(index, run(index)),
            lambda index: _sum_verified(views[index], found[index]),
        )


def split(count: int, ways: int) -> list[Part]:
    """At most ``ways`` parts of ``count`` elements, equal but for whole cache lines."""
    lines = math.ceil(count / LINE)
    edges = [min(lines * way // ways * LINE, count) for way in range(ways + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]


@contextmanager
def side_by_side(tasks: list[list[Callable[[], object]]]) -> Iterator[Callable[[int], list[object]]]:
    """Runs the tasks of one number, each in a thread of its own; NumPy leaves the interpreter meanwhile."""
    if len(tasks[0]) == 1:
        yield lambda index: [tasks[index][0]()]
        return
    with ThreadPoolExecutor(len(tasks[0])) as pool:
        yield lambda index: list(pool.map(_call, tasks[index]))


def _call(task: Callable[[], object]) -> object:
    return task()


def _task(pattern: str, arrays: Arrays, part: Part, scalar: float) -> Callable[[], object]:
    views = [array[part] for array in arrays]
    match pattern:
        case "read":
            return _sum(views[0])
        case "write":
            return lambda: np.copyto(views[0], scalar)
        case "copy":
            return lambda: np.copyto(views[0], views[1])
        case _:
            return _triad(views, scalar)


def _sum(view: np.ndarray) -> Callable[[], object]:
    return lambda: np.add.reduce(view)


def _triad(views: Arrays, scalar: float) -> Callable[[], object]:
    blocks = [
        tuple(view[start : start + BLOCK] for view in views) for start in range(0, len(views[0]), BLOCK)
    ]
    multiply, add = np.multiply, np.add

    def run() -> None:
        for a, b, c in blocks:
            multiply(c, scalar, a)
            add(a, b, a)

    return run


def _facts(operation: str, data: str, turns: Rotation, threads: int) -> Facts:
    return Facts(
        library=f"numpy {np.__version__} {operation}",
        data=data,
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=threads,
        software=(NUMPY,),
        gaps=turns.gaps,
    )


def _verified(pattern: str, arrays: Arrays, scalar: float, found: list[object]) -> Correctness:
    """Every element against the formula in long double; of read, the sum against an exact one.

    Triad rounds twice, each time by at most u of a result that is a sum of positive numbers.
    """
    if pattern == "read":
        return _sum_verified(arrays[0], found)
    error = largest = np.longdouble(0)
    for start in range(0, len(arrays[0]), BLOCK):
        a, *sources = (array[start : start + BLOCK] for array in arrays)
        wanted = _formula(sources, np.longdouble(scalar))
        # np.maximum hands NaN on, which max() would lose.
        error = np.maximum(error, np.max(np.abs(a - wanted)))
        largest = np.maximum(largest, np.max(wanted))
    return correctness(
        "every element against the formula in long double",
        float(error / largest),
        float(np.finfo(np.float64).eps) if pattern == "triad" else 0.0,
        checksum(arrays[0][:BLOCK]),
    )


def _formula(sources: Arrays, scalar: np.longdouble) -> np.ndarray:
    if not sources:
        return np.array([scalar])
    if len(sources) == 1:
        return sources[0]
    b, c = sources
    return np.asarray(b + scalar * c)


def _sum_verified(array: np.ndarray, found: list[object]) -> Correctness:
    """Pairwise sums err by at most (16 + log2 n) u of the sum of magnitudes (Higham, Accuracy, 4.2)."""
    wanted = math.fsum(
        math.fsum(array[start : start + BLOCK].tolist()) for start in range(0, len(array), BLOCK)
    )
    parts = np.array(found, np.float64)
    rounding = float(np.finfo(array.dtype).eps) / 2
    return correctness(
        "sum of all elements against an exact sum",
        abs(math.fsum(parts) - wanted) / wanted,
        (16 + math.log2(len(array))) * 2 * rounding,
        checksum(parts),
    )
