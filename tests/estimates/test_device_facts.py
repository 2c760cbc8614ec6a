"""Facts of a device that its figures depend on: lanes, units, shared memory, wires."""

import pytest

from service.planning.errors import PlanningError
from service.resolve.host import find_host_link
from tests.asking import ask, question, shipped

SERVED = {"kind": "inference", "input_tokens": 512, "output_tokens": 128}


def serve(accelerator, model="llama-3.1-8b", **members):
    asked = {**question(model, accelerator, members.pop("devices", 1)), "workload": SERVED | members}
    return ask(shipped(), "throughput", asked)


@pytest.mark.parametrize(
    ("accelerator", "gigabytes"),
    [("rtx-4090", 31.5), ("rtx-4060-ti-16gb", 15.75), ("rtx-5060", 31.5), ("rtx-5090", 63.0), ("t4", 15.75)],
)
def test_a_card_reaches_its_host_over_the_lanes_that_it_has(accelerator, gigabytes):
    assert find_host_link(shipped(), accelerator).bytes_per_second == gigabytes * 1e9


def test_the_host_of_an_unknown_generation_is_left_open():
    assert find_host_link(shipped(), "tpu-v5e") is None


@pytest.mark.parametrize("accelerator", ["p40", "p4"])
@pytest.mark.parametrize("precision", ["int4", "fp8"])
def test_a_card_without_fast_16_bit_units_widens_narrow_weights_to_fp32(accelerator, precision):
    answer = serve(accelerator, weight_precision=precision)
    peak = shipped().accelerators[accelerator].accelerator.peak_flops_per_second
    assert answer["peak_flops_per_second_per_device"] == peak["fp32"]
    read = {"int4": 0.5, "fp8": 1.0}[precision] * 8.0e9 / answer["time_per_output_token_seconds"]["value"]
    bandwidth = shipped().accelerators[accelerator].accelerator.bandwidth_bytes_per_second
    assert 0.25 * bandwidth < read < bandwidth


@pytest.mark.parametrize(
    ("smaller", "larger", "fits"),
    [
        ("apple-m4-16gb", "apple-m4-32gb", (False, True)),
        ("apple-m1-max-32gb", "apple-m1-max-64gb", (True, True)),
    ],
)
def test_a_mac_gives_a_process_what_metal_recommends(smaller, larger, fits):
    """Llama 3.1 8B has 16.1 GB of weights: two thirds of 16 GiB are 11.5 GB, of 32 GiB 22.9 GB."""
    wide = SERVED | {"weight_precision": "fp16"}
    asked = [{**question("llama-3.1-8b", name), "workload": wide} for name in (smaller, larger)]
    answers = [ask(shipped(), "memory", each) for each in asked]
    assert tuple(answer["fits"] for answer in answers) == fits
    assert answers[1]["capacity_bytes"] > 1.9 * answers[0]["capacity_bytes"]


@pytest.mark.parametrize("accelerator", ["epyc-9654", "gpu-max-1550", "jetson-orin-nx-16gb", "mi455x"])
def test_a_part_whose_rate_nobody_publishes_has_memory_and_no_rates(accelerator):
    asked = {**question("llama-3.1-8b", accelerator), "workload": SERVED}
    assert ask(shipped(), "memory", asked)["per_device"]
    with pytest.raises(PlanningError) as refused:
        ask(shipped(), "throughput", asked)
    assert refused.value.code == "PEAK_RATE_UNKNOWN"
