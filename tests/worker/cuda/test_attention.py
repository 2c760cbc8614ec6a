"""Attention as a benchmark: which back end runs, what is timed, and what passes the check."""

import importlib

import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, attention, bindings
from tests.worker.cuda.fake_torch import FakeTorch
from tests.worker.cuda.test_cuda import SEED, asked

SHAPE = {"batch": 2, "query_heads": 4, "kv_heads": 2, "head_size": 64, "context_tokens": 40}


def prepared(phase, back_end="own", dtype="bf16", **shape):
    work = {**SHAPE, **shape, "phase": phase, "back_end": back_end, "dtype": dtype}
    return PREPARE["attention"](asked("attention", metric="flops_per_second", **work), SEED, 0)


@pytest.fixture
def torch(driver, monkeypatch):
    fake = FakeTorch(driver.advance)
    modules = {"torch": fake, "torch.nn.attention": fake.attention}
    monkeypatch.setattr(
        bindings, "import_module", lambda name: modules.get(name) or importlib.import_module(name)
    )
    return fake


@pytest.mark.parametrize(
    ("phase", "dtype", "kernels"),
    [
        ("prefill", "bf16", ["prefill_bf16_64"]),
        ("decode", "fp16", ["decode_fp16_64", "combine_fp16"]),
        ("decode", "fp32", ["decode_fp32_64", "combine_fp32"]),
    ],
)
def test_own_kernels_are_flushed_timed_and_checked(driver, monkeypatch, phase, dtype, kernels):
    with prepared(phase, dtype=dtype) as timed:
        timed.execute(1)
        driver.forget()
        assert timed.execute(2) == 20_000 * len(kernels)
        # The data would fit into the cache.
        assert driver.journal == ["flush", "hold", "record", *kernels, "record"] * 2
        assert timed.check().passed
        assert timed.facts.library == "own kernel attention"
        monkeypatch.setattr(timed._back_end, "queue", lambda: None)
        assert timed.check().largest_error == 1e30


def test_another_seed_or_place_does_not_pass(driver):
    with prepared("decode") as timed:
        timed._seeds[2] ^= 1
        assert not timed.check().passed
        timed._seeds[2] ^= 1
        timed._read_row = lambda address, unit, query: attention.AttentionTimed._read_row(
            timed, address, unit ^ 1, query
        )
        assert not timed.check().passed


def test_the_context_is_read_in_as_many_parts_as_is_fastest(driver, monkeypatch):
    times = iter([30, 12, 40])
    monkeypatch.setattr(attention, "TRIALS", 1)
    monkeypatch.setattr(attention.CudaAttention, "_time_launch", lambda *_: next(times))
    with prepared("decode", batch=1, query_heads=1, kv_heads=1, context_tokens=600) as timed:
        assert timed.facts.algorithm == "2 blocks, context in 2 parts; fastest of 3"


@pytest.mark.parametrize("back_end", attention.BACK_ENDS)
def test_each_back_end_of_pytorch_runs_by_its_name_on_the_stream_that_is_timed(torch, back_end):
    with prepared("prefill", back_end) as timed:
        assert torch.seen[0] == ("cuda", 0)
        torch.seen.clear()
        assert timed.execute(3) == 150_000
        assert torch.seen == [(back_end, True, True)] * 3
        assert timed.check().passed
        assert timed.facts.library == (
            f"torch 2.9.0 scaled_dot_product_attention {attention.BACK_ENDS[back_end]}"
        )
        torch.spoils = lambda result: result[::-1]
        assert not timed.check().passed
    assert torch.active == []
    assert not torch.backends.cuda.matmul.allow_tf32


def test_calls_of_a_library_are_queued_before_the_device_begins(torch, driver):
    """Behind a hold of 0.3 ms, and behind twice that where the device was there first."""
    holds = []
    with prepared("decode", "flash") as timed:
        launch = timed._device.build_launch

        def build_launch(kernel, blocks, *arguments, **more):
            holds.extend(arguments if more == {"threads": 1} else [])
            return launch(kernel, blocks, *arguments, **more)

        timed._device.build_launch = build_launch
        timed.execute(1)
        holds.clear()
        driver.fact("begun", 2)
        driver.forget()
        assert timed.execute(3) == 150_000
        assert driver.journal == ["flush", "hold", "record", "record"] * 5
        assert holds == [300_000, 600_000, 1_200_000, 1_200_000, 1_200_000]
        driver.fact("begun", 1000)
        with pytest.raises(Unsupported, match="host takes longer than 76800000 ns to queue the work"):
            timed.execute(1)


def test_a_decoding_step_of_pytorch_sees_the_whole_context(torch):
    with prepared("decode", "flash", query_heads=2) as timed:
        assert timed.check().passed
        assert torch.seen[-1] == ("flash", False, False)


def test_what_a_back_end_lacks_is_unsupported(torch):
    torch.refuses = {"cudnn"}
    for reason, asked_for in {
        "^CUDNN_ATTENTION: No available kernel. Aborting execution.$": ("prefill", "cudnn"),
        "64 or 128": ("decode", "own", "bf16", 256),
        "requires bf16 or fp16": ("prefill", "own", "fp32"),
    }.items():
        phase, back_end, *more = asked_for
        shape = {"head_size": more.pop()} if len(more) == 2 else {}
        with pytest.raises(Unsupported, match=reason), prepared(phase, back_end, *more, **shape):
            pass


def test_without_pytorch_its_back_ends_are_unsupported(driver, monkeypatch):
    def missing(name):
        if name.startswith("torch"):
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr(bindings, "import_module", missing)
    with pytest.raises(Unsupported, match=r"^torch is not installed$"), prepared("decode", "flash"):
        pass
