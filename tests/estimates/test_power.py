"""What accelerators draw in answers: by what they do where that is known, else at most the limit."""

import pytest

from service.app.examples import REFERENCE_QUESTION
from tests.asking import ask, gaps, question

LLAMA = "llama-3.1-8b"
TRAINED = {"sequence_length": 4096, "micro_batch_size": 1, "gradient_accumulation_steps": 8}
SERVED = {"kind": "inference", "input_tokens": 1024, "output_tokens": 256}


def trained(snapshot, accelerator="h100-sxm", count=8, **members):
    asked = question(LLAMA, accelerator, count, total_tokens=1_000_000_000, **TRAINED)
    return ask(snapshot, "throughput", {**asked, **members})


def served(snapshot, accelerator="h100-sxm", count=1, parallelism=None, **load):
    asked = question(LLAMA, accelerator, count, **SERVED, **load)
    if parallelism:
        asked["parallelism"] = parallelism
    return ask(snapshot, "throughput", asked)


def watts(answer):
    return answer["power_per_device_watts"]


def citations(answer):
    return " ".join(source.get("citation", "") for source in answer["evidence"]["sources"])


def test_training_draws_close_to_the_limit_and_never_more(snapshot):
    """8 H100 that train at about 55% of their peak: MLPerf's node of 8 draws 7.03 kW, hosts and all."""
    answer = trained(snapshot)
    power = watts(answer)
    assert 600.0 < power["value"] < 700.0
    assert power["high"] == 700.0
    assert power["basis"] == "reference"
    assert "power of a device" in citations(answer)


def test_where_the_limit_is_reached_the_answer_says_that_the_clock_falls(snapshot):
    """A card of 250 W with the multipliers of one of 700 W."""
    specification = {
        "name": "capped",
        "generation": "hopper",
        "memory_bytes": 80_000_000_000,
        "memory_bandwidth_bytes_per_second": 3.35e12,
        "peak_flops_per_second": {"bf16": 989e12},
        "power_limit_watts": 250.0,
    }
    cluster = {
        "accelerator": {"source": "specification", "specification": specification},
        "accelerator_count": 8,
        "intra_node_link": {"source": "catalog", "id": "nvlink-4"},
    }
    capped = trained(snapshot, cluster=cluster)
    assert "the clock falls" in citations(capped)
    assert watts(capped)["value"] <= 250.0


def test_a_pipeline_that_waits_draws_less(snapshot):
    layout = {"tensor": 1, "pipeline": 8, "data": 1}
    full = {**TRAINED, "kind": "training", "total_tokens": 1_000_000_000}
    waits = trained(snapshot, workload={**full, "gradient_accumulation_steps": 1}, parallelism=layout)
    works = trained(snapshot, workload={**full, "gradient_accumulation_steps": 64}, parallelism=layout)
    assert watts(waits)["value"] < 0.8 * watts(works)["value"]


def test_the_bill_of_modelled_training_is_the_draw_over_its_time(snapshot):
    asked = question(LLAMA, "h100-sxm", 8, total_tokens=1_000_000_000, **TRAINED)
    rates, bill = ask(snapshot, "throughput", asked), ask(snapshot, "utility-bill", asked)
    accelerators, hosts, *_ = bill["energy"]["lines"]
    kwh = 8 * watts(rates)["value"] * bill["duration_seconds"]["value"] / 3.6e6
    assert accelerators["it_kwh"]["value"] == pytest.approx(kwh)
    assert accelerators["it_kwh"]["low"] < kwh < accelerators["it_kwh"]["high"]
    assert hosts["it_kwh"]["value"] > 0.0


def test_the_bill_of_a_served_model_is_its_draw_too(snapshot):
    load = {**SERVED, "concurrency": 8, "horizon": {"duration_seconds": 3600}}
    asked = question(LLAMA, "h100-sxm", 1, **load)
    rates, bill = ask(snapshot, "throughput", asked), ask(snapshot, "utility-bill", asked)
    kwh = bill["energy"]["lines"][0]["it_kwh"]["value"]
    assert kwh == pytest.approx(watts(rates)["value"] / 1000.0)
    assert kwh < 0.7


def test_an_assumed_utilization_leaves_the_limit_as_bound(snapshot):
    """Nothing is known of what the device does: limit times hours is what it cannot pass."""
    asked = {**REFERENCE_QUESTION, "model": {"source": "catalog", "id": "llama-2-70b"}}
    assert "power_per_device_watts" not in ask(snapshot, "throughput", without_prices(asked))
    bill = ask(snapshot, "utility-bill", asked)
    accelerators = bill["energy"]["lines"][0]["it_kwh"]
    assert accelerators["value"] == pytest.approx(0.7 * bill["device_hours"]["value"])
    assert accelerators["low"] == pytest.approx(0.51 * accelerators["value"])


