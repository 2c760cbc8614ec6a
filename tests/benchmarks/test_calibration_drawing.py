"""What is drawn is what planning defines: read off planning and drawn, every constant is where it was."""

import dataclasses
import math

import pytest

from service.calibrations.fitting import FittedDevice, compute_figures
from service.calibrations.sets import parse_calibration, to_document
from service.planning.hardware.calibration import AchievedShare, OperatorQuantity, ServingQuantity
from service.planning.hardware.calibration.measured import DeviceCalibration, MeasuredScope
from service.protocol.suites import shipped_suites
from tests.asking import ask, question
from tests.benchmarks.planned import (
    CALIBRATION,
    COLLECTIVES,
    SUITE,
    Planned,
    attention,
    cached,
    device,
    gemm,
    observations,
    observed,
    power,
    prompt,
    work,
)
from tests.calibrated import figure as measured_figure
from tests.calibrated import scope_of, with_sets

H100 = device()
SERVING = H100.reference.serving.get_rates(None)


def shares(found):
    """Every figure as planning takes it: over its limit where it has one."""
    return {
        each.name: each.figure.value / (getattr(each.figure, "limit", None) or 1.0) for each in found.figures
    }


def drawn(of_device=H100, *, suite=SUITE, **slowness):
    return shares(compute_figures(observations(Planned(of_device, **slowness), suite), of_device))


def expected(of_device=H100):
    rates = of_device.machine.rates
    serving = of_device.reference.serving.get_rates(None)
    constants = of_device.reference.power.get_rates("hopper")
    return {
        "operators.bandwidth": rates.bandwidth,
        "operators.matrix_peak.bf16": rates.matrix_peak["bf16"],
        "operators.matrix_peak.fp8": rates.matrix_peak["fp8"],
        "operators.kernel_seconds": rates.kernel_seconds,
        "operators.matrix_fill": rates.matrix_fill,
        "operators.wave_tail": rates.wave_tail,
        "operators.attention_peak": rates.attention_peak,
        "operators.attention_native_peak": rates.attention_native_peak,
        "operators.attention_backward": rates.attention_backward,
        "serving.weight_bandwidth": rates.bandwidth * serving.weight_bandwidth,
        "serving.expert_bandwidth": rates.bandwidth * serving.expert_bandwidth,
        "serving.cache_bandwidth": rates.bandwidth * serving.cache_bandwidth,
        "power.idle_share": constants.idle_share,
        "power.active_share": constants.active_share,
        "power.byte_joules": constants.byte_joules,
    }


def test_a_device_as_planning_has_it_draws_what_planning_has():
    assert drawn() == pytest.approx(expected(), rel=1e-6)


def test_another_device_draws_its_own():
    """The one that is measured has other constants than those that hold before it is."""
    changed = {
        OperatorQuantity.MATRIX_FILL: 1.3,
        OperatorQuantity.KERNEL_SECONDS: 0.8,
        OperatorQuantity.ATTENTION_NATIVE_PEAK: 0.9,
        OperatorQuantity.BANDWIDTH: 1.05,
    }

    def moved(key, share):
        factor = changed.get(key[0], 1.0)
        return AchievedShare(
            share.low * factor, share.value * factor, share.high * factor, share.runs, share.source
        )

    operators = dataclasses.replace(
        CALIBRATION.operators,
        constants={key: moved(key, share) for key, share in CALIBRATION.operators.constants.items()},
        _known={},
    )
    other = device(reference=dataclasses.replace(CALIBRATION, operators=operators))
    found = shares(compute_figures(observations(Planned(other)), H100))
    # Filling and the seconds of a kernel are told apart by shapes: not to the last digit.
    assert found == pytest.approx(expected(other), rel=0.04)
    assert found["operators.bandwidth"] == pytest.approx(1.05 * H100.machine.rates.bandwidth, rel=1e-3)


def test_half_the_bandwidth_is_no_slower_multiplier():
    slow, usual = drawn(stream=0.5), drawn()
    for name in ("operators.bandwidth", "serving.weight_bandwidth", "serving.cache_bandwidth"):
        assert slow[name] == pytest.approx(usual[name] / 2, rel=1e-3)
    assert slow["operators.matrix_peak.bf16"] == pytest.approx(usual["operators.matrix_peak.bf16"])


