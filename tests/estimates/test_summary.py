"""The summary of a model on hardware: the figures of its full requests, and what its few members mean."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.estimates.service import ESTIMATES, answer_question
from service.estimates.summary import estimate_summary
from service.kit.http.problems import Problem
from service.resolve.price_age import is_used_by_id_only
from service.schemas.summary import SummaryEstimate, SummaryRequest
from tests.asking import shipped

FIGURES = {
    "fit": ("memory", {"total_bytes": ("per_device", "total_bytes")}),
    "users": (
        "full_context",
        {name: ("limits", name) for name in ("max_concurrency", "max_sequence_length")},
    ),
    "speed": ("throughput", {}),
    "price": ("cost", {}),
    "bill": (
        "utility_bill",
        {
            "it_kwh": ("energy", "it_kwh"),
            "facility_kwh": ("energy", "facility_kwh"),
            "electricity_total": ("electricity", "total"),
            "location_based_kg_co2e": ("carbon", "location_based_kg_co2e"),
        },
    ),
}
OPERATIONS = {"full_context": "memory", "utility_bill": "utility-bill"}
SITE = {"pue": 1.2, "electricity": {"price_per_kwh": {"amount": "0.12", "currency_code": "USD"}}}
UNKNOWN = {"goal": {"kind": "serve", "weights": "int3"}}


def summarize(model, hardware, **members):
    body = {"model": model, "hardware": hardware, **members}
    question = SummaryRequest.model_validate_json(json.dumps(body))
    answer = answer_question(estimate_summary, question, shipped())
    return TypeAdapter(SummaryEstimate).dump_python(answer, mode="json")


def refuse(model, hardware, **members):
    with pytest.raises(Problem) as caught:
        summarize(model, hardware, **members)
    [error] = caught.value.errors
    return error


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


@pytest.mark.parametrize(
    ("model", "hardware", "members"),
    [
        ("Qwen/Qwen3-32B", "2xl40s", {"goal": {"kind": "serve", "context_tokens": 32_768, "concurrency": 4}}),
        ("gpt-oss-120b", "NVIDIA H100 80GB HBM3", {"site": SITE}),
        ("llama-3.1-8b", "rtx-4090", {"goal": {"kind": "serve", "weights": "Q4_K_M"}}),
        ("llama-3.1-8b", "RTX 4090", {"goal": {"kind": "train", "adaptation": "lora", "total_tokens": 9**9}}),
        ("deepseek-v3", "2xp5.48xlarge", {"hours": 24.0}),
        ("llama-3.1-70b", "256 x MI300X", {"goal": {"kind": "train", "total_tokens": 10**12}}),
        ("bge-large-en-v1.5", "l4", {}),
    ],
)  # fmt: skip
def test_every_figure_is_that_of_its_full_request(model, hardware, members):
    answer = summarize(model, hardware, **members)
    compared = 0
    for section, (name, paths) in FIGURES.items():
        if name not in answer["requests"]:
            continue
        estimate = ESTIMATES[OPERATIONS.get(name, name)]
        request = estimate.question.model_validate_json(json.dumps(answer["requests"][name]))
        whole = json.loads(json.dumps(estimate.estimator(request, shipped()), default=str))
        for member, value in answer.get(section, {}).items():
            if member == "context_tokens":
                continue
            found = whole
            for part in paths.get(member, (member,)):
                found = found[part]
            assert value == found, (section, member)
            compared += 1
    assert compared >= 5


@pytest.mark.parametrize(
    ("hardware", "chips"), [("v5litepod-16", 16), ("2x v4-32", 32), ("v3-8", 4), ("4xv6e-8", 32)]
)
def test_a_slice_counts_its_chips_and_is_rented_by_the_chip(hardware, chips):
    answer = summarize("llama-3.1-8b", hardware)
    assert answer["accelerator_count"] == chips
    plain = summarize("llama-3.1-8b", f"{chips}x{answer['accelerator_id']}")
    assert [answer[part] for part in ("fit", "users", "speed", "price", "bill")] == [
        plain[part] for part in ("fit", "users", "speed", "price", "bill")
    ]
    assert answer["requests"]["cost"].get("rental") == plain["requests"]["cost"].get("rental")


def test_an_instance_counts_its_accelerators_and_names_its_system():
    answer = summarize("llama-3.1-70b", "2xp5.48xlarge")
    assert (answer["accelerator_id"], answer["accelerator_count"]) == ("h100-sxm", 16)
    assert filled(answer)["/requests/memory/cluster/system"] == "p5.48xlarge"
    assert shipped().offers[answer["requests"]["cost"]["rental"]["offer_id"]].instance_type == "p5.48xlarge"


def test_open_hardware_is_rented_at_the_cheapest_fresh_offer_on_demand():
    answer = summarize("llama-3.1-8b", "h100-sxm")
    chosen = shipped().offers[answer["requests"]["cost"]["rental"]["offer_id"]]
    assert chosen.purchase_option == "on_demand"
    assert not is_used_by_id_only(chosen, shipped())
    assert chosen.accelerator_count == 1 or chosen.price_per_instance_hour < 8
    hours = float(answer["price"]["total"]["amount"]) / float(chosen.price_per_instance_hour)
    assert hours == pytest.approx(730, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "hardware", "goal", "size", "is_warned"),
    [
        ("llama-3.1-8b", "8xh100-sxm", {"kind": "train", "total_tokens": 10**9}, 8, False),
        ("llama-3.1-405b", "8xh100-sxm", {"kind": "serve", "weights": "fp8"}, 8, False),
        ("llama-3.1-70b", "2xh100-sxm", {"kind": "serve", "weights": "fp8"}, 2, False),
        ("llama-3.1-8b", "8xh100-sxm", {"kind": "serve", "concurrency": 512}, 1, False),
        ("llama-3.1-70b", "2xa100-sxm-80gb", {"kind": "serve", "weights": "int8"}, 1, True),
    ],
)
def test_accelerators_that_work_together_are_rented_in_one_instance(model, hardware, goal, size, is_warned):
    answer = summarize(model, hardware, goal=goal)
    chosen = shipped().offers[answer["requests"]["cost"]["rental"]["offer_id"]]
    assert chosen.accelerator_count == size
    assert ("OFFER_INSTANCE_SMALLER" in {each["code"] for each in answer["warnings"]}) == is_warned
    same = (
        float(offer.price_per_device_hour)
        for offer in shipped().offers.values()
        if (offer.accelerator_id, offer.purchase_option, offer.currency_code, offer.doubt)
        == (chosen.accelerator_id, "on_demand", "USD", None)
        and offer.accelerator_count == size
        and not is_used_by_id_only(offer, shipped())
    )
    assert float(chosen.price_per_device_hour) == min(same)


def test_an_accelerator_without_an_offer_has_a_gap_for_its_price():
    answer = summarize("gpt2", "p100-pcie-16gb")
    assert "total" not in answer["price"]
    assert {gap["pointer"]: gap["code"] for gap in answer["gaps"]}["/price/total"] == "PRICE_REQUIRED"
    assert "rental" not in answer["requests"]["cost"]


def test_users_have_the_context_of_the_model_unless_it_is_stated():
    longest, short = (
        summarize("qwen3-8b", "l40s", goal={"kind": "serve", **goal})["users"]
        for goal in ({}, {"context_tokens": 4096})
    )
    assert longest["context_tokens"] == shipped().models["qwen3-8b"].context_tokens
    assert short["context_tokens"] == 4096
    assert short["max_concurrency"] > 4 * longest["max_concurrency"] > 0
    assert "max_sequence_length" not in longest


def test_the_longest_request_is_told_where_the_context_of_the_model_does_not_fit():
    users = summarize("llama-3.1-8b", "a10g")["users"]
    assert users["max_concurrency"] == 0
    assert 16_384 < users["max_sequence_length"] < users["context_tokens"]
    # Every layer of it has a window, so that no length is the longest.
    answer = summarize("mistral-7b", "rtx-4090")
    assert answer["users"]["max_concurrency"] > 0
    assert not [gap for gap in answer["gaps"] if gap["pointer"].startswith("/users")]


def test_a_usual_prompt_leaves_room_for_its_answer_in_a_short_context():
    request = summarize("gpt2", "t4")["requests"]["memory"]
    assert request["workload"]["input_tokens"] + request["workload"]["output_tokens"] == 1024


def test_a_denoiser_is_sampled_as_its_pipeline_does_by_default():
    told = {}
    for model in ("flux.1-dev", "flux.1-schnell", "sdxl"):
        answer = summarize(model, "h100-sxm")
        work = answer["requests"]["throughput"]["workload"]
        seconds = 1.0 / answer["speed"]["requests_per_second"]["value"]
        told[model] = (work["diffusion"]["steps"], work["diffusion"]["guidance"], seconds)
    assert told["flux.1-dev"][:2] == (28, "none")
    assert told["sdxl"][:2] == (50, "classifier_free")
    # 28 steps of 1,024 by 1,024 pixels take 3.5 to 9 s on an H100, and 4 steps a seventh of that.
    assert 3.0 < told["flux.1-dev"][2] < 9.0
    assert told["flux.1-dev"][2] / told["flux.1-schnell"][2] == pytest.approx(7.0, rel=0.2)


def test_a_decoder_without_a_head_embeds_and_generates_nothing():
    answer = summarize(
        "qwen3-embedding-8b", "l4", goal={"kind": "serve", "input_tokens": 512, "concurrency": 32}
    )
    assert "users" not in answer
    # 15.1e9 FLOP a token at 121e12 FLOP/s: 15.6 requests of 512 tokens a second at most.
    assert 4.0 < answer["speed"]["requests_per_second"]["value"] < 15.6


def test_a_tariff_bills_a_summary_from_its_start_on():
    site = {"pue": 1.2, "electricity": {"tariff_id": "pge-e20-secondary-2017"}}
    goal = {"kind": "serve", "concurrency": 2048}
    asked = {"goal": goal, "hours": 720.0, "site": site}
    [gap] = [
        gap for gap in summarize("llama-3.1-70b", "64xh100-sxm", **asked)["gaps"] if gap["pointer"] == "/bill"
    ]
    assert gap["code"] == "STARTS_AT_REQUIRED"
    answer = summarize("llama-3.1-70b", "64xh100-sxm", **asked, starts_at="2026-06-01T07:00:00Z")
    bill = answer["bill"]
    # A steady load of 1,300 kW costs 0.155 USD a kWh in June; a smaller one bears more of the fixed charge.
    assert 0.155 < float(bill["electricity_total"]["amount"]) / bill["facility_kwh"]["value"] < 0.18


def test_what_does_not_fit_is_advised_the_least_doubling_with_which_it_does():
    advised = summarize("llama-3.1-70b", "rtx-4090", goal={"kind": "serve", "context_tokens": 8192})
    [more] = advised["fit"]["advice"]
    assert (more["code"], more["detail"].split(":")[0]) == ("MORE_DEVICES", "8 x rtx-4090")
    assert summarize("llama-3.1-70b", "8xrtx-4090")["fit"]["fits"]
    assert not summarize("llama-3.1-70b", "4xrtx-4090")["fit"]["fits"]
    assert "advice" not in summarize("qwen3-0.6b", "rtx-4090")["fit"]


@pytest.mark.parametrize(
    ("hardware", "accelerator_id", "count"),
    [("8 h100-sxm", "h100-sxm", 8), ("4070 super", "rtx-4070-super", 1), ("2x 3090", "rtx-3090", 2)],
)
def test_a_count_may_stand_before_a_name_without_a_sign(hardware, accelerator_id, count):
    answer = summarize("qwen3-0.6b", hardware)
    assert (answer["accelerator_id"], answer["accelerator_count"]) == (accelerator_id, count)


def test_training_without_a_number_of_tokens_has_a_speed_but_no_price():
    answer = summarize("llama-3.1-8b", "8xh100-sxm", goal={"kind": "train"})
    assert answer["speed"]["tokens_per_second"]["value"] > 10_000
    assert answer["price"] == answer["bill"] == {}
    assert {gap["pointer"] for gap in answer["gaps"]} >= {"/price", "/bill"}
    assert "users" not in answer


@pytest.mark.parametrize(
    ("model", "hardware", "members", "code", "pointer"),
    [
        ("qwen3-32b", "h100", {}, "AMBIGUOUS_REFERENCE", "/hardware"),
        ("qwen3-32b", "4xh100x", {}, "UNKNOWN_REFERENCE", "/hardware"),
        ("qwen4-32b", "l40s", {}, "UNKNOWN_REFERENCE", "/model"),
        ("qwen3-0.6b", "l40s", {"site": {"grid_id": "georgia"}}, "AMBIGUOUS_REFERENCE", "/site/grid_id"),
        ("qwen3-0.6b", "l40s", {"rental": {"offer_id": "ours"}}, "UNKNOWN_REFERENCE", "/rental/offer_id"),
        ("qwen3-32b", "999999xp5.48xlarge", {}, "TOO_MANY_ACCELERATORS", "/hardware"),
        ("qwen3-32b", "v4-9", {}, "UNKNOWN_SLICE", "/hardware"),
        ("qwen3-32b", "l40s", UNKNOWN, "UNKNOWN_FORMAT", "/goal/weights"),
    ],
)  # fmt: skip
def test_a_name_that_stands_for_nothing_is_refused_where_it_is(model, hardware, members, code, pointer):
    error = refuse(model, hardware, **members)
    assert (error.code, error.pointer) == (code, pointer)


@pytest.mark.parametrize(
    ("written", "member", "value"),
    [
        ("FP8", "weight_precision", "fp8"),
        ("Q4_K_M", "weight_format", "gguf_q4_k_m"),
        ("awq", "weight_format", "awq_int4_g128"),
        ("gptq-int4-g128", "weight_format", "gptq_int4_g128"),
    ],
)
def test_weights_are_named_as_tools_name_them(written, member, value):
    answer = summarize("llama-3.1-8b", "l40s", goal={"kind": "serve", "weights": written})
    assert answer["requests"]["memory"]["workload"][member] == value


def test_a_format_of_several_widths_is_refused_with_them():
    error = refuse("llama-3.1-8b", "l40s", goal={"kind": "serve", "weights": "gptq"})
    assert "gptq_int4_g128, gptq_int8_g128" in error.detail


@settings(max_examples=25)
@given(
    st.sampled_from(["gpt2", "bert-base", "qwen3-32b", "deepseek-v3", "flux.1-dev", "whisper-small"]),
    st.sampled_from(["t4", "1000000xh100-sxm", "8xtpu-v5e", "3xl4", "groq-lpu", "2xp5.48xlarge"]),
    st.sampled_from(
        [
            {"kind": "serve"},
            {"kind": "serve", "context_tokens": 1},
            {"kind": "serve", "context_tokens": 2**31 - 1, "output_tokens": 2**31 - 1},
            {"kind": "serve", "input_tokens": 2**31 - 1, "concurrency": 1_000_000},
            {"kind": "train", "total_tokens": 2**53 - 1, "sequence_length": 2**31 - 1},
            {"kind": "train", "adaptation": "qlora", "total_tokens": 1},
        ]
    ),
    st.sampled_from([1e-6, 730.0, 876_000.0]),
)
def test_whatever_the_shape_allows_is_answered_or_refused(model, hardware, goal, hours):
    refusals = []
    try:
        summarize(model, hardware, goal=goal, hours=hours)
    except Problem as problem:
        refusals.append(problem.status)
    assert refusals in ([], [422])


def test_what_the_summary_fills_is_named_and_stands_in_the_full_requests():
    answer = summarize("llama-3.1-70b", "8xh100-sxm", goal={"kind": "serve", "concurrency": 8})
    named = filled(answer)
    work, cost = answer["requests"]["memory"]["workload"], answer["requests"]["cost"]
    for name in ("input_tokens", "output_tokens"):
        assert named[f"/requests/memory/workload/{name}"] == str(work[name])
    assert "/requests/memory/workload/concurrency" not in named
    seconds = cost["workload"]["horizon"]["duration_seconds"]
    assert float(named["/requests/cost/workload/horizon/duration_seconds"]) == seconds == 730 * 3600
    assert named["/requests/cost/rental/offer_id"] == cost["rental"]["offer_id"]


def test_what_is_stated_is_not_named_as_filled():
    rental = {"price_per_device_hour": {"amount": "2", "currency_code": "USD"}}
    goal = {"kind": "serve", "input_tokens": 10, "output_tokens": 20, "concurrency": 1}
    named = filled(summarize("llama-3.1-8b", "1xl40s", goal=goal, hours=1, rental=rental))
    last = {pointer.rpartition("/")[2] for pointer in named}
    assert last.isdisjoint({"input_tokens", "output_tokens", "concurrency", "duration_seconds", "offer_id"})
    trained = filled(summarize("llama-3.1-8b", "8xh100-sxm", goal={"kind": "train"}))
    assert trained["/requests/memory/workload/sequence_length"] == "4096"
