"""Reference decoder in float64, computed from a seed, for checks of decoding and training.

A token goes through layers of RMS norm (without a gain), grouped attention with rotation, and a gated
feed-forward network, as Llama is built (Touvron et al., 2023). All weights are numbers of deviation 1, and
each product is divided by the square root of its inner dimension instead. Weights are generated when they are
needed, some rows at a time: a model that fills the device need not fit into the memory of the host.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from service.protocol.work.training import DecodeLoopWork, TrainingStepWork
from service.worker.cuda import numbers
from service.worker.host import usable_processors

Array = np.ndarray[Any, np.dtype[np.float64]]
DecoderWork = DecodeLoopWork | TrainingStepWork
EPSILON = 1e-5
"""Constant that is added to the mean square of a norm."""
THETA = 10_000.0
"""Base of the angles of the rotation (Su et al., RoFormer, 2021)."""
CHUNK = 2**20
HELD_PIECE = 2**18
"""Weights that are read at a time, so that they are still in the processor's cache when they are used."""
COMPARED_ROWS = 16
MOST_THREADS = 32
ROUNDINGS = 8
"""Results of a layer that are rounded in sequence."""
ROUNDING = {"bf16": 2.0**-9, "fp32": 2.0**-24}
SUMMING = 64
"""Errors of sums and of exp and the like in fp32, as multiples of a rounding of fp32."""


class WeightMatrix(NamedTuple):
    """A matrix of weights: its number among the arrays of the seed, and its dimensions."""

    number: int
    rows: int
    columns: int

    @property
    def scale(self) -> float:
        """Factor that is applied to a product with the matrix."""
        return 1 / math.sqrt(self.columns)


def list_matrices(work: DecoderWork) -> dict[str, WeightMatrix]:
    """Returns all matrices that multiply a token, the head last; they have ``work.matrix_parameters``."""
    heads = work.head_size * (work.query_heads + 2 * work.kv_heads)
    sides = {
        "qkv": (heads, work.hidden),
        "out": (work.hidden, work.head_size * work.query_heads),
        "gate_up": (2 * work.feed_forward, work.hidden),
        "down": (work.hidden, work.feed_forward),
    }
    found = [(f"{name}.{layer}", *sides[name]) for layer in range(work.layers) for name in sides]
    found.append(("head", work.vocabulary, work.hidden))
    return {name: WeightMatrix(number, rows, columns) for number, (name, rows, columns) in enumerate(found)}


def get_table_number(work: DecoderWork) -> int:
    """Returns the number of the embedding table among the arrays of the seed, right after the matrices."""
    return 4 * work.layers + 1


def generate_tokens(
    work: DecoderWork, seed: int, places: np.ndarray[Any, Any]
) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Generates token ids, uniform over the vocabulary."""
    bits = numbers.generate_bits(numbers.derive_seed(seed, 4 * work.layers + 2), places)
    return np.asarray(bits % np.uint64(work.vocabulary), np.uint32)


def get_cache_number(work: DecoderWork, layer: int, which: int) -> int:
    """Returns the number of the keys (0) or values (1) of a layer's cache among the arrays of the seed."""
    return 4 * work.layers + 3 + 2 * layer + which


