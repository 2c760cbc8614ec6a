"""Attention by cuDNN: what is timed, what passes the check, and what follows where it is missing."""

import importlib

import numpy as np
import pytest
from pydantic import ValidationError

from service.protocol.work.arithmetic import AttentionWork
from service.worker.benchmark import Unsupported
from service.worker.cuda import attention_reference, bindings
from tests.worker.cuda.fake_cudnn import FakeCudnn
from tests.worker.cuda.fake_torch import FakeTorch
from tests.worker.cuda.test_attention import prepared

PAGED = {"page_tokens": 16, "context_tokens": 48}
LATENT = {**PAGED, "query_heads": 4, "kv_heads": 1, "head_size": 576, "value_size": 512}
CASES = {
    "prefill": {"phase": "prefill"},
    "prefill fp16": {"phase": "prefill", "dtype": "fp16"},
    "prefill fp8": {"phase": "prefill", "dtype": "fp8_e4m3"},
    "prefill of two sizes": {"phase": "prefill", "head_size": 192, "value_size": 128},
    "decode": {"phase": "decode"},
    "decode pages": {"phase": "decode", **PAGED},
    "decode pages of fp8": {"phase": "decode", "dtype": "fp8_e4m3", **PAGED},
    "decode a latent cache": {"phase": "decode", **LATENT},
    "backward": {"phase": "backward"},
    "backward of two sizes": {"phase": "backward", "head_size": 192, "value_size": 128},
}


@pytest.fixture
def modules(driver, monkeypatch):
    """Modules by their name; None is missing."""
    found = {"torch": None, "cudnn": FakeCudnn(driver.advance)}

    def load(name):
        if found.get(name, name) is None:
            raise ImportError(name)
        return found.get(name) or importlib.import_module(name)

    monkeypatch.setattr(bindings, "import_module", load)
    return found


@pytest.fixture
def cudnn(modules):
    fake = modules["cudnn"]
    yield fake
    assert fake.handles == {}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_kind_of_attention_runs_and_is_checked(cudnn, case):
    phase = case["phase"]
    with prepared(back_end="cudnn", **case) as timed:
        assert timed.facts.library == "cuDNN 9.28.1"
        assert timed.facts.algorithm == "eng2_k3"
        assert timed.facts.gaps == ()
        cudnn.executed.clear()
        assert timed.execute(3) == 150_000
        assert cudnn.executed == ["eng2_k3"] * 3
        correctness = timed.check()
        assert correctness.passed, correctness
        assert correctness.largest_error > 0
        for wrong in (lambda result: 1.5 * result, lambda result: result[:, ::-1] + 0, np.zeros_like):
            cudnn.spoils = wrong
            assert not timed.check().passed, phase
        cudnn.spoils = lambda result: result
        assert timed.check().passed


def test_a_result_that_is_not_written_does_not_pass(cudnn, monkeypatch):
    for case in ("prefill", "prefill fp8", "backward"):
        with prepared(back_end="cudnn", **CASES[case]) as timed:
            monkeypatch.setattr(timed._back_end, "queue", lambda: None)
            assert timed.check().largest_error == 1e30


def test_pages_are_those_of_the_table(cudnn):
    """The reference reads the cache through a table of its own: another one does not pass."""
    with prepared(back_end="cudnn", **CASES["decode pages"]) as timed:
        table = timed._reference._table
        assert sorted(table.ravel()) == list(range(table.size))
        timed._reference._table = np.roll(table, 1, axis=0)
        assert not timed.check().passed


def test_a_gradient_of_an_early_key_is_seen_by_the_sum(cudnn):
    def spoil_first_rows(gradient):
        gradient = gradient.copy()
        gradient[:, :, 0] = 0
        return gradient

    with prepared(back_end="cudnn", **CASES["backward"]) as timed:
        cudnn.spoils = spoil_first_rows
        assert not timed.check().passed


def test_a_plan_that_cannot_be_built_is_skipped(cudnn):
    cudnn.plans = [None, "eng1_k1"]
    with prepared("prefill", "cudnn") as timed:
        assert timed.facts.algorithm == "eng1_k1"
        assert timed.check().passed


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("plans", [None, None], r"^cuDNN 9\.28\.1: CUDNN_STATUS_NOT_SUPPORTED: plan$"),
        ("plans", [], r"^cuDNN 9\.28\.1: no plan is proposed$"),
        ("refuses", "sdpa fp8 needs Hopper\nand more", r"^cuDNN 9\.28\.1: sdpa fp8 needs Hopper$"),
    ],
)
def test_what_the_library_does_not_take_is_unsupported_with_its_status(cudnn, attribute, value, reason):
    setattr(cudnn, attribute, value)
    with pytest.raises(Unsupported, match=reason), prepared("prefill", "cudnn"):
        pass


