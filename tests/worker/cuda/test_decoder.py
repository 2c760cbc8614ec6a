"""A small decoder on the device: what a step launches, what is timed, and what passes the check."""

import importlib

import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, bindings
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
