"""Steps of optimizers, sums of gradients and compression: what the kernels leave, and what is noticed."""

import numpy as np
import pytest

from service.protocol.work.training import GradientAccumulationWork, OptimizerStepWork
from service.worker import gradients
from service.worker.benchmark import Unsupported
from service.worker.cuda import gradient_compression, numbers
from tests.worker.cuda.host_kernels import counted
from tests.worker.cuda.test_cuda import MIB, SEED, prepared

COMPUTED = [
    ("optimizer_step", {"optimizer": "adamw", "parameters": 9_004}),
    ("optimizer_step", {"optimizer": "sgd_momentum", "parameters": 9_004}),
    ("gradient_accumulation", {"gradient_dtype": "bf16", "parameters": 9_004}),
    ("gradient_accumulation", {"gradient_dtype": "fp32", "parameters": 9_004}),
    ("gradient_compression", {"method": "int8", "parameters": 19 * 1024}),
    ("gradient_compression", {"method": "sign", "parameters": 19 * 1024}),
    ("gradient_compression", {"method": "top_k", "parameters": 19 * 1024}),
    ("gradient_compression", {"method": "top_k", "parameters": 9 * 1024, "kept_share": 0.5}),
]


def identify(value):
    return "-".join(str(one) for one in value.values()) if isinstance(value, dict) else value


@pytest.mark.parametrize(("kind", "work"), COMPUTED, ids=identify)
def test_what_is_computed_is_right_and_work_that_is_left_out_is_noticed(driver, monkeypatch, kind, work):
    with prepared(kind, **work) as timed:
        assert timed.execute(2) > 0
        # Begins from the seed again, whatever the executions left.
        assert timed.check().passed
        monkeypatch.setattr(timed, "_launch", lambda: None)
        assert not timed.check().passed


RESULTS = {
    "optimizer_step": ["_master", "_m", "_v", "_weight"],
    "gradient_accumulation": ["_sum"],
    "gradient_compression-int8": ["_error", "_sent", "_scales"],
    "gradient_compression-sign": ["_error", "_sent", "_scale"],
    "gradient_compression-top_k": ["_error", "_places", "_values"],
}


@pytest.mark.parametrize(("kind", "work"), [COMPUTED[i] for i in (0, 2, 4, 5, 6)], ids=identify)
def test_one_bit_that_is_wrong_is_noticed(driver, monkeypatch, kind, work):
    """In every array that a kernel leaves; far from the sample of NumPy where the array is long enough."""
    monkeypatch.setattr("service.worker.cuda.stream.CHECKED_ELEMENTS", 1024)
    name = f"{kind}-{work['method']}" if "method" in work else kind
    with prepared(kind, **work) as timed:
        launch = timed._launch
        for result in RESULTS[name]:
            address = getattr(timed, result)
            place = address if result.startswith("_scale") else address + 256

            def wrong(place=place):
                launch()
                held = np.empty(1, np.uint32)
                timed._device.to_host(held, place)
                held ^= np.uint32(1 << 16)
                timed._device.to_device(place, held)

            monkeypatch.setattr(timed, "_launch", wrong)
            assert not timed.check().passed, result


def array(kind, count, seed):
    places = np.arange(count)
    if kind == "bf16":
        bits = numbers.generate_normal("bf16", seed, places).astype(np.float32).view(np.uint32)
        return (bits >> np.uint32(16)).astype(np.uint16)
    return numbers.generate_normal("fp32", seed, places).astype(np.float32)