def test_without_the_front_end_cudnn_runs_through_pytorch_and_the_record_says_so(modules, driver):
    modules["cudnn"], torch = None, FakeTorch(driver.advance)
    modules |= {"torch": torch, "torch.nn.attention": torch.attention}
    with prepared("prefill", "cudnn") as timed:
        assert timed.facts.library.endswith("scaled_dot_product_attention CUDNN_ATTENTION")
        (gap,) = timed.facts.gaps
        assert (gap.code, gap.detail) == ("no-front-end", "nvidia-cudnn-frontend is not installed")
        assert timed.check().passed
    with pytest.raises(Unsupported, match="nvidia-cudnn-frontend is not installed"):
        prepared("decode", "cudnn", **PAGED).__enter__()


def test_without_pytorch_what_is_missing_is_the_front_end_or_its_library(modules):
    modules["cudnn"].is_missing = True
    with pytest.raises(Unsupported, match=r"^the library of cuDNN is not installed: Unable to find"):
        prepared("prefill", "cudnn").__enter__()
    modules["cudnn"] = None
    with pytest.raises(Unsupported, match=r"^nvidia-cudnn-frontend is not installed$"):
        prepared("prefill", "cudnn").__enter__()


@pytest.mark.parametrize("case", ["decode pages", "backward", "prefill fp8", "prefill of two sizes"])
def test_other_back_ends_do_without(modules, driver, case):
    modules["torch"] = FakeTorch(driver.advance)
    for back_end in ("own", "flash"):
        with pytest.raises(Unsupported, match="is not used for pages"):
            prepared(back_end=back_end, **CASES[case]).__enter__()


@pytest.mark.parametrize(
    "shape",
    [
        {"phase": "prefill", "page_tokens": 16},
        {"phase": "decode", "page_tokens": 64, "context_tokens": 100},
        {"phase": "decode", "value_size": 512, "head_size": 576, "kv_heads": 2},
    ],
)
def test_shapes_that_mean_nothing_are_refused(shape):
    with pytest.raises(ValidationError):
        prepared(back_end="cudnn", **shape)


def work(**changes):
    shape = {"batch": 2, "query_heads": 4, "kv_heads": 2, "head_size": 128, "context_tokens": 256}
    return AttentionWork.model_validate(
        {"kind": "attention", "phase": "prefill", "back_end": "cudnn", "dtype": "bf16", **shape, **changes}
    )


def test_the_work_of_each_phase():
    forward, backward = work().count_work(), work(phase="backward").count_work()
    assert forward.flops == 2 * 2 * 4 * 256 * 256 * 128
    assert backward.flops == 2.5 * forward.flops
    assert backward.moved_bytes == 2 * forward.moved_bytes
    assert work(dtype="fp8_e4m3").count_work().moved_bytes == forward.moved_bytes / 2
    latent = work(phase="decode", kv_heads=1, head_size=576, value_size=512).count_work()
    assert latent.moved_bytes == 2 * 2 * (4 * (576 + 512) + 256 * 576)
    assert work().suite_form == 1
    assert {
        work(**{name: value}).suite_form for name, value in (("value_size", 64), ("phase", "backward"))
    } == {2}


def test_gradients_of_the_reference_are_those_of_finite_differences():
    """Of a weighted sum of the result, by each element of a query and of a key."""
    asked = work(
        batch=1, query_heads=2, kv_heads=1, head_size=64, context_tokens=8, phase="backward", dtype="fp32"
    )
    reference = attention_reference.AttentionReference(asked, [11, 12, 13, 14], 5)
    generate, step = reference._generate, 1e-5

    def changed(which, row, place, by):
        def generate_changed(asked_which, first, count, size):
            found = generate(asked_which, first, count, size).copy()
            if asked_which == which and first <= row < first + count:
                found[row - first, place] += by
            return found

        reference._generate = generate_changed
        total = sum(
            np.sum(reference.compute_rows(unit, range(8)) * generate(3, 8 * unit, 8, 64)) for unit in (0, 1)
        )
        reference._generate = generate
        return total

    def difference(which, row, place):
        return (changed(which, row, place, step) - changed(which, row, place, -step)) / (2 * step)

    of_query, of_key = reference.compute_query_gradients(1, [5])[0], reference.compute_key_gradients(0)
    last = reference.list_last_keys()
    for place in (0, 17, 63):
        assert of_query[place] == pytest.approx(difference(0, 13, place), rel=1e-5, abs=1e-8)
        for number, key in enumerate(last):
            assert of_key.keys[number, place] == pytest.approx(difference(1, key, place), rel=1e-5, abs=1e-8)
            assert of_key.values[number, place] == pytest.approx(
                difference(2, key, place), rel=1e-5, abs=1e-8
            )
    assert of_key.sum_of_values[3] == pytest.approx(sum(difference(2, key, 3) for key in range(8)), rel=1e-5)
