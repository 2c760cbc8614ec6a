"""Transforms: which buffers, what is timed, and what passes the check."""

import importlib

import numpy as np
import pytest

from service.worker.benchmark import Unsupported
from service.worker.cuda import PREPARE, bindings, fft
from tests.worker.cuda.fake_cufft import FakeCufft
from tests.worker.cuda.test_cuda import SEED, asked

ROUGH = {"dtype": "fp32", "points": 64, "batch": 3}


@pytest.fixture
def cufft(driver, monkeypatch):
    fake = FakeCufft(driver.advance)
    modules = {"nvmath.bindings.cufft": fake}
    monkeypatch.setattr(
        bindings, "import_module", lambda name: modules.get(name) or importlib.import_module(name)
    )
    yield fake
    assert fake.plans == {}


def transform(**work):
    return PREPARE["fft"](asked("fft", metric="flops_per_second", **{**ROUGH, **work}), SEED, 0)


@pytest.mark.parametrize(
    "work",
    [
        {"points": 4096}, {"points": 5003}, {"points": 4097, "dtype": "fp64"},
        {"points": 24, "dimensions": 2}, {"points": 11, "dimensions": 3, "dtype": "fp64"},
        {"dtype": "fp16"}, {"in_place": True}, {"points": 2, "batch": 1},
    ],
    ids=lambda work: "-".join(map(str, work.values())),
)  # fmt: skip
def test_every_transform_is_computed_and_a_wrong_one_does_not_pass(cufft, work):
    with transform(**work) as timed:
        assert timed.check().passed
        cufft.spoils = lambda spectrum: spectrum * (1 + 0.2 * (work.get("dtype") == "fp16") + 1e-4)
        assert not timed.check().passed
        cufft.spoils = np.conj
        assert not timed.check().passed or work["points"] == 2


def test_a_transform_that_is_not_written_does_not_pass(cufft, monkeypatch):
    with transform() as timed:
        monkeypatch.setattr(timed._plan, "enqueue_transform", lambda *_: None)
        assert timed.check().largest_error == 1e30


def test_buffers_take_turns_and_small_ones_are_flushed(cufft, driver):
    with transform(points=65_536) as timed:
        assert timed.facts.rotated_buffers == 7
        cufft.buffers.clear()
        assert timed.execute(7) == 280_000
        assert len({source for source, _ in cufft.buffers}) == 7
    with transform() as timed:
        timed.execute(1)
        driver.forget()
        assert timed.execute(2) == 80_000
        assert driver.journal == ["flush", "record", "record"] * 2


def test_what_lies_in_place_is_made_anew_before_each(cufft, driver):
    """It would grow until it is no number: 64 points are 8 times as large after each."""
    with transform(in_place=True) as timed:
        timed.execute(1)
        driver.forget()
        timed.execute(2)
        assert driver.journal == ["fill_fp32", "flush", "record", "record"] * 2
        assert all(source == spectrum for source, spectrum in cufft.buffers)


def test_a_record_says_what_length_it_was(cufft):
    with transform(points=5003) as timed:
        assert timed.facts.algorithm == "prime length 5003; work area 4096 bytes"
        assert timed.facts.library == "cuFFT 12.5.0"
    assert fft.format_factors(8192) == "length 8192 = 2^13"
    assert fft.format_factors(360) == "length 360 = 2^3 x 3^2 x 5^1"


def test_what_the_library_or_the_device_has_no_room_for_is_unsupported(cufft, driver):
    with pytest.raises(Unsupported, match=r"^cuFFT: INVALID_SIZE"), transform(dtype="fp16", points=96):
        pass
    driver.memory(2**20)
    with pytest.raises(Unsupported, match="are free"), transform(points=2**18):
        pass
