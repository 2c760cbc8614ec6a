"""Matrix products: BLAS for fp64 and fp32, NumPy's own loop for fp16."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.nodes import NodeGap, NodeSoftware
from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import GemmWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.blas import BlasLibrary, inspect_blas
from service.worker.cpu.host_timed import (
    NUMPY,
    BufferRotation,
    HostTimed,
    build_correctness,
    build_generator,
    build_rotation,
    compute_checksum,
)

CHECKED = 64
"""Entries of the product that are recomputed."""
SAFETY = 8
_TYPES = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16}
_LACKS = {
    "tf32": "NumPy has no reduced mode of fp32",
    "bf16": "NumPy has no bf16",
    "fp8_e4m3": "NumPy has no fp8",
    "int8": "NumPy accumulates products of int8 in int8, which wraps; int32 is required",
}


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """C = A B of shapes (m, k), (k, n) and (m, n), row-major, of numbers from normal(0, 1).

    Raises :class:`Unsupported` for a type that NumPy does not multiply.
    """
    del accelerator_index
    work = benchmark.get_work(GemmWork)
    if work.dtype not in _TYPES:
        raise Unsupported(_LACKS[work.dtype])
    dtype = np.dtype(_TYPES[work.dtype])
    set_bytes = dtype.itemsize * (work.m * work.k + work.k * work.n + work.m * work.n)
    turns = build_rotation(set_bytes)
    random = build_generator(benchmark, seed)
    drawn = np.float64 if dtype == np.float64 else np.float32
    a = random.standard_normal((work.m, work.k), drawn).astype(dtype, copy=False)
    b = random.standard_normal((work.k, work.n), drawn).astype(dtype, copy=False)
    # The product starts as NaN, so that an entry that is never written is noticed.
    sets = [(a.copy(), b.copy(), np.full((work.m, work.n), np.nan, dtype)) for _ in range(turns.count)]
    rows, columns = random.integers(work.m, size=CHECKED), random.integers(work.n, size=CHECKED)

    def multiply_set(index: int) -> None:
        left, right, product = sets[index]
        np.matmul(left, right, out=product)

    def verify_set(index: int) -> CorrectnessCheck:
        left, right, product = sets[index]
        return _verify_result(left, right, product, rows, columns)

    facts = _build_facts(dtype, inspect_blas(), turns)
    yield HostTimed(facts, multiply_set, verify_set)


def _build_facts(dtype: np.dtype, blas: BlasLibrary, turns: BufferRotation) -> MeasurementFacts:
    by_blas = dtype != np.float16
    threads = blas.threads if by_blas else 1
    gaps = turns.gaps
    if threads is None:
        gaps = (*gaps, NodeGap(pointer="/measurement/threads", code="not-reported", detail=f"by {blas.name}"))
    return MeasurementFacts(
        library=f"numpy {np.__version__} matmul, {f'{blas.name} {blas.version}' if by_blas else 'own loop'}",
        algorithm=f"kernels for {blas.kernels}" if by_blas and blas.kernels else None,
        accumulation="fp64" if dtype == np.float64 else "fp32",
        data="normal(0, 1), the same in every buffer",
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=threads,
        software=(NUMPY, NodeSoftware(name="blas", version=f"{blas.name} {blas.version}")),
        gaps=gaps,
    )


def _verify_result(
    a: np.ndarray, b: np.ndarray, product: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> CorrectnessCheck:
    """Sampled entries against exact sums of products in fp64.

    The rounding error of a sum of k products of random numbers grows as sqrt(k) u (Higham and Mary, SIAM J.
    Sci. Comput. 41, 2019), relative to the root mean square of the entries; 8 times that is let pass.
    """
    k = a.shape[1]
    wanted = np.array(
        [
            math.fsum(a[row].astype(np.float64) * b[:, column].astype(np.float64))
            for row, column in zip(rows, columns, strict=True)
        ]
    )
    found = product[rows, columns].astype(np.float64)
    scale = math.sqrt(float(np.mean(wanted * wanted)))
    rounding = np.finfo(product.dtype).eps / 2
    summing = np.finfo(np.float64 if product.dtype == np.float64 else np.float32).eps / 2
    return build_correctness(
        f"{len(wanted)} sampled entries against exact sums of products in fp64",
        float(np.max(np.abs(found - wanted))) / scale,
        SAFETY * float(rounding + math.sqrt(k) * summing),
        compute_checksum(product[rows, columns]),
    )