def test_a_bare_number_of_parameters_leaves_the_limit_as_bound(snapshot):
    asked = {**REFERENCE_QUESTION, "efficiency": {"source": "modelled"}}
    assert "power_per_device_watts" not in ask(snapshot, "throughput", without_prices(asked))
    bill = ask(snapshot, "utility-bill", asked)
    accelerators = bill["energy"]["lines"][0]["it_kwh"]
    assert accelerators["value"] == pytest.approx(0.7 * bill["device_hours"]["value"])


def without_prices(asked):
    return {name: member for name, member in asked.items() if name not in ("rental", "purchase")}


def test_more_requests_draw_more_and_make_a_token_cheaper(snapshot):
    answers = [served(snapshot, concurrency=requests) for requests in (1, 4, 16, 64)]
    drawn = [watts(answer)["value"] for answer in answers]
    joules = [answer["energy_per_output_token_joules"]["value"] for answer in answers]
    assert drawn == sorted(drawn)
    assert joules == sorted(joules, reverse=True)
    assert 200.0 < drawn[0] < drawn[-1] <= 700.0


def test_the_energy_of_a_token_is_power_over_rate(snapshot):
    answer = served(snapshot, count=2, parallelism={"tensor": 2, "data": 1}, concurrency=16)
    rate = answer["output_tokens_per_second"]["value"]
    joules = answer["energy_per_output_token_joules"]
    assert joules["value"] == pytest.approx(2.0 * watts(answer)["value"] / rate)
    assert joules["low"] < joules["value"] < joules["high"]


def test_devices_without_requests_draw_their_idle_power(snapshot):
    """One of two replicas has a request: the mean is half of one at work and half of one at rest."""
    one = served(snapshot, concurrency=1)
    two = served(snapshot, count=2, parallelism={"tensor": 1, "data": 2}, concurrency=1)
    idle = 0.1 * 700.0
    assert watts(two)["value"] == pytest.approx((watts(one)["value"] + idle) / 2.0)


def test_a_server_that_waits_for_requests_draws_less_than_one_that_never_does(snapshot):
    rarely = served(snapshot, request_rate_per_second=0.05)
    always = served(snapshot, concurrency=1)
    assert rarely["utilization"]["value"] < 0.2
    assert watts(rarely)["value"] < 0.5 * watts(always)["value"]


def test_generations_without_measured_draw_are_less_sure(snapshot):
    known, other = watts(trained(snapshot)), watts(trained(snapshot, "a100-sxm-80gb"))
    assert other["basis"] == "datasheet"
    assert 280.0 < other["value"] <= 400.0
    assert other["low"] / other["value"] < known["low"] / known["value"]


def test_a_device_of_unknown_limit_has_no_draw(snapshot):
    specification = {
        "name": "card",
        "generation": "hopper",
        "memory_bytes": 80_000_000_000,
        "memory_bandwidth_bytes_per_second": 3.35e12,
        "peak_flops_per_second": {"bf16": 989e12},
    }
    asked = question(LLAMA, "h100-sxm", 1, **SERVED, concurrency=1)
    asked["cluster"]["accelerator"] = {"source": "specification", "specification": specification}
    answer = ask(snapshot, "throughput", asked)
    assert "output_tokens_per_second" in answer
    assert "power_per_device_watts" not in answer
    assert "energy_per_output_token_joules" not in answer
    assert gaps(answer)["/power_per_device_watts"] == "POWER_UNKNOWN"


def test_a_pass_draws_by_what_it_does(snapshot):
    """Pictures in steps multiply all the time, an encoder of one short text waits for its launches."""
    pictures = question("flux.1-dev", "h100-sxm", 1)
    pictures["workload"] = {"kind": "inference", "concurrency": 8, "sample": {"height": 1024}}
    texts = question("bert-large", "h100-sxm", 1)
    texts["workload"] = {"kind": "inference", "concurrency": 1, "input_tokens": 32}
    busy, waiting = (ask(snapshot, "throughput", asked) for asked in (pictures, texts))
    assert 600.0 < watts(busy)["value"] <= 700.0
    assert 70.0 < watts(waiting)["value"] < 0.7 * watts(busy)["value"]
    assert "energy_per_output_token_joules" not in busy


def test_both_sides_of_disaggregated_serving_draw(snapshot):
    """At a rate far below what either side takes, all of them are near their idle tenth of 700 W."""
    sides = {"prefill": {"parallelism": {"tensor": 4}}, "decode": {"parallelism": {"tensor": 4}}}

    def asked(**load):
        given = question("llama-3.1-70b", "h200-sxm", 8, **SERVED, **load, weight_precision="fp8")
        given["workload"]["disaggregated"] = sides
        return ask(snapshot, "throughput", given)

    rarely, full = asked(request_rate_per_second=0.01), asked(concurrency=256)
    assert 70.0 < watts(rarely)["value"] < 140.0
    assert 300.0 < watts(full)["value"] < 700.0
    rate = full["output_tokens_per_second"]["value"]
    joules = full["energy_per_output_token_joules"]["value"]
    assert joules == pytest.approx(8.0 * watts(full)["value"] / rate)
