"""Attention by flash-attn 3 and FlashInfer: what is called, what passes, what is unsupported."""

import importlib

import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import bindings
from tests.worker.cuda.fake_attention_packages import FakeFlashAttention, FakeFlashInfer
from tests.worker.cuda.fake_torch import FakeTorch
from tests.worker.cuda.test_attention import prepared

CASES = {
    "prefill": {"phase": "prefill"},
    "prefill fp16": {"phase": "prefill", "dtype": "fp16"},
    "decode": {"phase": "decode"},
    "decode pages": {"phase": "decode", "page_tokens": 16, "context_tokens": 48},
}
MODULES = {"flash3": "flash_attn_interface", "flashinfer": "flashinfer"}


@pytest.fixture
def modules(driver, monkeypatch):
    torch = FakeTorch(driver.advance)
    found = {
        "torch": torch,
        "flash_attn_interface": FakeFlashAttention(torch),
        "flashinfer": FakeFlashInfer(torch),
    }

    def load(name):
        if found.get(name, name) is None:
            raise ImportError(name)
        return found.get(name) or importlib.import_module(name)

    monkeypatch.setattr(bindings, "import_module", load)
    return found


@pytest.mark.parametrize("back_end", MODULES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_case_runs_and_is_checked(modules, back_end, case):
    package = modules[MODULES[back_end]]
    with prepared(back_end=back_end, **case) as timed:
        package.calls.clear()
        assert timed.execute(2) == 100_000
        assert package.calls == [case["phase"]] * 2
        correctness = timed.check()
        assert correctness.passed, correctness
        assert correctness.largest_error > 0
        modules["torch"].spoils = lambda result: result[:, ::-1]
        assert not timed.check().passed
    assert modules["torch"].active == []


def test_the_table_of_pages_is_that_of_the_reference(modules):
    for back_end in MODULES:
        with prepared(back_end=back_end, **CASES["decode pages"]) as timed:
            timed._reference._table = timed._reference._table[::-1]
            assert not timed.check().passed


def test_what_is_missing_or_refused_is_unsupported_by_name(modules):
    modules["flashinfer"].refuses = "head_dim 64 is not compiled\nand more"
    with pytest.raises(Unsupported, match=r"^flashinfer-python: head_dim 64 is not compiled$"):
        prepared("prefill", "flashinfer").__enter__()
    modules |= dict.fromkeys(MODULES.values())
    for back_end, name in (("flash3", "flash-attn-3"), ("flashinfer", "flashinfer-python")):
        with pytest.raises(Unsupported, match=f"^{name} is not installed$"):
            prepared("prefill", back_end).__enter__()


@pytest.mark.parametrize("more", [{"dtype": "fp8_e4m3"}, {"value_size": 128, "head_size": 192}])
def test_other_formats_are_left_to_cudnn(modules, more):
    for back_end in MODULES:
        with pytest.raises(Unsupported, match="16 bits with heads of one size"):
            prepared("prefill", back_end, **{"dtype": "bf16", **more}).__enter__()
