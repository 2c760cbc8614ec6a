"""Engines and frameworks bring a release of fused attention; a question may state another."""

import pytest

from tests.asking import ask, question, shipped

ENGINE = "/workload/engine"


def filled(answer):
    return {default["pointer"]: default["value"] for default in answer["defaults"]}


class TestAttentionRelease:
    """Shah et al. 2024, FlashAttention-3: 75% of an H100's peak in FP16, FlashAttention-2 at most 35%."""

    def first_token(self, **engine):
        asked = question(
            "llama-3.1-8b", "h100-sxm", kind="inference", input_tokens=32_768, output_tokens=2, engine=engine
        )
        answer = ask(shipped(), "throughput", asked)
        return answer["time_to_first_token_seconds"]["value"], filled(answer)

    @pytest.mark.parametrize(
        ("engine", "release"),
        [
            ({"name": "vllm"}, "native"),
            ({"name": "vllm", "version": "0.6.3"}, "second"),
            ({"name": "sglang", "version": "0.4.5"}, "second"),
            ({"name": "sglang", "version": "0.4.6"}, "native"),
            ({"name": "llama.cpp"}, "second"),
            ({"name": "transformers"}, "second"),
        ],
    )
    def test_an_engine_brings_its_own(self, engine, release):
        assert self.first_token(**engine)[1][f"{ENGINE}/attention_release"] == release

    def test_the_second_is_slower_on_hopper_by_the_ratio_of_the_rates(self):
        native, second = (
            self.first_token(name="vllm", attention_release=release)[0] for release in ("native", "second")
        )
        # 32 layers x 2 x 4096 x 32,768^2 FLOP, causal, at 740 and 350 TFLOP/s.
        flops = 32 * 2 * 4096 * 32_768**2
        assert second - native == pytest.approx(flops / 350e12 - flops / 740e12, rel=0.35)

    @pytest.mark.parametrize(
        ("framework", "release"),
        [("megatron_core", "native"), ("megatron_lm", "first"), ("fsdp", "second"), (None, "native")],
    )
    def test_a_framework_brings_its_own(self, framework, release):
        named = {} if framework is None else {"framework": {"name": framework}}
        asked = question("llama-3.1-8b", "h100-sxm", 8, sequence_length=8192, global_batch_size=16, **named)
        answer = ask(shipped(), "throughput", asked)
        assert filled(answer)["/workload/attention_release"] == release
        layout = {"parallelism": {"data": 8, "sharding": "zero_1"}}
        stated = question(
            "llama-3.1-8b", "h100-sxm", 8, sequence_length=8192, global_batch_size=16,
            micro_batch_size=1, recomputation={"strategy": "full"}, **named,
        )  # fmt: skip
        steps = []
        for each in ("first", "second", "native"):
            changed = {**stated, **layout, "workload": {**stated["workload"], "attention_release": each}}
            found = ask(shipped(), "throughput", changed)
            assert "/workload/attention_release" not in filled(found)
            steps.append(found["step_seconds"]["value"])
        assert steps[0] > steps[1] > steps[2]