def test_half_the_rate_of_products_is_no_slower_memory():
    slow, usual = drawn(matrix=0.5), drawn()
    for name in ("matrix_peak.bf16", "matrix_peak.fp8", "attention_native_peak"):
        assert slow[f"operators.{name}"] == pytest.approx(usual[f"operators.{name}"] / 2, rel=1e-3)
    for name in ("operators.bandwidth", "serving.weight_bandwidth"):
        assert slow[name] == pytest.approx(usual[name])
    # What nobody measured of it stays as it is known.
    assert slow.get("operators.matrix_fill", usual["operators.matrix_fill"]) == usual["operators.matrix_fill"]


def test_the_constants_of_a_link_come_back_from_its_collectives():
    found = drawn(suite=COLLECTIVES)
    links = H100.reference.links.value
    assert found == pytest.approx(
        {
            "links.nvlink.rate": links.links["nvlink"].rate,
            "links.nvlink.launch_seconds": links.launch_seconds,
            "links.nvlink.in_network_rate": links.in_network["hopper"],
        },
        rel=1e-3,
    )


def test_processes_come_before_one_process_and_graphs_tell_nothing_of_a_link():
    """One process that starts a collective on eight devices takes longer than each of eight does."""
    read = observations(Planned(H100), COLLECTIVES)
    usual = shares(compute_figures(read, H100))

    def change(one, factor, **mode):
        figure = factor * one.figures[0]
        changed = one._replace(figures=(figure,), low=figure, high=figure)
        return changed._replace(work=one.work.model_copy(update=mode))

    short = [one for one in read if one.work.payload_bytes <= 2**20]
    rest = [one for one in read if one not in short]
    slow = [change(one, 3.0) for one in short]
    processes = [change(one, 1.0, processes="per_device") for one in short]
    graphs = [change(one, 0.2, processes="per_device", launch="graph") for one in short]
    for every in ([*slow, *rest, *processes, *graphs], [*processes, *graphs, *rest, *slow]):
        assert shares(compute_figures(every, H100)) == pytest.approx(usual, rel=1e-6)
    alone = shares(compute_figures([*slow, *rest], H100))
    assert alone["links.nvlink.launch_seconds"] > 2.0 * usual["links.nvlink.launch_seconds"]


def test_a_link_without_switches_is_fitted_without_what_a_switch_would_have_added():
    """A node may report a figure under an algorithm that its library replaced by another."""
    a100 = device("a100-sxm-80gb")
    read = observations(Planned(a100), COLLECTIVES)
    added = work("collective", operation="all_reduce", devices=8, payload_bytes=2**30, algorithm="nvls")
    wrong = [*read, observed("nvls", added, "seconds", 0.5)]
    assert shares(compute_figures(wrong, a100)) == shares(compute_figures(read, a100))


def test_one_size_that_went_wrong_does_not_move_a_link():
    read = observations(Planned(H100), COLLECTIVES)
    wrong = next(place for place, one in enumerate(read) if one.benchmark == "all_gather.8.67108864")
    figure = read[wrong].figures[0] * 5
    read[wrong] = read[wrong]._replace(figures=(figure,), low=figure, high=figure)
    found = compute_figures(read, H100)
    links = H100.reference.links.value
    assert shares(found)["links.nvlink.rate"] == pytest.approx(links.links["nvlink"].rate, rel=0.01)
    (line,) = (one for one in found.lines if (one.collective, one.devices) == ("all_gather", 8))
    assert max(ratio for _, ratio in line.residuals) > 3.0


def test_a_line_says_what_its_collective_takes():
    """Seconds are alpha and bytes over beta, as they were made here."""
    made = [
        observed(
            f"size.{size}",
            work("collective", operation="all_gather", devices=4, payload_bytes=size),
            "seconds",
            2e-5 + size / 3e11,
        )
        for size in (2**12, 2**16, 2**20, 2**24, 2**28)
    ]
    (line,) = compute_figures(made, H100).lines
    assert (line.alpha_seconds, line.beta_bytes_per_second) == pytest.approx((2e-5, 3e11), rel=0.01)
    assert all(ratio == pytest.approx(1.0, abs=0.02) for _, ratio in line.residuals)