def compute_rotary_angles(positions: np.ndarray[Any, Any], head_size: int) -> tuple[Array, Array]:
    """Returns cosines and sines of each position (rows) and pair of elements (columns)."""
    angles = np.outer(positions, THETA ** (-2.0 * np.arange(head_size // 2) / head_size))
    return np.cos(angles), np.sin(angles)


def compute_tolerance(work: DecoderWork) -> float:
    """Returns the largest error that passes, over the root mean square.

    Errors of 8 roundings a layer add up at random, and the largest of some thousand is about 4 of their
    deviations, which is 0.6 of the largest effect of one rounding; three times that passes.
    """
    roundings = math.sqrt(ROUNDINGS * work.layers + 4)
    return 8 * (ROUNDING[work.dtype] + SUMMING * ROUNDING["fp32"]) * roundings


class SeededWeights:
    """Weights of a seed as the device holds them, generated in parts."""

    def __init__(self, work: DecoderWork, seed: int) -> None:
        self._work, self._seed, self.matrices = work, seed, list_matrices(work)

    def generate_rows(self, number: int, columns: int, first: int, count: int) -> Array:
        """Generates rows of an array of the seed."""
        seed = numbers.derive_seed(self._seed, number)
        found = numbers.generate_normal_run(self._work.dtype, seed, first * columns, count * columns)
        return found.reshape(count, columns)

    def embed_tokens(self, ids: np.ndarray[Any, Any]) -> Array:
        """Returns a row of the embedding table for each token."""
        hidden, number = self._work.hidden, get_table_number(self._work)
        return np.concatenate([self.generate_rows(number, hidden, int(token), 1) for token in ids])

    def apply_matrix(self, name: str, x: Array) -> Array:
        """Returns X W^T, scaled."""
        matrix = self.matrices[name]
        parts = self._map_parts(matrix, lambda _, weights: x @ weights.T)
        return np.asarray(np.concatenate(list(parts), axis=1) * matrix.scale)

    def apply_transpose(self, name: str, dy: Array) -> Array:
        """Returns DY W, scaled."""
        matrix = self.matrices[name]
        total = np.zeros((len(dy), matrix.columns))
        for part in self._map_parts(
            matrix, lambda first, weights: dy[:, first : first + len(weights)] @ weights
        ):
            total += part
        return total * matrix.scale

    def _map_parts(self, matrix: WeightMatrix, use: Callable[[int, Array], Array]) -> Iterator[Array]:
        step = max(CHUNK // matrix.columns, 1)

        def compute_part(first: int) -> Array:
            count = min(step, matrix.rows - first)
            return use(first, self.generate_rows(matrix.number, matrix.columns, first, count))

        # NumPy lets other threads run while it computes.
        with ThreadPoolExecutor(min(len(usable_processors()), MOST_THREADS)) as threads:
            yield from threads.map(compute_part, range(0, matrix.rows, step))


class HeldWeights(SeededWeights):
    """Weights as a device holds them: rows at places of the seed are compared, products read all the rest.

    To generate a weight takes 10 to 27 ns, to read it and multiply it with 16 tokens 1 to 3 ns. Weights of
    bf16 are multiplied in fp32, whose sums are off by less than a hundredth of one rounding of bf16.
    """

    def __init__(
        self, work: DecoderWork, seed: int, read: Callable[[int, int, int], np.ndarray[Any, Any]]
    ) -> None:
        """``read`` returns elements of an array by its number, the first of them and their count."""
        super().__init__(work, seed)
        self._read = read
        self._kind = np.float32 if work.dtype == "bf16" else np.float64

    def count_differences(self) -> int:
        """Returns how many of the elements of compared rows are not those of the seed."""
        table = WeightMatrix(get_table_number(self._work), self._work.vocabulary, self._work.hidden)
        differ = 0
        for matrix in (*self.matrices.values(), table):
            drawn = numbers.generate_bits(self._seed ^ matrix.number, np.arange(COMPARED_ROWS - 2))
            for row in (0, matrix.rows - 1, *(int(bits) % matrix.rows for bits in drawn)):
                expected = self.generate_rows(matrix.number, matrix.columns, row, 1)
                found = self._read(matrix.number, row * matrix.columns, matrix.columns)
                differ += int(np.count_nonzero(found != expected[0]))
        return differ

    def apply_matrix(self, name: str, x: Array) -> Array:
        """Returns X W^T, scaled."""
        return super().apply_matrix(name, x.astype(self._kind)).astype(np.float64)

    def apply_transpose(self, name: str, dy: Array) -> Array:
        """Returns DY W, scaled."""
        return super().apply_transpose(name, dy.astype(self._kind))

    def _map_parts(self, matrix: WeightMatrix, use: Callable[[int, Array], Array]) -> Iterator[Array]:
        step = max(HELD_PIECE // matrix.columns, 1)
        for first in range(0, matrix.rows, step):
            count = min(step, matrix.rows - first)
            held = self._read(matrix.number, first * matrix.columns, count * matrix.columns)
            yield use(first, held.reshape(count, matrix.columns).astype(self._kind, copy=False))


def normalize_rows(x: Array) -> tuple[Array, Array]:
    """Returns X over its root mean square by rows, and the factor of each row."""
    factors = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)
    return x * factors, factors


def backward_norm(dy: Array, y: Array, factors: Array) -> Array:
    """Returns the gradient of the input of a norm."""
    return np.asarray(factors * (dy - y * np.mean(dy * y, axis=-1, keepdims=True)))


def rotate_heads(x: Array, cosines: Array, sines: Array) -> Array:
    """Rotates the first half of each head against the second; x is (token, head, element)."""
    low, high = np.split(x, 2, axis=-1)
    c, s = cosines[:, None], sines[:, None]
    return np.concatenate([low * c - high * s, high * c + low * s], axis=-1)


@dataclass(slots=True)
class ForwardState:
    """Results of a forward pass: scores, inputs of the matrices, and activations for the backward pass."""

    scores: Array
    inputs: dict[str, Array]
    layers: list[dict[str, Array]]
    gradients: dict[str, Array] = field(default_factory=dict)
    """Gradients of the output of each matrix, once the backward pass is done."""


def run_forward(
    work: DecoderWork,
    weights: SeededWeights,
    ids: np.ndarray[Any, Any],
    *,
    context: int = 0,
    sequence: int = 0,
    capacity: int = 0,
) -> ForwardState:
    """Runs tokens of one sequence behind ``context`` tokens with keys and values of the seed.

    Returns scores of shape (tokens, vocabulary).
    """
    count, head, kv_heads = len(ids), work.head_size, work.kv_heads
    group, of_queries = work.query_heads // kv_heads, work.query_heads * head
    c, s = compute_rotary_angles(context + np.arange(count), head)
    unseen = np.arange(context + count) > context + np.arange(count)[:, None]
    x, passed = weights.embed_tokens(ids), ForwardState(np.empty(0), {}, [])
    for layer in range(work.layers):
        a, factors_a = normalize_rows(x)
        qkv = weights.apply_matrix(f"qkv.{layer}", a).reshape(count, -1, head)
        q = rotate_heads(qkv[:, : work.query_heads], c, s).reshape(count, kv_heads, group, head)
        k = rotate_heads(qkv[:, work.query_heads : -kv_heads], c, s)
        keys, values = k.transpose(1, 0, 2), qkv[:, -kv_heads:].transpose(1, 0, 2)
        if context:
            cached = [
                [
                    weights.generate_rows(
                        get_cache_number(work, layer, which),
                        head,
                        (sequence * kv_heads + kv) * capacity,
                        context,
                    )
                    for kv in range(kv_heads)
                ]
                for which in range(2)
            ]
            keys, values = (
                np.concatenate([old, new], axis=1) for old, new in zip(cached, (keys, values), strict=True)
            )
        p = np.einsum("tkgd,ksd->kgts", q, keys) / head**0.5
        p[..., unseen] = -np.inf
        p = np.exp(p - p.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        o = np.einsum("kgts,ksd->tkgd", p, values).reshape(count, of_queries)
        middle = x + weights.apply_matrix(f"out.{layer}", o)
        b, factors_b = normalize_rows(middle)
        g, u = np.split(weights.apply_matrix(f"gate_up.{layer}", b), 2, axis=1)
        f = g / (1 + np.exp(-g)) * u
        passed.layers.append(
            {"a": a, "fa": factors_a, "q": q, "k": keys, "v": values, "p": p}
            | {"b": b, "fb": factors_b, "g": g, "u": u}
        )
        for name, value in {"qkv": a, "out": o, "gate_up": b, "down": f}.items():
            passed.inputs[f"{name}.{layer}"] = value
        x = middle + weights.apply_matrix(f"down.{layer}", f)
    last, factors = normalize_rows(x)
    passed.inputs["head"] = last
    passed.layers.append({"a": last, "fa": factors})
    passed.scores = weights.apply_matrix("head", last)
    return passed


def compute_entropy(scores: Array, targets: np.ndarray[Any, Any]) -> tuple[Array, Array]:
    """Returns the cross entropy of each row, and the gradient of their mean."""
    top = scores.max(axis=1, keepdims=True)
    sums = np.exp(scores - top).sum(axis=1, keepdims=True)
    places = np.arange(len(targets)), targets.astype(np.int64)
    losses = (top + np.log(sums))[:, 0] - scores[places]
    gradient = np.exp(scores - top) / sums
    gradient[places] -= 1
    return losses, gradient / len(targets)


def run_backward(
    work: TrainingStepWork, weights: SeededWeights, passed: ForwardState, dscores: Array
) -> None:
    """Fills ``passed.gradients`` with those of each matrix's output, (token, row of the matrix)."""
    count, head = len(dscores), work.head_size
    c, s = compute_rotary_angles(np.arange(count), head)
    gradients = passed.gradients
    gradients["head"] = dscores
    end = passed.layers[-1]
    dx = backward_norm(weights.apply_transpose("head", dscores), end["a"], end["fa"])
    for layer in reversed(range(work.layers)):
        kept = passed.layers[layer]
        gradients[f"down.{layer}"] = dx
        df = weights.apply_transpose(f"down.{layer}", dx)
        share = 1 / (1 + np.exp(-kept["g"]))
        dg = df * kept["u"] * share * (1 + kept["g"] * (1 - share))
        gradients[f"gate_up.{layer}"] = np.concatenate([dg, df * kept["g"] * share], axis=1)
        db = weights.apply_transpose(f"gate_up.{layer}", gradients[f"gate_up.{layer}"])
        dx = dx + backward_norm(db, kept["b"], kept["fb"])
        gradients[f"out.{layer}"] = dx
        do = weights.apply_transpose(f"out.{layer}", dx).reshape(kept["q"].shape)
        p = kept["p"]
        dp = np.einsum("tkgd,ksd->kgts", do, kept["v"])
        ds = p * (dp - np.sum(dp * p, axis=-1, keepdims=True)) / head**0.5
        dq = np.einsum("kgts,ksd->tkgd", ds, kept["k"]).reshape(count, -1, head)
        dk = np.einsum("kgts,tkgd->skd", ds, kept["q"])
        dv = np.einsum("kgts,tkgd->skd", p, do)
        # The gradient of a rotation is rotated the other way.
        whole = np.concatenate([rotate_heads(dq, c, -s), rotate_heads(dk, c, -s), dv], axis=1)
        gradients[f"qkv.{layer}"] = whole.reshape(count, -1)
        da = weights.apply_transpose(f"qkv.{layer}", gradients[f"qkv.{layer}"])
        dx = dx + backward_norm(da, kept["a"], kept["fa"])


def compute_gradient_rows(
    weights: SeededWeights, passed: ForwardState, name: str, rows: np.ndarray[Any, Any]
) -> Array:
    """Returns rows of the gradient of a matrix."""
    products = passed.gradients[name][:, rows].T @ passed.inputs[name]
    return np.asarray(products * weights.matrices[name].scale)
