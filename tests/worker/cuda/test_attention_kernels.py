"""Attention on this processor, its tensor cores included, against float64."""

import shutil

import numpy as np
import pytest

from service.worker.cuda import numbers
from tests.worker.cuda.host_kernels import counted, run

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="no g++ to run the kernels with")
ERRORS = {"fp32": 1e-6, "fp16": 2e-3, "bf16": 1.5e-2}
"""Of the largest result here, which is about 4: half a unit in the last place of 8 and 11 bits."""


def drawn(dtype, *shape):
    """Numbers as they lie in memory."""
    values = np.random.default_rng(len(shape) + shape[-2]).normal(size=shape).astype(np.float32)
    if dtype == "bf16":
        return (numbers.round_to_bf16(values).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16 if dtype == "fp16" else np.float32)


def values_of(dtype, held):
    return (numbers.decode_bf16(held) if dtype == "bf16" else held).astype(np.float64)


def attention(q, k, v, *, is_causal):
    """Queries (sequence, head, query, element), keys and values of every head that shares them."""
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat(group, 1).transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    if is_causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v.repeat(group, 1)


@pytest.mark.parametrize(
    ("dtype", "head", "tokens"),
    [("bf16", 64, 150), ("bf16", 128, 33), ("fp16", 128, 130), ("fp16", 64, 1)],
)
def test_a_prompt_is_causal_and_its_queries_share_keys(dtype, head, tokens):
    """Of whole tiles and parts of them; nothing behind the last token is written."""
    q, k, v = (
        drawn(dtype, 2, 2, tokens, head),
        drawn(dtype, 2, 1, tokens, head),
        drawn(dtype, 2, 1, tokens, head),
    )
    held = np.full(q.size + 64, 0x7FFF, np.uint16)
    run("attention.cu", f"prefill_{dtype}_{head}", 4 * -(-tokens // 128), 256, q, k, v, held, 2, 2, 1, tokens)
    found = values_of(dtype, held[: q.size].view(q.dtype)).reshape(q.shape)
    expected = attention(*(values_of(dtype, part) for part in (q, k, v)), is_causal=True)
    assert np.abs(found - expected).max() < ERRORS[dtype]
    assert set(held[q.size :].tolist()) == {0x7FFF}


@pytest.mark.parametrize(
    ("dtype", "head", "tokens", "group", "splits"),
    [("bf16", 128, 333, 4, 2), ("bf16", 64, 17, 20, 3), ("fp16", 64, 256, 1, 1), ("fp32", 128, 77, 9, 3)],
)
def test_a_query_reads_its_cache_once(dtype, head, tokens, group, splits):
    """Of a cache with room behind the last token, in parts that need not have any of it."""
    q, capacity = drawn(dtype, 2, group, 1, head), tokens + 5
    k, v = drawn(dtype, 2, 1, capacity, head), drawn(dtype, 2, 1, capacity, head)
    sums = np.full(2 * group * splits * head, np.nan, np.float32)
    tops = np.full(2 * group * splits * 2, np.nan, np.float32)
    slices, length = -(-group // 16), np.array([tokens], np.uint64)
    touched = counted(
        "attention.cu", f"decode_{dtype}_{head}", 2 * slices * splits, 256,
        q, k, v, sums, tops, length, capacity, group, splits,
    )  # fmt: skip
    out = np.zeros_like(q)
    run("attention.cu", f"combine_{dtype}", 2, 256, sums, tops, out, 2 * group, head, splits)
    expected = attention(
        values_of(dtype, q), *(values_of(dtype, part)[:, :, :tokens] for part in (k, v)), is_causal=False
    )
    assert np.abs(values_of(dtype, out) - expected).max() < ERRORS[dtype]
    if group <= 8 and tokens % 16 == 0:
        assert touched[1] == touched[2] == (2 * tokens * head * q.itemsize, 0)