def test_what_was_warmed_longest_is_what_a_device_sustains():
    cool = observed("gemm.bf16", gemm(8192, 8192, 8192), "flops_per_second", 8.0e14, warmup=2.0)
    warm = observed("gemm.sustained", gemm(8192, 8192, 8192), "flops_per_second", 7.0e14, warmup=30.0)
    (peak,) = compute_figures([cool, warm], H100).figures
    assert peak.figure.value == pytest.approx(7.0e14, rel=0.01)
    assert peak.rests_on.benchmarks == ("gemm.sustained",)


def test_a_skinny_product_says_nothing_of_multipliers():
    skinny = observed("skinny", gemm(16, 14336, 8192), "bytes_per_second", 2.5e12)
    assert [each.name for each in compute_figures([skinny], H100).figures] == ["serving.weight_bandwidth"]


def test_the_middle_of_runs_lies_between_their_extremes():
    copies = observed(
        "copy", work("stream", pattern="copy", array_bytes=2**32), "bytes_per_second", 3e12, 2.8e12, 2.9e12
    )
    (found,) = compute_figures([copies], H100).figures
    figure = found.figure
    assert (figure.low, figure.value, figure.high) == pytest.approx((2.8e12, 2.9e12, 3e12), rel=0.01)
    assert (figure.runs, figure.limit) == (3, H100.accelerator.bandwidth_bytes_per_second)
    assert found.rests_on.run_ids == ("run-0", "run-1", "run-2")


def test_back_ends_of_attention_are_used_in_their_order():
    """cuDNN, FlashInfer, flash-attn 3: an engine takes one of them, and no mean of all."""
    planned = Planned(H100)
    slower = {"cudnn": 0.9, "flashinfer": 0.8, "flash3": 0.7}

    def read(back_ends):
        return [
            observed(
                name,
                prompt(name),
                "flops_per_second",
                slower[name] * planned.figure(prompt("cudnn"), "flops_per_second"),
            )
            for name in back_ends
        ]

    for place, name in enumerate(slower):
        found = shares(compute_figures(read(list(slower)[place:]), H100))["operators.attention_native_peak"]
        assert found == pytest.approx(slower[name] * H100.machine.rates.attention_native_peak, rel=0.01)


def test_pages_tell_the_rate_of_a_cache_where_any_were_measured():
    planned, pages = Planned(H100), attention("decode", "cudnn", 16, 8192, 128, page_tokens=64)
    whole = planned.figure(cached("cudnn"), "bytes_per_second")
    read = [
        observed("whole", cached("cudnn"), "bytes_per_second", whole),
        observed("pages", pages, "bytes_per_second", 0.8 * whole),
        observed("fp8", pages.model_copy(update={"dtype": "fp8_e4m3"}), "bytes_per_second", 0.1 * whole),
    ]
    usual = shares(compute_figures(read[:1], H100))["serving.cache_bandwidth"]
    assert shares(compute_figures(read, H100))["serving.cache_bandwidth"] == pytest.approx(
        0.8 * usual, rel=0.01
    )


def test_products_of_four_bits_tell_their_own_peak():
    blackwell = device("b200-sxm")
    product = work("block_scaled_gemm", number_format="nvfp4", m=8192, n=8192, k=8192)
    of_eight_bits = product.model_copy(update={"number_format": "mxfp8"})
    suite = [("nvfp4", product, "flops_per_second"), ("mxfp8", of_eight_bits, "flops_per_second")]
    cool = observations(Planned(blackwell, matrix=1.1), suite, warmup=1.0)
    warm = observations(Planned(blackwell), suite, warmup=10.0)
    assert shares(compute_figures([*cool, *warm], blackwell)) == pytest.approx(
        {
            "operators.matrix_peak.fp4": blackwell.machine.rates.matrix_peak["fp4"],
            "serving.scaled_share": SERVING.scaled_share,
        }
    )