@pytest.mark.parametrize("optimizer", ["adamw", "sgd_momentum"])
def test_a_step_touches_what_its_amount_says(optimizer):
    count = 2_004
    gradient, master, m = array("bf16", count, 1), array("fp32", count, 2), array("fp32", count, 3)
    v, weight = array("fp32", count, 4) ** 2, np.zeros(count, np.uint16)
    states = (m, v) if optimizer == "adamw" else (m,)
    rest = (count // 4, *gradients.RULES[optimizer].to_bits())
    touched = counted("optimizer.cu", optimizer, 3, 256, gradient, master, *states, weight, *rest)
    amount = OptimizerStepWork(kind="optimizer_step", optimizer=optimizer, parameters=count).count_work()
    assert sum(map(sum, touched)) == amount.moved_bytes


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_an_accumulation_touches_what_its_amount_says(dtype):
    count = 2_004
    gradient, total = array(dtype, count, 1), array("fp32", count, 2)
    touched = counted("accumulation.cu", f"accumulate_{dtype}", 3, 256, total, gradient, count // 4)
    work = GradientAccumulationWork(kind="gradient_accumulation", gradient_dtype=dtype, parameters=count)
    assert sum(map(sum, touched)) == work.count_work().moved_bytes


def test_adamw_is_that_of_the_paper():
    """Step 10 written out as algorithm 2 has it, in fp64, from states that nine steps leave."""
    rng = np.random.default_rng(7)
    weight, first, second = rng.normal(size=50), np.zeros(50), np.zeros(50)
    for step in range(1, 11):
        gradient = rng.normal(size=50)
        before = weight, first, second
        first = 0.9 * first + 0.1 * gradient
        second = 0.95 * second + 0.05 * gradient**2
        mean, square = first / (1 - 0.9**step), second / (1 - 0.95**step)
        weight = weight - 3e-4 * (mean / (np.sqrt(square) + 1e-8) + 0.1 * weight)
    found = gradients.apply_rule(gradients.RULES["adamw"], gradient, *before)
    assert np.allclose(found, (weight, first, second), rtol=1e-12, atol=0)


def sums_of(timed):
    return timed._compute_sums(np.arange(timed._work.parameters))


def read(timed, address, dtype, count):
    held = np.empty(count, dtype)
    timed._device.to_host(held, address)
    return held


def test_the_largest_are_chosen_and_nothing_is_lost(driver):
    """As NumPy sorts them; what is sent and what is kept make up the whole."""
    with prepared("gradient_compression", method="top_k", parameters=19 * 1024, kept_share=0.02) as timed:
        timed._reset_error()
        timed._launch()
        wanted = sums_of(timed)
        kept = timed._kept
        assert kept == 390
        places = read(timed, timed._places, np.uint32, kept)
        values = read(timed, timed._values, np.float32, kept)
        assert set(np.argsort(-np.abs(wanted), kind="stable")[:kept]) == set(places.tolist())
        whole = read(timed, timed._error, np.float32, wanted.size)
        whole[places] += values
        assert np.array_equal(whole, wanted)


def test_of_equals_as_many_are_sent_as_are_wanted(driver):
    with prepared("gradient_compression", method="top_k", parameters=8 * 1024, kept_share=0.5) as timed:
        ones = np.ones(8 * 1024, np.float32)
        ones[100:200] = -3
        timed._device.to_device(timed._gradient, ones)
        timed._device.to_device(timed._error, np.zeros_like(ones))
        timed._launch()
        places = read(timed, timed._places, np.uint32, 4096)
        assert set(range(100, 200)) <= set(places.tolist())
        assert np.unique(places).size == 4096
        left = read(timed, timed._error, np.float32, ones.size)
        assert np.count_nonzero(left == 0) == 4096


def test_eight_bits_and_one_bit_lose_what_the_error_keeps(driver):
    count = 8 * 1024
    with prepared("gradient_compression", method="int8", parameters=count) as timed:
        timed._reset_error()
        timed._launch()
        sent = read(timed, timed._sent, np.int8, count).astype(np.float32)
        scales = np.repeat(read(timed, timed._scales, np.float32, count // 1024), 1024)
        left = read(timed, timed._error, np.float32, count)
        assert np.allclose(sent * scales + left, sums_of(timed), rtol=1e-6, atol=1e-6)
        assert np.abs(left).max() <= scales.max() / 2 * 1.001
        assert np.abs(sent).max() == 127
    with prepared("gradient_compression", method="sign", parameters=count) as timed:
        timed._reset_error()
        timed._launch()
        wanted = sums_of(timed)
        scale = read(timed, timed._scale, np.float32, 1)[0]
        assert scale == pytest.approx(np.abs(wanted.astype(np.float64)).mean(), rel=1e-6)
        left = read(timed, timed._error, np.float32, count)
        assert np.allclose(left + np.where(wanted < 0, -scale, scale), wanted, atol=1e-6)


def test_a_block_of_nothing_has_no_scale(driver):
    with prepared("gradient_compression", method="int8", parameters=1024) as timed:
        for address in (timed._gradient, timed._error):
            timed._device.to_device(address, np.zeros(1024, np.float32))
        timed._launch()
        assert read(timed, timed._scales, np.float32, 1)[0] == 0
        assert not read(timed, timed._sent, np.int8, 1024).any()
        sent, scales, lost = gradients.quantize_int8(np.zeros(1024, np.float32))
        assert not sent.any()
        assert not scales.any()
        assert not lost.any()


@pytest.mark.parametrize(
    ("kind", "work", "reason"),
    [
        ("optimizer_step", {"optimizer": "adamw", "parameters": 1025}, "multiple of 4"),
        ("gradient_accumulation", {"gradient_dtype": "fp32", "parameters": 1025}, "multiple of 4"),
        ("gradient_compression", {"method": "sign", "parameters": 1028}, "multiple of 1024"),
        ("gradient_compression", {"method": "sign", "parameters": 2**33}, "counts have 32 bits"),
        ("optimizer_step", {"optimizer": "adamw", "parameters": 64 * MIB}, "1074790400 bytes, .* free"),
        ("gradient_accumulation", {"gradient_dtype": "fp32", "parameters": 256 * MIB}, "bytes, .* free"),
        ("gradient_compression", {"method": "int8", "parameters": 256 * MIB}, "bytes, .* free"),
    ],
)
def test_what_does_not_fit_is_unsupported(driver, kind, work, reason):
    driver.memory(512 * MIB)
    with pytest.raises(Unsupported, match=reason), prepared(kind, **work):
        pass


def test_the_places_that_are_sent_depend_on_the_seed(driver):
    found = []
    for seed in (SEED, SEED + 1):
        with prepared("gradient_compression", seed=seed, method="top_k", parameters=8192) as timed:
            timed._reset_error()
            timed._launch()
            found.append(set(read(timed, timed._places, np.uint32, timed._kept).tolist()))
    assert len(found[0] & found[1]) < len(found[0]) / 2
    assert gradient_compression.DIGITS == (20, 10, 0)
