"""Attention by NumPy: products of BLAS and a softmax over tiles of queries, in fp32."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.arithmetic import AttentionWork
from service.worker.benchmark import MeasurementFacts, PreparedBenchmark, Unsupported
from service.worker.cpu.blas import inspect_blas
from service.worker.cpu.decoder import apply_softmax
from service.worker.cpu.host_timed import (
    NUMPY,
    HostTimed,
    build_correctness,
    build_generator,
    build_rotation,
    compute_checksum,
)

QUERY_TILE = 256
CHECKED = 8
"""Rows of the result that are recomputed."""
SAFETY = 8
_UNIT = float(np.finfo(np.float32).eps) / 2


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Q, K and V of shapes (batch, kv heads, group x queries or keys, head size), from normal(0, 1).

    Heads of a query that share keys are rows of one product. Raises :class:`Unsupported` for a type that
    NumPy does not multiply by BLAS, and for back ends of PyTorch.
    """
    del accelerator_index
    work = benchmark.get_work(AttentionWork)
    if work.back_end != "own":
        raise Unsupported(f"{work.back_end} is not measured on cpu")
    if work.suite_form > 1:
        raise Unsupported("pages, 8 bits, gradients and values of their own size are not measured on cpu")
    if work.dtype != "fp32":
        raise Unsupported(f"NumPy multiplies no {work.dtype} by BLAS")
    queries = work.context_tokens if work.phase == "prefill" else 1
    group = work.query_heads // work.kv_heads
    shape = (work.batch, work.kv_heads, group, queries, work.head_size)
    cache = (work.batch, work.kv_heads, work.context_tokens, work.head_size)
    turns = build_rotation(work.count_work().moved_bytes)
    random = build_generator(benchmark, seed)
    drawn = [random.standard_normal(each, np.float32) for each in (shape, cache, cache)]
    # The result starts as NaN, so that a row that is never written is noticed.
    sets = [
        (drawn[0].copy(), drawn[1].copy(), drawn[2].copy(), np.full(shape, np.nan, np.float32))
        for _ in range(turns.count)
    ]
    places = [tuple(int(random.integers(size)) for size in shape[:4]) for _ in range(CHECKED)]
    is_causal = work.phase == "prefill"
    blas = inspect_blas()
    facts = MeasurementFacts(
        library=f"numpy {np.__version__} matmul, {blas.name} {blas.version}",
        algorithm=f"tiles of {QUERY_TILE} queries of a head"
        if is_causal
        else "the queries of a head at once",
        accumulation="fp32",
        data="normal(0, 1), the same in every buffer",
        timer="host_clock",
        working_set_bytes=turns.total_bytes,
        rotated_buffers=turns.count,
        threads=blas.threads,
        software=(NUMPY,),
        gaps=turns.gaps,
    )
    yield HostTimed(
        facts,
        lambda index: compute_attention(*sets[index], is_causal=is_causal),
        lambda index: _verify_result(*sets[index], places, is_causal=is_causal),
    )


def compute_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, out: np.ndarray, *, is_causal: bool
) -> None:
    """Softmax(Q K^T / sqrt(d)) V into ``out``; a prompt in tiles, and of the keys only what it may see."""
    batch, kv_heads, group, queries, head = q.shape
    scale = np.float32(1 / math.sqrt(head))
    for sequence in range(batch):
        for kv in range(kv_heads):
            keys, values = k[sequence, kv], v[sequence, kv]
            if not is_causal:
                rows = q[sequence, kv].reshape(group, head)
                out[sequence, kv, :, 0] = apply_softmax(rows @ keys.T * scale) @ values
                continue
            for member in range(group):
                for first in range(0, queries, QUERY_TILE):
                    last = min(first + QUERY_TILE, queries)
                    scores = q[sequence, kv, member, first:last] @ keys[:last].T * scale
                    unseen = np.arange(first, last) > np.arange(first, last)[:, None]
                    scores[:, first:last][unseen] = -np.inf
                    np.matmul(apply_softmax(scores), values[:last], out=out[sequence, kv, member, first:last])


def _verify_result(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    places: list[tuple[int, ...]],
    *,
    is_causal: bool,
) -> CorrectnessCheck:
    """Sampled rows against fp64.

    A score of ``d`` products is off by sqrt(d) u and its weight by as much, at random (Higham and Mary, SIAM
    J. Sci. Comput. 41, 2019), relative to the root mean square of a row; 8 times that is let pass.
    """
    errors, found = [], []
    for sequence, kv, member, query in places:
        seen = query + 1 if is_causal else k.shape[2]
        keys, values = (part[sequence, kv, :seen].astype(np.float64) for part in (k, v))
        scores = keys @ q[sequence, kv, member, query].astype(np.float64) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max())
        wanted = weights / weights.sum() @ values
        found.append(out[sequence, kv, member, query])
        errors.append(np.abs(found[-1] - wanted).max() / math.sqrt(float(np.mean(wanted * wanted))))
    return build_correctness(
        f"{len(errors)} sampled rows against fp64",
        float(np.max(errors)),
        SAFETY * _UNIT * (1 + math.sqrt(q.shape[-1]) + math.sqrt(k.shape[2])),
        compute_checksum(np.stack(found)),
    )