def capped(name, of_work, figure, clock, seconds=2.0):
    conditions = {"sm_clock_hz": clock, "throttle_sw_power_cap_seconds": seconds, "window_seconds": 2.0}
    return observed(name, of_work, "flops_per_second", figure, **conditions)


def test_a_product_at_the_power_limit_is_faster_among_other_kernels():
    """Between its rate alone and that at the clock of kernels that nothing holds: 686 TFLOP/s at 1.44 GHz."""
    product, fp8 = gemm(8192, 8192, 8192), gemm(8192, 8192, 8192, "fp8_e4m3")
    scaled = work("block_scaled_gemm", number_format="fp8_blocks", m=8192, n=8192, k=8192)
    free = observed(
        "copy", work("stream", pattern="copy", array_bytes=2**32), "bytes_per_second", 3e12,
        sm_clock_hz=1.96e9, throttle_sw_power_cap_seconds=0.0,
    )  # fmt: skip
    alone = [
        capped("bf16", product, 686e12, 1.44e9),
        capped("fp8", fp8, 1200e12, 1.44e9),
        capped("blocks", scaled, 900e12, 1.44e9),
    ]
    found = {each.name: each for each in compute_figures([*alone, free], H100).figures}
    peak = found["operators.matrix_peak.bf16"].figure
    mixed, room = (1.96 / 1.44) ** 0.5, 1.96 / 1.44
    assert (peak.low, peak.value, peak.high) == pytest.approx(
        (686e12, mixed * 686e12, room * 686e12), rel=0.01
    )
    # Both are held alike, so that their ratio stays.
    assert found["serving.scaled_share"].figure.value == pytest.approx(900 / 1200, rel=0.01)
    unheld = [
        one._replace(conditions=one.conditions | {"throttle_sw_power_cap_seconds": 0.0}) for one in alone
    ]
    for known in (alone, [*unheld, free]):
        assert shares(compute_figures(known, H100))["operators.matrix_peak.bf16"] == pytest.approx(
            686 / 989, rel=0.02
        )


def test_scales_of_blocks_are_told_against_the_products_of_the_same_device():
    """A device that multiplies at half the rate scales as before; blocks of 128 come before those of 32."""
    scaled = work("block_scaled_gemm", number_format="fp8_blocks", m=8192, n=8192, k=8192)
    suite = [
        ("plain", gemm(8192, 8192, 8192, "fp8_e4m3"), "flops_per_second"),
        ("blocks", scaled, "flops_per_second"),
    ]
    found = observations(Planned(H100, matrix=0.5), suite)
    short = observed("mxfp8", scaled.model_copy(update={"number_format": "mxfp8"}), "flops_per_second", 1e14)
    (share,) = [
        each for each in compute_figures([*found, short], H100).figures if each.name == "serving.scaled_share"
    ]
    assert share.figure.value == pytest.approx(SERVING.scaled_share, rel=1e-3)
    assert share.rests_on.benchmarks == ("blocks",)


def test_weights_of_four_bits_are_told_against_the_weights_of_the_same_device():
    """A memory at half its rate widens as before; what no device would be as slow at is the kernel's."""
    packed = work("weight_only_gemm", dtype="bf16", has_zero_points=True, m=16, n=28672, k=8192)
    suite = [
        ("copy", work("stream", pattern="copy", array_bytes=2**32), "bytes_per_second"),
        ("skinny", gemm(16, 14336, 8192), "bytes_per_second"),
        ("packed", packed, "bytes_per_second"),
    ]
    for stream in (1.0, 0.5):
        found = drawn(suite=suite, stream=stream)["serving.widened_bandwidth"]
        assert found == pytest.approx(SERVING.widened_bandwidth, rel=1e-3)
    slow = observations(Planned(H100), suite)
    figure = slow[2].figures[0] * 0.6
    slow[2] = slow[2]._replace(figures=(figure,), low=figure, high=figure)
    assert "serving.widened_bandwidth" not in shares(compute_figures(slow, H100))


