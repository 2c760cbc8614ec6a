"""A whole training step of a small decoder by NumPy: forward, backward, accumulation and AdamW."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from service.protocol.results import CorrectnessCheck
from service.protocol.suites import Benchmark
from service.protocol.work.training import TrainingStepWork
from service.worker.benchmark import PreparedBenchmark
from service.worker.cpu.decoder import (
    Array,
    LayerActivations,
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
    backward_norm,
    compute_entropy,
    compute_gradient_rows,
    compute_tolerance,
    generate_tokens,
    list_matrices,
    run_backward,
    run_forward,
)

CHECKED_TOKENS = 32
CHECKED_ROWS = 4
RATE, DECAY, KEEP_MEAN, KEEP_SQUARE, LEAST = 1e-4, 0.01, 0.9, 0.999, 1e-8
"""Hyperparameters of AdamW (Loshchilov and Hutter, 2019)."""


class CpuTrainingStep:
    """Training steps on the same sequences, with weights that follow their gradients."""

    def __init__(self, work: TrainingStepWork, seed: int) -> None:
        self.work, self.seed = work, seed
        rows = work.micro_batch_size * work.sequence_length
        scores = work.micro_batch_size * work.query_heads * work.sequence_length**2
        layer = rows * (6 * work.hidden + 3 * work.feed_forward) + scores
        kept = layer * (work.layers if work.recomputation == "none" else 1)
        self.elements = 4 * work.matrix_parameters + work.vocabulary * (work.hidden + 2 * rows) + kept
        check_memory(work, self.elements)
        self.names = list(list_matrices(work))
        self.reset_state()
        length = work.sequence_length + 1
        count = work.accumulation_steps * work.micro_batch_size * length
        shape = (work.accumulation_steps, work.micro_batch_size, length)
        self.ids = generate_tokens(work, seed, np.arange(count)).astype(np.int64).reshape(shape)
        self.cosines, self.sines = compute_angles(work.sequence_length, work.head_size)
        span = np.arange(work.sequence_length)
        self.unseen = span > span[:, None]
        self.losses = np.full(work.accumulation_steps, np.nan)

    def reset_state(self) -> None:
        """Resets weights and optimizer states to their initial values."""
        self.weights = build_weights(self.work, self.seed)
        self.gradients = {name: np.zeros_like(self.weights[name]) for name in self.names}
        self.moments = {
            name: (np.zeros_like(self.weights[name]), np.zeros_like(self.weights[name]))
            for name in self.names
        }
        self.steps = 0

    def run(self) -> None:
        """Runs one step."""
        for gradient in self.gradients.values():
            gradient.fill(0)
        for number, ids in enumerate(self.ids):
            losses = self.run_micro_batch(ids, self.work.accumulation_steps)
            self.losses[number] = losses.mean()
        self._update_weights()

    def run_micro_batch(self, ids: np.ndarray, accumulation_steps: int) -> Array:
        """Returns losses of tokens (sequence, token), and adds the gradients of their mean over the steps."""
        work = self.work
        keeps_all = work.recomputation == "none"
        starts, layers = [self.weights["table"][ids[:, :-1]]], list[LayerActivations]()
        for number in range(work.layers):
            layer, x = self._forward_layer(number, starts[-1])
            starts.append(x)
            if keeps_all:
                layers.append(layer)
        last, factors = normalize_rows(starts[-1])
        losses, dscores = _compute_entropy(
            apply_weight(last, self.weights["head"]), ids[:, 1:], accumulation_steps
        )
        dx = backward_norm(self._backward_matrix("head", dscores, last), last, factors)
        for number in reversed(range(work.layers)):
            layer = layers[number] if keeps_all else self._forward_layer(number, starts[number])[0]
            dx = self._backward_layer(number, layer, dx)
        return losses

    def _forward_layer(self, number: int, start: Array) -> tuple[LayerActivations, Array]:
        work, weights = self.work, self.weights
        sequences, count = start.shape[:2]
        a, factors_a = normalize_rows(start)
        heads = apply_weight(a, weights[f"qkv.{number}"]).reshape(sequences, count, -1, work.head_size)
        heads = heads.swapaxes(1, 2)
        cosines, sines = self.cosines[:count], self.sines[:count]
        q = rotate_heads(heads[:, : work.query_heads], cosines, sines)
        q = q.reshape(sequences, work.kv_heads, -1, work.head_size)
        k = rotate_heads(heads[:, work.query_heads : -work.kv_heads], cosines, sines)
        v = np.ascontiguousarray(heads[:, -work.kv_heads :])
        p = q @ k.swapaxes(2, 3)
        p *= np.float32(1 / math.sqrt(work.head_size))
        p.reshape(sequences, work.query_heads, count, count)[..., self.unseen[:count, :count]] = -np.inf
        apply_softmax(p)
        mixed = _merge_heads(p @ v, work.query_heads, count)
        middle = start + apply_weight(mixed, weights[f"out.{number}"])
        b, factors_b = normalize_rows(middle)
        gates = apply_weight(b, weights[f"gate_up.{number}"])
        fed = apply_gate(gates)
        layer = LayerActivations(start, a, factors_a, q, k, v, p, mixed, middle, b, factors_b, gates, fed)
        return layer, middle + apply_weight(fed, weights[f"down.{number}"])

    def _backward_layer(self, number: int, layer: LayerActivations, dx: Array) -> Array:
        work = self.work
        sequences, count = dx.shape[:2]
        dfed = self._backward_matrix(f"down.{number}", dx, layer.fed)
        half = work.feed_forward
        g, u = layer.gates[..., :half], layer.gates[..., half:]
        share = 1 / (1 + np.exp(-g))
        dgates = np.concatenate([dfed * u * share * (1 + g * (1 - share)), dfed * g * share], axis=-1)
        dx = dx + backward_norm(
            self._backward_matrix(f"gate_up.{number}", dgates, layer.b), layer.b, layer.factors_b
        )
        do = self._backward_matrix(f"out.{number}", dx, layer.mixed)
        do = do.reshape(sequences, count, work.query_heads, work.head_size).swapaxes(1, 2)
        do = do.reshape(layer.q.shape)
        dp = do @ layer.v.swapaxes(2, 3)
        dv = layer.p.swapaxes(2, 3) @ do
        dp -= np.sum(dp * layer.p, axis=-1, keepdims=True)
        dp *= layer.p
        dp *= np.float32(1 / math.sqrt(work.head_size))
        dq = (dp @ layer.k).reshape(sequences, work.query_heads, count, work.head_size)
        dk = dp.swapaxes(2, 3) @ layer.q
        cosines, sines = self.cosines[:count], self.sines[:count]
        heads = np.concatenate(
            [rotate_heads(dq, cosines, -sines), rotate_heads(dk, cosines, -sines), dv], axis=1
        )
        dqkv = heads.swapaxes(1, 2).reshape(sequences, count, -1)
        return dx + backward_norm(
            self._backward_matrix(f"qkv.{number}", dqkv, layer.a), layer.a, layer.factors_a
        )

    def _backward_matrix(self, name: str, dy: Array, x: Array) -> Array:
        """Returns the gradient of the input of a matrix, and adds the gradient of the matrix."""
        weight = self.weights[name]
        scale = np.float32(1 / math.sqrt(weight.shape[1]))
        rows = dy.reshape(-1, dy.shape[-1])
        gradient = rows.T @ x.reshape(-1, x.shape[-1])
        gradient *= scale
        self.gradients[name] += gradient
        dx = rows @ weight
        dx *= scale
        return dx.reshape(*dy.shape[:-1], -1)

    def _update_weights(self) -> None:
        self.steps += 1
        of_mean, of_square = 1 - KEEP_MEAN**self.steps, 1 - KEEP_SQUARE**self.steps
        for name in self.names:
            weight, gradient, (mean, square) = self.weights[name], self.gradients[name], self.moments[name]
            mean *= np.float32(KEEP_MEAN)
            mean += np.float32(1 - KEEP_MEAN) * gradient
            square *= np.float32(KEEP_SQUARE)
            square += np.float32(1 - KEEP_SQUARE) * gradient * gradient
            weight *= np.float32(1 - RATE * DECAY)
            scaled = np.sqrt(square / np.float32(of_square)) + np.float32(LEAST)
            weight -= np.float32(RATE / of_mean) * mean / scaled

    def verify(self) -> CorrectnessCheck:
        """Compares loss, gradients and update of some tokens, from the initial weights, with fp64."""
        work, checked = self.work, min(CHECKED_TOKENS, self.work.sequence_length)
        self.reset_state()
        ids = self.ids[0, :1, : checked + 1]
        found = self.run_micro_batch(ids, 1)
        weights = SeededWeights(work, self.seed)
        passed = run_forward(work, weights, ids[0, :-1])
        losses, gradient = compute_entropy(passed.scores, ids[0, 1:])
        run_backward(work, weights, passed, gradient)
        scale = float(np.std(passed.scores))
        errors, limit = [float(np.abs(found - losses).max()) / scale], 2 * compute_tolerance(work)
        before = {name: self.gradients[name].copy() for name in self.names}
        self._update_weights()
        for name, each in list_matrices(work).items():
            rows = np.linspace(0, each.rows - 1, CHECKED_ROWS).astype(np.int64)
            expected = compute_gradient_rows(weights, passed, name, rows)
            errors.append(float(np.abs(before[name][rows] - expected).max() / np.sqrt(np.mean(expected**2))))
            old = np.concatenate(
                [weights.generate_rows(each.number, each.columns, int(row), 1) for row in rows]
            )
            g = before[name][rows].astype(np.float64)
            wanted = old * (1 - RATE * DECAY) - RATE * g / (np.abs(g) + LEAST)
            off = np.abs(self.weights[name][rows] - wanted).max() / (1e-6 + 2.0**-22 * np.abs(old).max())
            errors.append(float(off) * limit)
        # The timed steps must have changed the weights.
        errors.append(0.0 if np.all(np.isfinite(self.losses)) else math.inf)
        return build_correctness(
            f"loss, {CHECKED_ROWS} rows of each gradient and update, {checked} tokens, fp64",
            float(np.max(errors)),
            limit,
            compute_checksum(found),
        )


def _compute_entropy(scores: Array, targets: np.ndarray, accumulation_steps: int) -> tuple[Array, Array]:
    """Returns the losses by token, and replaces the scores by the gradient of their mean over the steps."""
    top = scores.max(axis=-1, keepdims=True)
    at_target = np.take_along_axis(scores, targets[..., None], axis=-1)
    scores -= top
    np.exp(scores, out=scores)
    sums = scores.sum(axis=-1, keepdims=True)
    losses = (top + np.log(sums) - at_target)[..., 0]
    scores /= sums
    np.put_along_axis(
        scores, targets[..., None], np.take_along_axis(scores, targets[..., None], axis=-1) - 1, axis=-1
    )
    scores /= np.float32(targets.size * accumulation_steps)
    return losses, scores


def _merge_heads(o: Array, query_heads: int, count: int) -> Array:
    """Heads of a token side by side, of (sequence, head of keys, query of its group, element)."""
    sequences, head = o.shape[0], o.shape[-1]
    return o.reshape(sequences, query_heads, count, head).swapaxes(1, 2).reshape(sequences, count, -1)


@contextmanager
def prepare(benchmark: Benchmark, seed: int, accelerator_index: int | None) -> Iterator[PreparedBenchmark]:
    """Prepares weights and sequences of the seed; raises :class:`Unsupported` for bf16 or lack of memory."""
    del accelerator_index
    work = benchmark.get_work(TrainingStepWork)
    step = CpuTrainingStep(work, seed)
    yield HostTimed(build_facts(work, 4 * step.elements), lambda _: step.run(), lambda _: step.verify())
