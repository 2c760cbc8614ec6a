"""Tokens of a small decoder, one after the other, by NumPy."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import Correctness
from service.protocol.suites import Benchmark
from service.protocol.work import DecodeLoop
from service.worker.benchmark import Prepared
from service.worker.cpu.decoder import (
    Array,
    angles,
    applied,
    facts,
    gated,
    norm,
    room_for,
    rotated,
    softmax,
    weights_of,
)
from service.worker.cpu.host_timed import HostTimed, checksum, correctness
from service.worker.decoder import Weights, cache_number, forward, tokens, tolerance


class Loop:
    """All sequences go through each layer together; every run begins with the same cache."""

    def __init__(self, work: DecodeLoop, seed: int) -> None:
        self.work, self.seed, self.capacity = work, seed, work.context_tokens + work.steps
        shape = (work.batch, work.kv_heads, self.capacity, work.head_size)
        self.elements = (
            work.matrix_parameters + work.vocabulary * work.hidden + 2 * work.layers * math.prod(shape)
        )
        room_for(work, self.elements)
        self.weights = weights_of(work, seed)
        source = Weights(work, seed)
        rows = math.prod(shape[:3])
        self.caches = [
            [
                source.rows(cache_number(work, layer, which), work.head_size, 0, rows)
                .astype(np.float32)
                .reshape(shape)
                for which in range(2)
            ]
            for layer in range(work.layers)
        ]
        self.first = tokens(work, seed, np.arange(work.batch))
        self.cosines, self.sines = angles(self.capacity, work.head_size)
        self.scores = np.full((work.steps, work.batch, work.vocabulary), np.nan, np.float32)
        self.chosen = np.zeros((work.steps, work.batch), np.int64)

    def run(self) -> None:
        """All steps."""
        ids = self.first.astype(np.int64)
        for step in range(self.work.steps):
            self.scores[step] = self._step(ids, self.work.context_tokens + step)
            ids = self.scores[step].argmax(axis=1)
            self.chosen[step] = ids

    def _step(self, ids: np.ndarray, position: int) -> Array:
        x = self.weights["table"][ids]
        for layer in range(self.work.layers):
            a, _ = norm(x)
            x = x + applied(self._attended(a, layer, position), self.weights[f"out.{layer}"])
            b, _ = norm(x)
            fed = gated(applied(b, self.weights[f"gate_up.{layer}"]))
            x = x + applied(fed, self.weights[f"down.{layer}"])
        return applied(norm(x)[0], self.weights["head"])

    def _attended(self, a: Array, layer: int, position: int) -> Array:
        work = self.work
        keys, values = self.caches[layer]
        heads = applied(a, self.weights[f"qkv.{layer}"]).reshape(work.batch, -1, work.head_size)
        cosines, sines = self.cosines[position], self.sines[position]
        q = rotated(heads[:, : work.query_heads], cosines, sines)
        q = q.reshape(work.batch, work.kv_heads, -1, work.head_size)
        keys[:, :, position] = rotated(heads[:, work.query_heads : -work.kv_heads], cosines, sines)
        values[:, :, position] = heads[:, -work.kv_heads :]
        seen = position + 1
        scores = q @ keys[:, :, :seen].swapaxes(2, 3)
        scores *= np.float32(1 / math.sqrt(work.head_size))
        mixed = softmax(scores) @ values[:, :, :seen]
        return mixed.reshape(work.batch, -1)

    def verify(self) -> Correctness:
        """Scores of one sequence in the first steps, against fp64 of the same weights, cache and tokens."""
        steps, sequence = min(self.work.steps, 2), self.seed % self.work.batch
        ids = [int(self.first[sequence]), *self.chosen[: steps - 1, sequence].tolist()]
        weights = Weights(self.work, self.seed)
        passed = forward(
            self.work,
            weights,
            np.array(ids),
            context=self.work.context_tokens,
            sequence=sequence,
            capacity=self.capacity,
        )
        found = self.scores[:steps, sequence]
        scale = math.sqrt(float(np.mean(passed.scores**2)))
        return correctness(
            f"scores of {steps} steps of a sequence against fp64 of the same numbers",
            float(np.max(np.abs(found - passed.scores))) / scale,
            tolerance(self.work),
            checksum(found),
        )


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[Prepared]:
    """Weights and a cache of the seed; raises :class:`Unsupported` for bf16 and what does not fit."""
    del accelerator_index
    work = benchmark.get_work(DecodeLoop)
    loop = Loop(work, seed)
    yield HostTimed(facts(work, 4 * loop.elements), lambda _: loop.run(), lambda _: loop.verify())