def test_a_library_over_a_latent_cache_tells_nothing_of_engines():
    """Engines bring kernels of their own for it: cuDNN reached a fifteenth of theirs on an H200."""
    latent = work(
        "attention", phase="decode", back_end="cudnn", dtype="bf16", batch=16, query_heads=128, kv_heads=1,
        head_size=576, value_size=512, context_tokens=4096, page_tokens=64,
    )  # fmt: skip
    found = [observed("latent", latent, "bytes_per_second", 1.65e11)]
    assert compute_figures(found, device("h200-sxm")).figures == ()


def test_the_workers_own_attention_tells_nothing_of_frameworks():
    own = [
        observed("prefill.own", prompt("own"), "flops_per_second", 3e14),
        observed("decode.own", cached("own"), "bytes_per_second", 2e12),
    ]
    assert compute_figures(own, H100).figures == ()


def test_an_engine_takes_the_fastest_kernel_over_a_cache():
    read = [
        observed("decode.efficient", cached("efficient"), "bytes_per_second", 1e12),
        observed("decode.flash", cached("flash"), "bytes_per_second", 2e12),
    ]
    (found,) = compute_figures(read, H100).figures
    assert found.rests_on.benchmarks == ("decode.flash",)


def test_a_device_at_its_limit_does_not_say_what_products_would_draw():
    """750 of 700 W are demanded: that is known only of a device that is not held at its limit."""
    limited = drawn(suite=[("power.gemm", power("gemm"), "watts")])
    assert limited == {}
    below = compute_figures([observed("power.gemm", power("gemm"), "watts", 600.0)], H100)
    constants = H100.reference.power.get_rates("hopper")
    moved = constants.byte_joules * 6 * 8192**2 * 0.83 * 989e12 / (2 * 8192**3)
    rest = 700.0 * (constants.idle_share + constants.active_share) + moved
    assert shares(below) == pytest.approx({"power.matrix_share": (600.0 - rest) / 700.0}, rel=1e-3)


def test_what_the_catalog_does_not_know_is_a_rate_without_a_limit():
    """So a processor, and an accelerator that nobody has entered: there is nothing to be a share of."""
    read = [
        observed("gemm.fp32", gemm(2048, 2048, 2048, "fp32"), "flops_per_second", 9e10),
        observed("gemm.small", gemm(256, 256, 256, "fp32"), "flops_per_second", 2e10),
        observed("copy", work("stream", pattern="copy", array_bytes=2**28), "bytes_per_second", 8e9),
    ]
    found = {each.name: each.figure for each in compute_figures(read, FittedDevice(CALIBRATION)).figures}
    assert found.keys() == {"operators.bandwidth", "operators.matrix_peak.fp32"}
    assert found["operators.matrix_peak.fp32"].value == pytest.approx(9e10)
    assert all(figure.limit is None for figure in found.values())


def test_memory_is_what_was_read():
    read = [
        observed("capacity", work("capacity"), "bytes", 8.4e10, 8.41e10),
        observed("context", work("context_memory", with_library=False), "bytes", 4e8),
        observed("library", work("context_memory", with_library=True), "bytes", 5e8),
        observed(
            "h2d",
            work("host_link", direction="host_to_device", memory="pinned", transfer_bytes=2**29),
            "bytes_per_second",
            5e10,
        ),
        observed(
            "pageable",
            work("host_link", direction="host_to_device", memory="pageable", transfer_bytes=2**29),
            "bytes_per_second",
            9e9,
        ),
        observed(
            "write",
            work("storage", direction="write", file_bytes=2**30, block_bytes=2**22),
            "bytes_per_second",
            2e9,
        ),
    ]
    found = {each.name: each.figure.value for each in compute_figures(read, H100).figures}
    assert found == pytest.approx(
        {
            "memory_bytes": 8.405e10,
            "context_bytes": 5e8,
            "host_link_bytes_per_second": 5e10,
            "storage_write_bytes_per_second": 2e9,
        }
    )


def test_nothing_is_drawn_of_nothing():
    assert compute_figures([], H100) == ((), ())
    assert math.isfinite(H100.kernel_seconds)


