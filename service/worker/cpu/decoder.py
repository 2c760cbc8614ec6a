"""A small decoder by NumPy in fp32, shared by decoding and training on a processor."""

import math
from typing import Any, NamedTuple

import numpy as np

from service.protocol.work.training import DecodeLoopWork, TrainingStepWork
from service.worker.benchmark import MeasurementFacts, Unsupported
from service.worker.cpu.blas import inspect_blas
from service.worker.cpu.host_timed import NUMPY
from service.worker.cuda import numbers
from service.worker.decoder import (
    EPSILON,
    SeededWeights,
    compute_rotary_angles,
    get_table_number,
    list_matrices,
)
from service.worker.host import available_memory_bytes

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of fp32; the types of NumPy's functions do not state it."""


class LayerActivations(NamedTuple):
    """Activations that a layer keeps for the backward pass."""

    start: Array
    a: Array
    factors_a: Array
    q: Array
    k: Array
    v: Array
    p: Array
    mixed: Array
    middle: Array
    b: Array
    factors_b: Array
    gates: Array
    fed: Array


def check_memory(work: DecodeLoopWork | TrainingStepWork, elements: int) -> None:
    """Raises :class:`Unsupported` for a type that NumPy does not multiply, or more than is available."""
    if work.dtype != "fp32":
        raise Unsupported(f"NumPy multiplies no {work.dtype} by BLAS")
    room = available_memory_bytes()
    if room is not None and 4 * elements > room:
        raise Unsupported(f"needs {4 * elements} bytes, {room} bytes of memory are available")


def build_weights(work: DecodeLoopWork | TrainingStepWork, seed: int) -> dict[str, Array]:
    """Generates every matrix and the embedding table from the seed."""
    source = SeededWeights(work, seed)
    found = {
        name: source.generate_rows(each.number, each.columns, 0, each.rows).astype(np.float32)
        for name, each in list_matrices(work).items()
    }
    table = source.generate_rows(get_table_number(work), work.hidden, 0, work.vocabulary)
    return {**found, "table": table.astype(np.float32)}


def compute_angles(positions: int, head_size: int) -> tuple[Array, Array]:
    """Returns cosines and sines of positions."""
    cosines, sines = compute_rotary_angles(np.arange(positions), head_size)
    return cosines.astype(np.float32), sines.astype(np.float32)


def apply_weight(x: Array, weight: Array) -> Array:
    """Returns X W^T over the square root of the inner dimension."""
    product = x @ weight.T
    product *= np.float32(1 / math.sqrt(weight.shape[1]))
    return product


def normalize_rows(x: Array) -> tuple[Array, Array]:
    """Returns X over its root mean square by rows, and the factors."""
    factors = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(EPSILON))
    return x * factors, factors


def rotate_heads(x: Array, cosines: Array, sines: Array) -> Array:
    """Rotates halves of heads against each other; cosines and sines broadcast to x."""
    half = x.shape[-1] // 2
    low, high = x[..., :half], x[..., half:]
    return np.concatenate([low * cosines - high * sines, high * cosines + low * sines], axis=-1)


def apply_softmax(scores: Array) -> Array:
    """Applies softmax in place, along the last axis."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def apply_gate(gates: Array) -> Array:
    """Returns g / (1 + exp(-g)) u of rows [g, u]."""
    half = gates.shape[-1] // 2
    g, u = gates[..., :half], gates[..., half:]
    return np.asarray(g / (1 + np.exp(-g)) * u)


def build_facts(work: DecodeLoopWork | TrainingStepWork, working_set_bytes: int) -> MeasurementFacts:
    """Builds the facts for the record."""
    blas = inspect_blas()
    return MeasurementFacts(
        library=f"numpy {np.__version__} matmul, {blas.name} {blas.version}",
        accumulation=work.dtype,
        data=f"weights and cache: {numbers.NORMAL}; token ids uniform",
        timer="host_clock",
        working_set_bytes=working_set_bytes,
        threads=blas.threads,
        software=(NUMPY,),
    )
