"""Complex transforms by numpy.fft, of one to three dimensions; it uses one thread."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import FftWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.host_timed import (
    NUMPY,
    HostTimed,
    build_correctness,
    build_generator,
    build_rotation,
    compute_checksum,
)
from service.worker.fourier import compute_points, compute_tolerance

CHECKED = 8
"""Points of a transform that are recomputed."""
_TYPES: dict[str, np.dtype[np.complexfloating]] = {
    "fp32": np.dtype(np.complex64),
    "fp64": np.dtype(np.complex128),
}


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Transforms of shape (batch, points...) along all axes but the first, of parts from normal(0, 1).

    Raises :class:`Unsupported` for half precision and for transforms in place, which NumPy does not have.
    """
    del accelerator_index
    work = benchmark.get_work(FftWork)
    if work.dtype not in _TYPES:
        raise Unsupported(f"NumPy transforms no {work.dtype}")
    if work.in_place:
        raise Unsupported("NumPy transforms nothing in place")
    dtype = _TYPES[work.dtype]
    shape = (work.batch, *[work.points] * work.dimensions)
    elements = work.points**work.dimensions
    turns = build_rotation(2 * work.batch * elements * dtype.itemsize)
    random = build_generator(benchmark, seed)
    drawn = random.standard_normal(
        (work.batch, 2 * elements), np.float32 if work.dtype == "fp32" else np.float64
    )
    signal = drawn.view(dtype).reshape(shape)
    # The spectrum starts as NaN, so that a point that is never written is noticed.
    sets = [(signal.copy(), np.full(shape, np.nan, dtype)) for _ in range(turns.count)]
    row = int(random.integers(work.batch))
    points = random.integers(work.points, size=(CHECKED, work.dimensions))
    axes = tuple(range(1, work.dimensions + 1))

    def transform_set(index: int) -> None:
        source, spectrum = sets[index]
        if work.dimensions == 1:
            np.fft.fft(source, out=spectrum)
        else:
            np.fft.fftn(source, axes=axes, out=spectrum)

    facts = MeasurementFacts(
        library=f"numpy {np.__version__} fft",
        accumulation=work.dtype,
        data="normal(0, 1) real and imaginary, the same in every buffer",
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=1,
        software=(NUMPY,),
        gaps=turns.gaps,
    )
    yield HostTimed(facts, transform_set, lambda index: _verify_result(*sets[index], row, points))


def _verify_result(
    source: np.ndarray, spectrum: np.ndarray, row: int, points: np.ndarray
) -> CorrectnessCheck:
    """Sampled points of one transform against the sum that defines them, in fp64."""
    signal = source[row].reshape(-1)
    found = spectrum[row][tuple(points.T)]
    expected, scale = compute_points(
        lambda first, count: signal[first : first + count].astype(np.complex128),
        source.shape[1],
        source.ndim - 1,
        points,
    )
    return build_correctness(
        f"{len(found)} sampled points against the defining sum in fp64",
        float(np.max(np.abs(found.astype(np.complex128) - expected)) / scale),
        compute_tolerance(float(np.finfo(spectrum.dtype).eps) / 2, signal.size),
        compute_checksum(found),
    )
