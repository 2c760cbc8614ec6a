"""How fast will it go? Rates that agree with each other, gaps where a question does not decide."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.asking import ask, chosen_workload, codes, gaps, question, refusal, shipped, usd

ASSUMED = {"source": "assumed", "utilization": 0.4}
SERVED = {"kind": "inference", "input_tokens": 512, "output_tokens": 128, "concurrency": 512}


def value(answer, name):
    return answer[name]["value"]


@settings(max_examples=25)
@given(
    st.sampled_from(["gpt2-xl", "llama-2-7b", "mixtral-8x7b", "bert-large"]),
    st.sampled_from(["h100-sxm", "a100-sxm-80gb", "v100-sxm2-32gb", "mi300x"]),
    st.sampled_from([1, 8, 24, 512]),
    st.fixed_dictionaries(
        {"total_tokens": st.integers(10**6, 10**12)},
        optional={
            "sequence_length": st.sampled_from([512, 1024]),
            "micro_batch_size": st.integers(1, 16),
            "gradient_accumulation_steps": st.integers(1, 64),
            "recomputation": st.sampled_from([{"strategy": "none"}, {"strategy": "full"}]),
        },
    ),
    st.sampled_from([{"source": "modelled"}, ASSUMED, {"source": "assumed", "utilization": 1.0}]),
)
def test_training_rates_agree(model, accelerator, count, workload, efficiency):
    asked = {**question(model, accelerator, count, **workload), "efficiency": efficiency}
    answer = ask(shipped(), "throughput", asked)
    tokens = value(answer, "tokens_per_second")
    assert value(answer, "tokens_per_second_per_device") * count == pytest.approx(tokens)
    length = workload.get("sequence_length", 4096)
    assert value(answer, "samples_per_second") * length == pytest.approx(tokens)
    assert value(answer, "duration_seconds") * tokens == pytest.approx(workload["total_tokens"])
    model_share, hardware_share = (
        value(answer, f"{kind}_flops_utilization") for kind in ("model", "hardware")
    )
    assert 0 < model_share <= hardware_share <= 1 + 1e-12
    peak = answer["peak_flops_per_second_per_device"] * count
    done = hardware_share * peak * value(answer, "duration_seconds")
    assert done == pytest.approx(answer["total_flops"])
    step = value(answer, "step_seconds")
    assert sum(phase["seconds"]["value"] for phase in answer["breakdown"]) == pytest.approx(step)
    names = [phase["phase"] for phase in answer["breakdown"]]
    recomputed = chosen_workload(asked, answer)["recomputation"] != {"strategy": "none"}
    assert ("recomputation" in names) == recomputed
    if efficiency == ASSUMED:
        assert hardware_share == pytest.approx(0.4)


class TestTraining:
    def test_without_a_total_the_duration_is_a_gap(self, snapshot):
        answer = ask(snapshot, "throughput", question("gpt2", "h100-sxm"))
        assert "duration_seconds" not in answer
        assert "total_flops" not in answer
        assert gaps(answer) == {"/duration_seconds": "TOTAL_REQUIRED"}

    def test_a_parameter_count_has_no_steps_until_the_batch_is_known(self, snapshot):
        model = {"source": "parameter_count", "parameter_count": 10**9}
        answer = ask(snapshot, "throughput", question(model, "h100-sxm", 8, total_tokens=10**9))
        assert gaps(answer) == {"/step_seconds": "BATCH_REQUIRED"}
        assert answer["breakdown"] == []
        known = question(model, "h100-sxm", 8, total_tokens=10**9, global_batch_size=64)
        assert value(ask(snapshot, "throughput", known), "step_seconds") > 0

    def test_an_assumed_utilization_is_exact_and_says_so(self, snapshot):
        asked = {**question("llama-2-7b", "h100-sxm", 8), "efficiency": ASSUMED}
        rate = ask(snapshot, "throughput", asked)["tokens_per_second"]
        assert rate["basis"] == "assumed"
        assert rate["low"] == rate["value"] == rate["high"]

    def test_a_generation_without_measurements_has_a_wider_interval(self, snapshot):
        def width(accelerator):
            answer = ask(snapshot, "throughput", question("llama-2-7b", accelerator, 8))
            rate = answer["tokens_per_second"]
            return (rate["high"] - rate["low"]) / rate["value"]

        assert width("mi250x") > width("h100-sxm") > 0

    def test_a_model_that_does_not_fit_is_answered_with_a_warning(self, snapshot):
        asked = {**question("llama-2-70b", "h100-sxm"), "efficiency": ASSUMED}
        assert "DOES_NOT_FIT" in codes(ask(snapshot, "throughput", asked)["warnings"])

    @pytest.mark.parametrize("operation", ["throughput", "cost", "utility-bill"])
    @pytest.mark.parametrize("known", [{}, {"memory_bandwidth_bytes_per_second": 3e12}])
    def test_a_model_that_does_not_fit_is_warned_of_without_a_known_bandwidth_too(
        self, snapshot, operation, known
    ):
        device = {"peak_flops_per_second": {"bf16": 1e15}, "memory_bytes": 24 * 10**9, **known}
        asked = question("llama-2-70b", "h100-sxm", total_tokens=10**9)
        asked["cluster"]["accelerator"] = {"source": "specification", "specification": device}
        assert ask(snapshot, "memory", asked)["fits"] is False
        paid = {} if operation == "throughput" else {"rental": {"price_per_device_hour": usd("2")}}
        assert "DOES_NOT_FIT" in codes(ask(snapshot, operation, asked | paid)["warnings"])
        smaller = asked | {"model": {"source": "catalog", "id": "gpt2"}} | paid
        assert "DOES_NOT_FIT" not in codes(ask(snapshot, operation, smaller)["warnings"])

    def test_moving_the_state_bounds_a_tiny_batch(self, snapshot):
        """One token per step: moving 16 bytes per parameter takes far longer than 6 FLOPs per parameter."""
        asked = question("llama-2-7b", "mi300x", sequence_length=1, micro_batch_size=1)
        answer = ask(snapshot, "throughput", asked)
        assert answer["bottleneck"]["bound"] == "memory"
        assert "GRADIENT_ACCUMULATION" in codes(answer["bottleneck"]["advice"])
        assumed = ask(snapshot, "throughput", {**asked, "efficiency": ASSUMED})
        assert "UTILIZATION_ABOVE_BANDWIDTH" in codes(assumed["warnings"])

    @pytest.mark.parametrize(
        ("workload", "advice"),
        [
            ({"precision": "fp32"}, "MIXED_PRECISION"),
            ({"recomputation": {"strategy": "full"}, "micro_batch_size": 1}, "LESS_RECOMPUTATION"),
            ({"attention": "standard"}, "FLASH_ATTENTION"),
        ],
    )
    def test_advice_names_what_is_not_used(self, snapshot, workload, advice):
        answer = ask(snapshot, "throughput", question("llama-2-7b", "h100-sxm", 8, **workload))
        assert advice in codes(answer["bottleneck"]["advice"])
        plain = ask(snapshot, "throughput", question("llama-2-7b", "h100-sxm", 8))
        assert advice not in codes(plain["bottleneck"]["advice"])


def test_utilization_above_one_is_refused_by_the_shape(snapshot):
    from pydantic import ValidationError  # noqa: PLC0415

    asked = {**question("gpt2", "h100-sxm"), "efficiency": {"source": "assumed", "utilization": 1.5}}
    with pytest.raises(ValidationError):
        ask(snapshot, "throughput", asked)


def test_an_unknown_rate_names_what_is_known(snapshot):
    asked = question("gpt2", "v100-sxm2-32gb", precision="tf32")
    assert refusal(snapshot, "throughput", asked) == ("PEAK_RATE_UNKNOWN", "/workload/precision")


@pytest.mark.parametrize(
    ("workload", "efficiency"),
    [
        ({"total_tokens": 10**9, "micro_batch_size": 2}, {"source": "modelled"}),
        ({"total_tokens": 10**9, "micro_batch_size": 2}, ASSUMED),
        (SERVED, {"source": "modelled"}),
        (SERVED, ASSUMED),
    ],
)
def test_an_answer_that_explains_nothing_has_the_same_figures(workload, efficiency):
    asked = {**question("llama-2-7b", "h100-sxm", 8, **workload), "efficiency": efficiency}
    whole = ask(shipped(), "throughput", asked)
    bare = ask(shipped(), "throughput", {**asked, "explain": False})
    assert whole["bottleneck"].pop("advice") or efficiency is ASSUMED
    assert bare["bottleneck"].pop("advice") == []
    assert ("operators" in whole) == (workload is not SERVED and efficiency is not ASSUMED)
    assert whole["evidence"].pop("input_digest") != bare["evidence"].pop("input_digest")
    assert bare == {name: part for name, part in whole.items() if name != "operators"}
