"""The decoder that others are checked against, against differences and its own definition."""

import numpy as np
import pytest

from service.protocol.work.training import DecodeLoopWork, TrainingStepWork
from service.worker import decoder
from service.worker.decoder import (
    HeldWeights,
    SeededWeights,
    compute_entropy,
    compute_gradient_rows,
    list_matrices,
    run_backward,
    run_forward,
)

SMALL = {
    "layers": 2, "hidden": 24, "query_heads": 4, "kv_heads": 2, "head_size": 64, "feed_forward": 20,
    "vocabulary": 30, "dtype": "fp32",
}  # fmt: skip
STEP = TrainingStepWork(kind="training_step", sequence_length=6, micro_batch_size=1, **SMALL)
SEED = 77


class Moved(SeededWeights):
    """Weights of which one element of each matrix is somewhere else."""

    def __init__(self, number, row, by):
        super().__init__(STEP, SEED)
        self._moved = number, row, by

    def generate_rows(self, number, columns, first, count):
        found = super().generate_rows(number, columns, first, count)
        wanted, row, by = self._moved
        if number == wanted and first <= row < first + count:
            found[row - first, 3] += by
        return found


def loss(weights, ids):
    passed = run_forward(STEP, weights, ids[:-1])
    return compute_entropy(passed.scores, ids[1:])[0].mean()


def test_its_matrices_have_the_parameters_that_the_work_counts():
    assert sum(m.rows * m.columns for m in list_matrices(STEP).values()) == STEP.matrix_parameters


@pytest.mark.parametrize("name", ["head", "down.1", "gate_up.0", "gate_up.1", "out.0", "qkv.0", "qkv.1"])
def test_the_way_back_is_the_slope_of_the_loss(name, monkeypatch):
    """Central differences of 1e-4: off by its square, and by 1e-16 over it."""
    monkeypatch.setattr(decoder, "CHUNK", 100)
    ids = decoder.generate_tokens(STEP, SEED, np.arange(7))
    weights = SeededWeights(STEP, SEED)
    passed = run_forward(STEP, weights, ids[:-1])
    run_backward(STEP, weights, passed, compute_entropy(passed.scores, ids[1:])[1])
    number, last, _ = weights.matrices[name]
    for row in (0, last // 2, last - 1):
        slope = (loss(Moved(number, row, 1e-4), ids) - loss(Moved(number, row, -1e-4), ids)) / 2e-4
        (found,) = compute_gradient_rows(weights, passed, name, np.array([row]))
        assert found[3] == pytest.approx(slope, rel=1e-5, abs=1e-10)


def test_a_token_sees_none_behind_it_and_a_cache_stands_before_it():
    ids = decoder.generate_tokens(STEP, SEED, np.arange(6))
    weights = SeededWeights(STEP, SEED)
    whole = run_forward(STEP, weights, ids).scores
    assert np.allclose(run_forward(STEP, weights, ids[:4]).scores, whole[:4], rtol=0, atol=1e-12)
    loop = DecodeLoopWork(kind="decode_loop", batch=2, context_tokens=9, steps=3, **SMALL)
    cached = [
        run_forward(loop, SeededWeights(loop, SEED), ids[:2], context=9, sequence=n, capacity=12).scores
        for n in (0, 1)
    ]
    assert np.abs(cached[0] - whole[:2]).max() > 0.1
    assert np.abs(cached[0] - cached[1]).max() > 0.1


LARGE = TrainingStepWork(
    kind="training_step", sequence_length=16, micro_batch_size=1,
    **{**SMALL, "hidden": 1024, "feed_forward": 2048, "vocabulary": 100, "dtype": "bf16"},
)  # fmt: skip


def held(work, seed=SEED):
    """Arrays as a device holds them, by number, and the weights that are read from there."""
    source = SeededWeights(work, seed)
    arrays = [source.generate_rows(m.number, m.columns, 0, m.rows) for m in source.matrices.values()]
    arrays.append(source.generate_rows(len(arrays), work.hidden, 0, work.vocabulary))
    arrays = [array.astype(np.float32).reshape(-1) for array in arrays]
    return arrays, HeldWeights(work, SEED, lambda number, first, count: arrays[number][first : first + count])


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_weights_that_are_read_give_what_those_of_the_seed_give(dtype, monkeypatch):
    monkeypatch.setattr(decoder, "HELD_PIECE", 100)
    work = STEP.model_copy(update={"dtype": dtype})
    _, reading = held(work)
    ids = decoder.generate_tokens(work, SEED, np.arange(7))
    found = []
    for weights in (SeededWeights(work, SEED), reading):
        passed = run_forward(work, weights, ids[:-1])
        run_backward(work, weights, passed, compute_entropy(passed.scores, ids[1:])[1])
        found.append({"scores": passed.scores, **passed.gradients})
    for name, expected in found[0].items():
        assert found[1][name].dtype == np.float64
        off = np.abs(found[1][name] - expected).max() / np.sqrt(np.mean(expected**2))
        assert off <= (1e-5 if dtype == "bf16" else 1e-12), name


def test_weights_that_are_not_those_of_the_seed_are_seen():
    arrays, reading = held(STEP)
    assert reading.count_differences() == 0
    for number in (0, 5, len(arrays) - 1):
        kept = arrays[number][-1]
        arrays[number][-1] += 1
        assert reading.count_differences() >= 1
        arrays[number][-1] = kept
    _, other = held(STEP, SEED + 1)
    assert other.count_differences() > 1000
