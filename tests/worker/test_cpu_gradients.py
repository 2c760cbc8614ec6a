"""Optimizers, gradients and the cache on a processor: what is noticed, and what does not fit."""

import numpy as np
import pytest

from service.worker import gradients
from service.worker.benchmark import Unsupported
from service.worker.cpu import cache_stream, optimizer_step
from service.worker.cpu import gradients as measured
from service.worker.cuda.numbers import decode_bf16
from tests.worker.test_cpu import checked, identify, prepared, small_machine

__all__ = ["small_machine"]

ADAMW = {"kind": "optimizer_step", "optimizer": "adamw", "parameters": 20_001}
ADDED = {"kind": "gradient_accumulation", "gradient_dtype": "bf16", "parameters": 20_001}
INT8, SIGN, TOP_K = (
    {"kind": "gradient_compression", "method": method, "parameters": 20 * 1024}
    for method in ("int8", "sign", "top_k")
)
READ, COPY = (
    {"kind": "cache_stream", "pattern": pattern, "array_bytes": 8 * 2_001, "passes": 5}
    for pattern in ("read", "copy")
)


@pytest.mark.parametrize(
    ("work", "left_out"),
    [
        (ADAMW, "sqrt"),
        (ADAMW, "right_shift"),
        (ADDED, "add"),
        ({**ADDED, "gradient_dtype": "fp32"}, "add"),
        (INT8, "rint"),
        (INT8, "copyto"),
        (SIGN, "less"),
        (SIGN, "subtract"),
        (COPY, "copyto"),
    ],
    ids=lambda value: value if isinstance(value, str) else identify(value),
)
def test_work_that_is_left_out_is_noticed(monkeypatch, work, left_out):
    # Results that nobody keeps are those of the reference.
    real = getattr(np, left_out)
    keeps = {"copyto"}
    monkeypatch.setattr(
        np,
        left_out,
        lambda *a, **k: None if "out" in k or left_out in keeps else real(*a, **k),
    )
    assert not checked(work).passed


def test_passes_that_are_left_out_are_noticed(monkeypatch):
    passes = cache_stream._build_task
    monkeypatch.setattr(
        cache_stream, "_build_task", lambda work, *rest: passes(work.model_copy(update={"passes": 4}), *rest)
    )
    assert not checked(READ).passed


@pytest.mark.parametrize("spoils", ["places", "values"])
def test_other_places_than_those_of_the_largest_are_noticed(monkeypatch, spoils):
    run = measured._TopK.run

    def wrong(method, *arguments):
        run(method, *arguments)
        getattr(method, spoils)[0] = 0 if spoils == "places" else np.nan

    monkeypatch.setattr(measured._TopK, "run", wrong)
    assert not checked(TOP_K).passed


def test_a_check_begins_from_the_seed_whatever_executions_have_left():
    with prepared({**TOP_K, "parameters": 1024, "kept_share": 0.1}) as timed:
        timed.execute(1)
        first = timed.check()
        timed.execute(100 * timed.facts.rotated_buffers)
        assert timed.check() == first
        assert first.passed


def test_what_is_sent_and_what_is_lost_make_up_the_whole():
    values = np.random.default_rng(1).normal(size=4096).astype(np.float32)
    sent, scales, lost = gradients.quantize_int8(values)
    assert np.allclose(sent * np.repeat(scales, 1024) + lost, values, atol=1e-6)
    below, lost = gradients.quantize_sign(values, np.float32(0.8))
    assert np.allclose(np.where(below, -0.8, 0.8) + lost, values, atol=1e-6)


def test_bf16_is_rounded_to_nearest_and_even():
    ones = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -1 - 2**-9], np.float32)
    assert decode_bf16(gradients.encode_bf16(ones)).tolist() == [1, 1, 1 + 2**-6, 1 + 2**-7, -1]


def test_a_step_in_blocks_is_the_formula_bit_by_bit():
    drawn = optimizer_step._generate_arrays(np.random.default_rng(3), 1000, with_squares=True)
    arrays = {name: array.copy() for name, array in drawn.items()}
    rule = gradients.RULES["adamw"].to_fp32()
    scratch = optimizer_step._allocate_scratch()
    optimizer_step._build_task(rule, arrays, slice(0, 1000), scratch)()
    states = (drawn["master"], drawn["m"], drawn["v"])
    wanted = gradients.apply_rule(rule, decode_bf16(drawn["gradient"]), *states)
    for name, values in zip(("master", "m", "v"), wanted, strict=True):
        assert np.array_equal(arrays[name], values), name


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        ({**COPY, "array_bytes": 30_000}, "60000 bytes in a cache of 100000"),
        ({**READ, "array_bytes": 1004}, "no multiple of 8"),
        ({**INT8, "parameters": 1000}, "multiple of 1024"),
    ],
)
def test_what_does_not_fit_is_unsupported(work, reason):
    with pytest.raises(Unsupported, match=reason), prepared(work):
        pass


def test_a_cache_of_unknown_size_is_no_cache_to_measure(monkeypatch):
    monkeypatch.setattr(cache_stream, "last_level_cache_bytes", lambda: None)
    with pytest.raises(Unsupported, match="size of its cache"), prepared(READ):
        pass
