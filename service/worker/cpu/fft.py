"""Complex transforms of one dimension by numpy.fft, which uses one thread."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import Fft
from service.worker.benchmark import Facts, Prepared
from service.worker.cpu.host_timed import NUMPY, HostTimed, checksum, correctness, generator, rotation

CHECKED = 8
"""Points of the transform that are computed again."""
SAFETY = 8
_TYPES: dict[str, np.dtype[np.complexfloating]] = {
    "fp32": np.dtype(np.complex64),
    "fp64": np.dtype(np.complex128),
}


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[Prepared]:
    """Transforms of shape (batch, points) along the last axis, of parts from normal(0, 1)."""
    del accelerator_index
    work = benchmark.work
    assert isinstance(work, Fft)  # noqa: S101  # the registry chose by kind
    dtype = _TYPES[work.dtype]
    shape = (work.batch, work.points)
    set_bytes = 2 * work.batch * work.points * dtype.itemsize
    turns = rotation(set_bytes)
    random = generator(benchmark, seed)
    drawn = random.standard_normal(
        (work.batch, 2 * work.points), np.float32 if work.dtype == "fp32" else np.float64
    )
    signal = drawn.view(dtype)
    # The spectrum starts as NaN, so that a point that is never written is noticed.
    sets = [(signal.copy(), np.full(shape, np.nan, dtype)) for _ in range(turns.count)]
    rows, points = random.integers(work.batch, size=CHECKED), random.integers(work.points, size=CHECKED)

    def run(index: int) -> None:
        source, spectrum = sets[index]
        np.fft.fft(source, out=spectrum)

    facts = Facts(
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
    yield HostTimed(facts, run, lambda index: _verified(*sets[index], rows, points))


def _verified(source: np.ndarray, spectrum: np.ndarray, rows: np.ndarray, points: np.ndarray) -> Correctness:
    """Sampled points against the sum that defines them, X[k] = sum x[j] exp(-2 pi i j k / n), in fp64.

    Errors of fast transforms grow as u log2 n at most, relative to the root mean square of the spectrum
    (Higham, Accuracy and Stability, 24.1); 8 times that is let pass.
    """
    count = source.shape[1]
    found = spectrum[rows, points]
    errors = [
        abs(complex(value) - _defined(source[row].astype(np.complex128), int(point)))
        / math.sqrt(math.fsum(np.abs(source[row].astype(np.complex128)) ** 2))
        for row, point, value in zip(rows, points, found, strict=True)
    ]
    rounding = float(np.finfo(spectrum.dtype).eps) / 2
    return correctness(
        f"{len(errors)} sampled points against the defining sum in fp64",
        float(np.max(errors)),
        SAFETY * rounding * (1 + math.log2(count)),
        checksum(found),
    )


def _defined(signal: np.ndarray, point: int) -> complex:
    count = len(signal)
    # Reduced in integers first: an angle of many turns would lose the digits that matter.
    turns = np.arange(count, dtype=np.int64) * point % count
    terms = signal * np.exp(-2j * np.pi / count * turns)
    return complex(math.fsum(terms.real), math.fsum(terms.imag))
