"""A small decoder on the device: what a step launches, what is timed, and what passes the check."""

import importlib

import numpy as np
import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, bindings, decoder
from service.worker.decoder import SeededWeights
from tests.worker.cuda.fake_cublaslt import CUBLAS, FakeLt
from tests.worker.cuda.test_cuda import SEED, asked

SMALL = {
    "layers": 2, "hidden": 24, "query_heads": 4, "kv_heads": 2, "head_size": 64, "feed_forward": 20,
    "vocabulary": 300, "dtype": "bf16",
}  # fmt: skip
LOOP = {**SMALL, "batch": 3, "context_tokens": 30, "steps": 4}


@pytest.fixture
def lt(driver, monkeypatch):
    fake = FakeLt(driver.advance)
    fake.queue = driver.queue
    fake.microseconds, fake.states = [100, 70], [0, 0]
    monkeypatch.setattr(decoder, "TRIALS", 1)
    modules = {"nvmath.bindings.cublasLt": fake, "nvmath.bindings.cublas": CUBLAS}
    monkeypatch.setattr(
        bindings, "import_module", lambda name: modules.get(name) or importlib.import_module(name)
    )
    yield fake
    assert fake.objects == {}


def prepared(kind, **work):
    return PREPARE[kind](asked(kind, metric="seconds", **work), SEED, 0)


@pytest.mark.parametrize(("dtype", "uses_graph"), [("bf16", True), ("fp32", False)])
def test_tokens_are_those_of_the_weights_the_cache_and_the_tokens_before(lt, driver, dtype, uses_graph):
    with prepared("decode_loop", **{**LOOP, "dtype": dtype, "uses_graph": uses_graph}) as timed:
        correctness = timed.check()
        assert correctness.passed
        assert correctness.largest_error > 0
        driver.forget()
        timed.execute(1)
        assert driver.journal[:3] == ["first_step", "flush", "record"]
        assert driver.journal.count("graph") == (4 if uses_graph else 0)
        assert driver.journal.count(f"choose_{dtype}") == driver.journal.count("next_step") == 4
        # A loop again gives the same tokens, because the cache is as it was.
        assert timed.check() == correctness
        real = lt.spoils
        lt.spoils = lambda product: product * 1.5 if product.shape == (300, 3) else product
        assert not timed.check().passed
        lt.spoils = real
        timed._seed += 1
        assert not timed.check().passed


def test_the_fastest_proposal_is_taken_for_each_shape_of_product(lt):
    with prepared("decode_loop", **LOOP) as timed:
        assert timed.facts.algorithm == "5 shapes of products, each by the fastest proposal"
        lt.products.clear()
        timed.execute(1)
        assert {place for place, *_ in lt.products} == {1}
        assert len(lt.products) == 4 * (2 * 4 + 1)
        assert timed.facts.uses_graph


def test_a_decoder_that_does_not_fit_is_unsupported(lt, driver):
    driver.memory(2**17)
    with pytest.raises(Unsupported, match="are free"), prepared("decode_loop", **LOOP):
        pass


TRAINING = {**SMALL, "vocabulary": 64, "sequence_length": 9, "micro_batch_size": 2, "accumulation_steps": 2}


def read_gradients(timed):
    found = {}
    for name, each in timed._net.matrices.items():
        found[name] = np.empty(each.rows * each.columns, np.float32)
        timed._device.to_host(found[name], timed._gradients[name])
    return found


@pytest.mark.parametrize(("dtype", "recomputation"), [("bf16", "none"), ("fp32", "full")])
def test_a_step_has_the_gradients_of_its_weights_and_tokens(lt, driver, dtype, recomputation):
    with prepared("training_step", **{**TRAINING, "dtype": dtype, "recomputation": recomputation}) as timed:
        driver.forget()
        timed.execute(1)
        assert driver.journal.count(f"update_{dtype}") == 9
        assert driver.journal.count(f"entropy_{dtype}") == 2
        # With recomputation the first of two layers goes forward again in each micro-batch.
        assert driver.journal.count(f"gate_{dtype}") == (4 if recomputation == "none" else 6)
        assert timed.check().passed
        lt.spoils = lambda product: product * 1.5 if product.shape == (64, 18) else product
        assert not timed.check().passed


def test_micro_batches_add_their_gradients(lt):
    with prepared("training_step", **{**TRAINING, "dtype": "fp32"}) as timed:
        first, second = timed._micro_batches
        first()
        one = read_gradients(timed)
        second()
        both = read_gradients(timed)
        for name, held in one.items():
            timed._device.to_device(timed._gradients[name], np.zeros_like(held))
        second()
        for name, other in read_gradients(timed).items():
            assert np.abs(other).max() > 0
            assert np.allclose(one[name] + other, both[name], rtol=0, atol=1e-6 * np.abs(other).max())


def test_updates_are_those_of_adamw_step_after_step(lt):
    with prepared("training_step", **{**TRAINING, "dtype": "fp32"}) as timed:
        timed._reset_state()
        each = timed._net.matrices["head"]
        weight = (
            SeededWeights(timed._work, SEED)
            .generate_rows(each.number, each.columns, 0, each.rows)
            .reshape(-1)
        )
        mean = square = np.zeros(weight.size)
        for step in (1, 2, 3):
            timed._prefix()
            gradient = read_gradients(timed)["head"].astype(np.float64)
            timed._update()
            mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
            scaled = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            weight = weight * (1 - 1e-6) - 1e-4 * scaled
        assert np.abs(timed._net.read_values(timed._states["head"][0], weight.size) - weight).max() < 1e-5
        found = timed._net.read_values(timed._net.weights["head"], weight.size)
        assert np.abs(found - weight).max() < 1e-5


def test_an_update_that_is_not_that_of_its_gradient_does_not_pass(lt, monkeypatch):
    with prepared("training_step", **TRAINING) as timed:
        monkeypatch.setattr(timed, "_update", lambda: None)
        assert not timed.check().passed
        assert timed.facts.library == "cublasLt 13.0.2, own kernels decoder"
