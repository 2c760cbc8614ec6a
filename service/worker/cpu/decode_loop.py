"""Tokens of a small decoder, one after the other, by NumPy."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import DecodeLoopWork
from service.worker.benchmark import PreparedBenchmark
from service.worker.cpu.decoder import (
    Array,
    apply_gate,
    apply_softmax,
    apply_weight,
    build_facts,
    build_weights,
    check_memory,
    compute_angles,
    normalize_rows,
    rotate_heads,
)
from service.worker.cpu.host_timed import HostTimed, build_correctness, compute_checksum
from service.worker.decoder import (
    SeededWeights,
    compute_tolerance,
    generate_tokens,
    get_cache_number,
    run_forward,
)


class CpuDecodeLoop:
    """Decoding loop: all sequences pass each layer together, and every run starts with the same cache."""

    def __init__(self, work: DecodeLoopWork, seed: int) -> None:
        self.work, self.seed, self.capacity = work, seed, work.context_tokens + work.steps
        shape = (work.batch, work.kv_heads, self.capacity, work.head_size)
        self.elements = (
            work.matrix_parameters + work.vocabulary * work.hidden + 2 * work.layers * math.prod(shape)
        )
        check_memory(work, self.elements)
        self.weights = build_weights(work, seed)
        source = SeededWeights(work, seed)
        rows = math.prod(shape[:3])
        self.caches = [
            [
                source.generate_rows(get_cache_number(work, layer, which), work.head_size, 0, rows)
                .astype(np.float32)
                .reshape(shape)
                for which in range(2)
            ]
            for layer in range(work.layers)
        ]
        self.first = generate_tokens(work, seed, np.arange(work.batch))
        self.cosines, self.sines = compute_angles(self.capacity, work.head_size)
        self.scores = np.full((work.steps, work.batch, work.vocabulary), np.nan, np.float32)
        self.chosen = np.zeros((work.steps, work.batch), np.int64)

    def run(self) -> None:
        """Runs all steps."""
        ids = self.first.astype(np.int64)
        for step in range(self.work.steps):
            self.scores[step] = self._run_step(ids, self.work.context_tokens + step)
            ids = self.scores[step].argmax(axis=1)
            self.chosen[step] = ids

    def _run_step(self, ids: np.ndarray, position: int) -> Array:
        x = self.weights["table"][ids]
        for layer in range(self.work.layers):
            a, _ = normalize_rows(x)
            x = x + apply_weight(self._apply_attention(a, layer, position), self.weights[f"out.{layer}"])
            b, _ = normalize_rows(x)
            fed = apply_gate(apply_weight(b, self.weights[f"gate_up.{layer}"]))
            x = x + apply_weight(fed, self.weights[f"down.{layer}"])
        return apply_weight(normalize_rows(x)[0], self.weights["head"])

    def _apply_attention(self, a: Array, layer: int, position: int) -> Array:
        work = self.work
        keys, values = self.caches[layer]
        heads = apply_weight(a, self.weights[f"qkv.{layer}"]).reshape(work.batch, -1, work.head_size)
        cosines, sines = self.cosines[position], self.sines[position]
        q = rotate_heads(heads[:, : work.query_heads], cosines, sines)
        q = q.reshape(work.batch, work.kv_heads, -1, work.head_size)
        keys[:, :, position] = rotate_heads(heads[:, work.query_heads : -work.kv_heads], cosines, sines)
        values[:, :, position] = heads[:, -work.kv_heads :]
        seen = position + 1
        scores = q @ keys[:, :, :seen].swapaxes(2, 3)
        scores *= np.float32(1 / math.sqrt(work.head_size))
        mixed = apply_softmax(scores) @ values[:, :, :seen]
        return mixed.reshape(work.batch, -1)

    def verify(self) -> CorrectnessCheck:
        """Compares scores of one sequence in the first steps with fp64 of the same inputs."""
        steps, sequence = min(self.work.steps, 2), self.seed % self.work.batch
        ids = [int(self.first[sequence]), *self.chosen[: steps - 1, sequence].tolist()]
        weights = SeededWeights(self.work, self.seed)
        passed = run_forward(
            self.work,
            weights,
            np.array(ids),
            context=self.work.context_tokens,
            sequence=sequence,
            capacity=self.capacity,
        )
        found = self.scores[:steps, sequence]
        scale = math.sqrt(float(np.mean(passed.scores**2)))
        return build_correctness(
            f"scores of {steps} steps of a sequence against fp64 of the same numbers",
            float(np.max(np.abs(found - passed.scores))) / scale,
            compute_tolerance(self.work),
            compute_checksum(found),
        )


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares weights and a cache from the seed; raises :class:`Unsupported` for bf16 or lack of memory."""
    del accelerator_index
    work = benchmark.get_work(DecodeLoopWork)
    loop = CpuDecodeLoop(work, seed)
    yield HostTimed(build_facts(work, 4 * loop.elements), lambda _: loop.run(), lambda _: loop.verify())
