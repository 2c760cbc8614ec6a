"""Attention in float64 of the numbers that a device holds: rows of the result, and of its gradients."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from pydantic import MISSING

from service.protocol.work.arithmetic import AttentionWork
from service.worker.cuda import numbers

Values = np.ndarray[Any, Any]

WIDTHS = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8_e4m3": 1}
STORED = {"fp32": "f4", "bf16": "u2", "fp16": "f2", "fp8_e4m3": "u1"}
LAST_KEYS = (1, 6)
"""Keys, counted from the last one, whose gradients are computed: few queries see them."""
CHUNK = 2**16
_QUERY, _KEY, _VALUE, _GRADIENT = range(4)


class TensorSizes(NamedTuple):
    """Elements of Q, K, V and the result."""

    query: int
    key: int
    value: int
    result: int


def compute_sizes(work: AttentionWork) -> TensorSizes:
    """Returns the elements of each matrix; V has none if values are part of the keys."""
    of_queries = work.batch * work.query_heads * work.queries
    of_keys = work.batch * work.kv_heads * work.context_tokens
    return TensorSizes(
        of_queries * work.head_size,
        of_keys * work.head_size,
        0 if work.shares_latent else of_keys * work.values,
        of_queries * work.values,
    )


def list_input_sizes(work: AttentionWork) -> list[int]:
    """Returns the elements of the inputs in order: Q, K, V unless it is part of K, and a gradient."""
    sizes = compute_sizes(work)
    found = [sizes.query, sizes.key, *([] if work.shares_latent else [sizes.value])]
    return [*found, sizes.result] if work.phase == "backward" else found


def build_page_table(work: AttentionWork, seed: int) -> Values:
    """Returns the pages of each sequence in order, drawn without replacement."""
    if work.page_tokens is MISSING:
        raise TypeError("the cache is in one piece")
    count = work.batch * (work.context_tokens // work.page_tokens)
    order = np.argsort(numbers.generate_bits(numbers.derive_seed(seed, 16), np.arange(count)))
    return order.astype(np.int32).reshape(work.batch, -1)


class GradientRows(NamedTuple):
    """Gradients of a key head: rows of K and V of the last keys, and the sum of all rows of V."""

    keys: Values
    values: Values
    sum_of_values: Values


class AttentionReference:
    """Attention of numbers that are generated from seeds: of Q, K, V and the gradient of the result.

    ``unit`` counts heads of queries through the sequences.
    """

    def __init__(self, work: AttentionWork, seeds: Sequence[int], seed: int) -> None:
        self._work, self._seeds = work, seeds
        self._table = None if work.page_tokens is MISSING else build_page_table(work, seed)

    def compute_rows(self, unit: int, queries: Sequence[int]) -> Values:
        """Returns rows of the result."""
        total = np.zeros((len(queries), self._work.values))
        weights = self._compute_weights(unit, queries)
        for start, count in self._list_chunks():
            total += weights[:, start : start + count] @ self._generate_values(unit, start, count)
        return total

    def compute_query_gradients(self, unit: int, queries: Sequence[int]) -> Values:
        """Returns rows of the gradient of Q."""
        _, changes = self._compute_changes(unit, queries)
        keys = self._generate_keys(unit, 0, self._work.context_tokens)
        return np.asarray(changes @ keys / np.sqrt(self._work.head_size))

    def compute_key_gradients(self, kv_unit: int) -> GradientRows:
        """Returns gradients of a head of keys, summed over the heads of queries that share it.

        The weights of a query add up to 1, so that the rows of the gradient of V add up to those of the
        gradient of the result: this sum sees every key.
        """
        work = self._work
        group, last = work.query_heads // work.kv_heads, self.list_last_keys()
        queries = range(min(last), work.context_tokens)
        keys = np.zeros((len(last), work.head_size))
        values, together = np.zeros((len(last), work.values)), np.zeros(work.values)
        for unit in range(kv_unit * group, (kv_unit + 1) * group):
            weights, changes = self._compute_changes(unit, queries)
            first = unit * work.queries
            asked = self._generate(_QUERY, first + queries[0], len(queries), work.head_size)
            change = self._generate(_GRADIENT, first, work.queries, work.values)
            keys += changes[:, last].T @ asked / np.sqrt(work.head_size)
            values += weights[:, last].T @ change[queries[0] :]
            together += change.sum(axis=0)
        return GradientRows(keys, values, together)

    def list_last_keys(self) -> list[int]:
        """Lists the keys whose gradients are computed."""
        tokens = self._work.context_tokens
        return [tokens - place for place in LAST_KEYS if place <= tokens]

    def _compute_weights(self, unit: int, queries: Sequence[int]) -> Values:
        """Returns the softmax of the scores of some queries, over all keys."""
        work = self._work
        first = unit * work.queries
        q = np.concatenate([self._generate(_QUERY, first + query, 1, work.head_size) for query in queries])
        chunks = [q @ self._generate_keys(unit, start, count).T for start, count in self._list_chunks()]
        scores = np.concatenate(chunks, axis=1) / np.sqrt(work.head_size)
        if work.phase != "decode":
            scores[np.arange(work.context_tokens) > np.array(queries)[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _compute_changes(self, unit: int, queries: Sequence[int]) -> tuple[Values, Values]:
        """Returns the weights of some queries, and the gradient of their scores (FlashAttention-2, 2.2)."""
        work = self._work
        weights, first = self._compute_weights(unit, queries), unit * work.queries
        change = np.concatenate(
            [self._generate(_GRADIENT, first + query, 1, work.values) for query in queries]
        )
        of_weights = change @ self._generate_values(unit, 0, work.context_tokens).T
        along = (weights * of_weights).sum(axis=1, keepdims=True)
        return weights, weights * (of_weights - along)

    def _list_chunks(self) -> list[tuple[int, int]]:
        tokens = self._work.context_tokens
        return [(start, min(CHUNK, tokens - start)) for start in range(0, tokens, CHUNK)]

    def _generate_keys(self, unit: int, start: int, count: int) -> Values:
        return self._generate_cached(_KEY, unit, start, count, self._work.head_size)

    def _generate_values(self, unit: int, start: int, count: int) -> Values:
        if self._work.shares_latent:
            return self._generate_keys(unit, start, count)[:, : self._work.values]
        return self._generate_cached(_VALUE, unit, start, count, self._work.values)

    def _generate_cached(self, which: int, unit: int, start: int, count: int, size: int) -> Values:
        """Generates rows of K or V of the head that a head of queries reads."""
        runs = self._list_cached_runs(unit, start, count)
        return np.concatenate([self._generate(which, first, length, size) for first, length in runs])

    def _list_cached_runs(self, unit: int, start: int, count: int) -> Iterator[tuple[int, int]]:
        """Yields neighbouring rows of the cache, by page, for tokens of a sequence."""
        work = self._work
        sequence, of_query = divmod(unit, work.query_heads)
        head = of_query // (work.query_heads // work.kv_heads)
        if self._table is None or work.page_tokens is MISSING:
            yield (sequence * work.kv_heads + head) * work.context_tokens + start, count
            return
        size, end = work.page_tokens, start + count
        for token in range(start - start % size, end, size):
            page = int(self._table[sequence, token // size])
            low, high = max(token, start), min(token + size, end)
            yield (page * work.kv_heads + head) * size + low - token, high - low

    def _generate(self, which: int, first: int, count: int, size: int) -> Values:
        """Generates rows of a matrix as the device holds them."""
        found = numbers.generate_normal_run(self._work.dtype, self._seeds[which], first * size, count * size)
        return found.reshape(count, size)


def decode_elements(dtype: str, held: Values) -> Values:
    """Returns elements as the device stores them as float64."""
    if dtype == "bf16":
        held = numbers.decode_bf16(held)
    if dtype == "fp8_e4m3":
        held = numbers.decode_fp8_e4m3(held)
    return np.asarray(held.astype(np.float64))