def test_estimates_over_a_node_that_reaches_what_is_estimated_are_those_without_it(snapshot):
    """From the figures of its benchmarks through the drawing and its resolution to the answers."""
    kept = [
        to_document(*each)
        for each in compute_figures(observations(Planned(H100), (*SUITE, *COLLECTIVES)), H100).figures
    ]
    measured = parse_calibration("set", MeasuredScope("cuda", "node", "h100-sxm", "hopper", 700.0, 575), kept)
    training = {"sequence_length": 4096, "micro_batch_size": 1, "total_tokens": 10**9}
    serving = {"kind": "inference", "input_tokens": 2048, "output_tokens": 256, "concurrency": 16}
    for asked, figures in (
        (question("llama-3.1-8b", "h100-sxm", 8, **training), ("step_seconds",)),
        (
            question("llama-3.1-70b", "h100-sxm", 8, **serving),
            ("time_per_output_token_seconds", "time_to_first_token_seconds"),
        ),
    ):
        before = ask(snapshot, "throughput", asked)
        after = ask(with_sets(snapshot, measured), "throughput", asked)
        assert after["evidence"]["calibration_ids"] == ["set"]
        for name in figures:
            assert after[name]["value"] == pytest.approx(before[name]["value"], rel=1e-4)


def test_the_standard_suite_tells_every_constant_that_is_drawn():
    """Its shapes and sizes are enough, and what they tell is what planning has."""
    kinds = {"gemm", "grouped_gemm", "weight_only_gemm", "stream", "attention", "collective"}
    suite = [
        (each.name, each.work, each.metric)
        for each in shipped_suites()["gpu-standard"].benchmarks
        if each.work.kind in kinds or (each.work.kind == "power" and each.work.load in ("context", "stream"))
    ]
    found = drawn(suite=suite)
    of_links = {name: found.pop(name) for name in list(found) if name.startswith("links.")}
    rates = H100.machine.rates
    others = {f"operators.matrix_peak.{name}" for name in ("fp16", "int8", "tf32", "fp32", "fp64")}
    assert found.keys() == expected().keys() | others | {"serving.widened_bandwidth"}
    found.pop("serving.widened_bandwidth")
    assert found == pytest.approx(
        expected() | {name: rates.matrix_peak[name.rpartition(".")[2]] for name in others}, rel=1e-3
    )
    assert of_links.keys() == {
        f"links.nvlink.{name}" for name in ("rate", "launch_seconds", "in_network_rate")
    }


KERNELS = (
    # An engine's own kernel: twice of what is expected, which no software was seen to reach, changes nothing.
    ("scaled_share", 0.5, "fp8_block_128", "time_to_first_token_seconds"),
    # The worker's own kernel: half of it tells nothing of an engine's.
    ("widened_bandwidth", 2.0, "awq_int4_g128", "time_per_output_token_seconds"),
)


@pytest.mark.parametrize(("quantity", "moving", "weights", "figure"), KERNELS)
def test_a_measured_share_of_a_kernel_moves_the_formats_that_it_multiplies(
    snapshot, quantity, moving, weights, figure
):
    accelerator = "h100-sxm"
    scope = scope_of(snapshot.accelerators[accelerator].accelerator)
    expected_share = getattr(SERVING, quantity)

    def answer(factor, **stored):
        serving = {ServingQuantity(quantity): measured_figure((factor or 1.0) * expected_share)}
        sets = (DeviceCalibration(id="set", scope=scope, serving=serving),) if factor else ()
        shape = {"kind": "inference", "input_tokens": 8192, "output_tokens": 64, "concurrency": 1}
        asked = question("llama-3.1-8b", accelerator, **shape, **stored)
        return ask(with_sets(snapshot, *sets), "throughput", asked)

    before, after = answer(None, weight_format=weights), answer(moving, weight_format=weights)
    slower = after[figure]["value"] / before[figure]["value"]
    assert slower > 1.3 if moving < 1.0 else slower < 0.95
    assert after["evidence"]["calibration_ids"] == ["set"]
    assert answer(1.0 / moving, weight_format=weights)[figure]["value"] == before[figure]["value"]
    plain = answer(moving, weight_precision="bf16")
    assert plain[figure]["value"] == answer(None, weight_precision="bf16")[figure]["value"]
    assert plain["evidence"]["calibration_ids"] == []
