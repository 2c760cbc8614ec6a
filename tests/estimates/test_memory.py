"""Does it fit? Sums, verdict, limits and advice, each against asking again."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.planning.precision import Optimizer
from service.planning.software.engines import EngineName
from service.planning.software.frameworks import Framework
from tests.asking import ask, chosen_workload, codes, gaps, question, refusal, shipped

MODELS = ["gpt2", "bert-large", "llama-2-7b", "mixtral-8x7b", "qwen3-14b", "llama-3.1-70b"]
DEVICES = ["h100-sxm", "a100-sxm-40gb", "l4", "mi300x", "tpu-v5p"]
training = st.fixed_dictionaries(
    {"kind": st.just("training")},
    optional={
        "sequence_length": st.sampled_from([128, 1000, 4096]),
        "micro_batch_size": st.integers(1, 8),
        "precision": st.sampled_from(["bf16", "fp16", "fp32", "pure_bf16", "mxfp8", "fp8_delayed"]),
        "optimizer": st.sampled_from([optimizer.value for optimizer in Optimizer]),
        "attention": st.sampled_from(["standard", "flash"]),
        "loss": st.sampled_from(["fp32", "narrow", "chunked", "fused"]),
        "recomputation": st.sampled_from(
            [{"strategy": name} for name in ("none", "selective", "full", "sqrt")]
            + [{"strategy": "every_k", "k": 3}]
        ),
        "objective": st.sampled_from(["supervised", "dpo", "ppo", "grpo", "distillation"]),
        "adaptation": st.sampled_from(
            [{"kind": kind} for kind in ("full", "lora", "qlora", "dora", "prompt", "prefix", "adapter")]
        ),
        "offload": st.sampled_from([{"optimizer": "cpu"}, {"parameters": "nvme"}, {"activations": "cpu"}]),
        "framework": st.sampled_from([{"name": framework.value} for framework in Framework]),
    },
)
inference = st.fixed_dictionaries(
    {"kind": st.just("inference")},
    optional={
        "input_tokens": st.integers(1, 20_000),
        "output_tokens": st.integers(1, 2000),
        "concurrency": st.integers(1, 300),
        "weight_precision": st.sampled_from(["bf16", "fp8", "int4"]),
        "kv_cache_precision": st.sampled_from(["bf16", "fp8"]),
        "memory_fraction": st.floats(0.1, 1.0),
        "adapters": st.sampled_from([{}, {"max_loras": 8, "rank": 64}]),
        "engine": st.builds(
            lambda name, version, changes: {"name": name, "version": version, **changes},
            st.sampled_from(["vllm", "TensorRT-LLM", "sglang", "llama.cpp", "transformers", "other"]),
            st.sampled_from(["0.2.5", "0.7.3", "0.11.0", "1.2", "b3266"]),
            st.sampled_from([{}, {"max_num_seqs": 100}, {"max_batched_tokens": 4096, "cuda_graphs": False}]),
        ),
    },
)
# Replicas that each lie on one device: what more tensor parallelism is advised for.
replicated = st.builds(
    lambda model, device, data, workload: {
        **question(model, device, 8),
        "parallelism": {"data": data, "tensor": 8 // data},
        "workload": workload,
    },
    st.sampled_from(["llama-2-7b", "mixtral-8x7b", "qwen3-14b", "qwen3-32b"]),
    st.sampled_from(["a100-sxm-40gb", "l4", "h100-sxm", "rtx-4090"]),
    st.sampled_from([8, 4, 2]),
    inference,
)
questions = st.builds(
    lambda model, device, count, workload: {**question(model, device, count), "workload": workload},
    st.sampled_from(MODELS),
    st.sampled_from(DEVICES),
    st.sampled_from([1, 2, 8, 64]),
    training | inference,
)

MOST_REQUESTS = 1_000_000
"""More cannot be asked."""


KEPT = {"recomputation": {"strategy": "none"}, "micro_batch_size": 1}
"""All activations of one sequence are kept, whether they fit or not."""


def total(answer):
    return answer["per_device"]["total_bytes"]["value"]


@given(questions)
def test_an_answer_agrees_with_itself(asked):
    answer = ask(shipped(), "memory", asked)
    device = answer["per_device"]
    assert device["known_bytes"] == sum(part["bytes"] for part in device["components"])
    assert total(answer) == device["known_bytes"]
    quantity = device["total_bytes"]
    assert quantity["low"] <= quantity["value"] <= quantity["high"]
    assert answer["headroom_bytes"] == round(answer["usable_bytes"] - total(answer))
    assert answer["fits"] == (total(answer) <= answer["usable_bytes"])
    assert 0.0 <= answer["fit_probability"] <= 1.0
    assert answer["usable_bytes"] <= answer["capacity_bytes"]
    assert answer["active_parameter_count"] <= answer["parameter_count"]
    assert bool(answer["advice"]) <= (not answer["fits"])


def is_v0(engine):
    """Whether a version of vLLM is of its first engine, which runs 256 requests at a time."""
    return re.match(r"0\.[0-7](\.|$)", engine.get("version", "")) is not None


@given(questions | replicated)
@settings(max_examples=50)
def test_limits_are_where_it_stops_fitting(asked):
    """The layout as chosen, asked again at each limit and one beyond it."""
    answer = ask(shipped(), "memory", asked)
    layout = {name: value for name, value in answer["parallelism"].items() if name != "chosen"}

    def fits(**change):
        workload = {**chosen_workload(asked, answer), **change}
        return ask(shipped(), "memory", {**asked, "workload": workload, "parallelism": layout})["fits"]

    limits = answer["limits"]
    if "max_micro_batch_size" in limits:
        largest = limits["max_micro_batch_size"]
        assert largest == 0 or fits(micro_batch_size=largest)
        assert not fits(micro_batch_size=largest + 1)
    if limits.get("max_concurrency", MOST_REQUESTS) < MOST_REQUESTS:
        most = limits["max_concurrency"]
        engine = asked["workload"].get("engine", {})
        default = {"vllm": 1024, "TensorRT-LLM": 2048}.get(engine.get("name"), math.inf)
        if engine.get("name") == "vllm" and (is_v0(engine) or "a100" in json.dumps(asked["cluster"])):
            default = 256
        if most % layout["data"] == 0 and most // layout["data"] in (256, 1024):
            default = most // layout["data"]
        assert most == 0 or fits(concurrency=most)
        # An engine with a bound on its requests lets the others wait.
        bound = engine.get("max_num_seqs", default) * layout["data"]
        assert most >= bound or not fits(concurrency=most + 1)
    if "max_sequence_length" in limits and asked["workload"]["kind"] == "training":
        longest = limits["max_sequence_length"]
        assert longest == 0 or fits(sequence_length=longest)
        assert not fits(sequence_length=longest + 1)
    if "max_sequence_length" in limits and asked["workload"]["kind"] == "inference":
        inputs, block = asked["workload"].get("input_tokens", 1024), answer["kv_cache"]["block_tokens"]
        longest = limits["max_sequence_length"]
        if longest > inputs:
            assert fits(output_tokens=longest - inputs)
            assert not fits(output_tokens=longest - inputs + block)


def widened(detail):
    """The layout that advice names in words."""
    found = re.search(r"tensor parallelism of (\d+) and (\d+) replicas", detail)
    return {"tensor": int(found[1]), "data": int(found[2])} if found else {}


@given(questions | replicated)
@settings(max_examples=50)
def test_advice_makes_it_fit(asked):
    answer = ask(shipped(), "memory", asked)
    layout = {name: value for name, value in answer["parallelism"].items() if name != "chosen"}
    changes = {
        "FP8_WEIGHTS": ({"weight_precision": "fp8"}, {}),
        "INT4_WEIGHTS": ({"weight_format": "awq_int4_g128"}, {}),
        "FP8_KV_CACHE": ({"kv_cache_precision": "fp8"}, {}),
        "CONCURRENCY_1": ({"concurrency": 1}, {}),
        "MORE_TENSOR_PARALLELISM": ({}, {}),
    }
    engine = asked["workload"].get("engine", {})
    if "/workload/engine" in {default["pointer"] for default in answer["defaults"]}:
        engine = {"name": "vllm"}
    if engine:
        requests = -(-asked["workload"].get("concurrency", 1) // layout["data"])
        needed = min(requests, engine.get("max_num_seqs", requests))
        changes["FEWER_SEQUENCES"] = ({"engine": {"max_num_seqs": needed}}, {})
        changes["SMALLER_BATCHES"] = ({"engine": {"max_batched_tokens": 2048}}, {})
    for advice in answer["advice"]:
        if asked["workload"]["kind"] == "training":
            continue
        workload, parallelism = {}, widened(advice["detail"])
        for code in advice["code"].split("_AND_"):
            workload |= changes[code][0]
            if "engine" in workload:
                engine = {**engine, **workload["engine"]}
                workload["engine"] = engine
            parallelism |= changes[code][1]
        changed = {**chosen_workload(asked, answer), **workload}
        if "weight_format" in workload:
            changed.pop("weight_precision", None)
        again = {**asked, "workload": changed, "parallelism": {**layout, **parallelism}}
        if "MORE_TENSOR_PARALLELISM" in advice["code"]:
            assert parallelism["tensor"] > layout["tensor"]
        assert ask(shipped(), "memory", again)["fits"], advice["code"]


TECHNIQUES = {
    "FLASH_ATTENTION": ({"attention": "flash"}, {}),
    "SEQUENCE_PARALLEL": ({}, {"sequence_parallel": True}),
    "ZERO_1": ({}, {"sharding": "zero_1"}),
    "ZERO_2": ({}, {"sharding": "zero_2"}),
    "ZERO_3": ({}, {"sharding": "zero_3"}),
    "MICRO_BATCH_1": ({"micro_batch_size": 1}, {}),
    "CHUNKED_LOSS": ({"loss": "chunked"}, {}),
    "SELECTIVE_RECOMPUTATION": ({"recomputation": {"strategy": "selective"}}, {}),
    "FULL_RECOMPUTATION": ({"recomputation": {"strategy": "full"}}, {}),
    "ADAM_8BIT": ({"optimizer": "adam_8bit"}, {}),
    "OFFLOAD_OPTIMIZER": ({"offload": {"optimizer": "cpu"}}, {}),
    "OFFLOAD_ACTIVATIONS": ({"offload": {"activations": "cpu"}}, {}),
    "OFFLOAD_PARAMETERS": ({"offload": {"parameters": "cpu"}}, {}),
    "LORA": ({"adaptation": {"kind": "lora"}}, {}),
}


@pytest.mark.parametrize(
    ("model", "device", "count", "workload", "needed"),
    [
        ("llama-2-7b", "h100-sxm", 2, {"micro_batch_size": 4}, ["MICRO_BATCH_1"]),
        (
            "llama-3.1-8b",
            "h100-sxm",
            1,
            {},
            ["CHUNKED_LOSS", "FULL_RECOMPUTATION", "ADAM_8BIT"],
        ),
        ("llama-3.1-70b", "h100-sxm", 8, {}, ["OFFLOAD_OPTIMIZER"]),
        ("llama-2-7b", "mi300x", 1, {"attention": "standard", "sequence_length": 7000}, ["FLASH_ATTENTION"]),
    ],
)
def test_the_techniques_advised_make_it_fit_together_and_none_can_be_left_out(
    model, device, count, workload, needed
):
    asked = question(model, device, count, **{"recomputation": {"strategy": "none"}, **workload})
    answer = ask(shipped(), "memory", asked)
    layout = {name: value for name, value in answer["parallelism"].items() if name != "chosen"}

    def fits(techniques):
        changed, laid_out = dict(asked["workload"]), dict(layout)
        for code in techniques:
            of_workload, of_layout = TECHNIQUES[code]
            for name, value in of_workload.items():
                both = isinstance(value, dict) and name == "offload"
                changed[name] = {**changed.get(name, {}), **value} if both else value
            laid_out |= of_layout
        return ask(shipped(), "memory", {**asked, "workload": changed, "parallelism": laid_out})["fits"]

    assert not answer["fits"]
    assert [advice["code"] for advice in answer["advice"]] == needed
    assert fits(needed)
    assert not any(fits([code for code in needed if code != left_out]) for left_out in needed)


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ({"micro_batch_size": 4}, {"micro_batch_size": 2}),
        ({"sequence_length": 4096}, {"sequence_length": 2048}),
        ({"optimizer": "adamw"}, {"optimizer": "momentum"}),
        ({"optimizer": "momentum"}, {"optimizer": "sgd"}),
        ({"attention": "standard"}, {"attention": "flash"}),
        ({"recomputation": {"strategy": "none"}}, {"recomputation": {"strategy": "full"}}),
        ({"precision": "fp32"}, {"precision": "pure_bf16"}),
    ],
)
def test_what_takes_more_memory(snapshot, more, less):
    base = {**question("llama-2-7b", "mi300x"), "parallelism": {}}
    answers = [
        ask(snapshot, "memory", {**base, "workload": {"kind": "training", **KEPT, **change}})
        for change in (more, less)
    ]
    assert total(answers[0]) > total(answers[1])


class TestParameterCount:
    BODY = question({"source": "parameter_count", "parameter_count": 70_000_000_000}, "h100-sxm", 1)

    def test_what_is_known_is_told_and_the_rest_is_a_gap(self, snapshot):
        answer = ask(snapshot, "memory", {**self.BODY, "parallelism": {}})
        parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
        assert parts["weights"] == 140_000_000_000
        assert parts["optimizer_states"] == 560_000_000_000
        assert "activations" not in parts
        assert "total_bytes" not in answer["per_device"]
        assert gaps(answer)["/per_device/total_bytes"] == "ARCHITECTURE_REQUIRED"
        assert answer["fits"] is False
        assert "fit_probability" not in answer
        assert answer["limits"] == {}

    def test_known_parts_that_fit_decide_nothing(self, snapshot):
        small = question({"source": "parameter_count", "parameter_count": 10**9}, "h100-sxm")
        answer = ask(snapshot, "memory", small)
        assert "fits" not in answer
        assert gaps(answer)["/fits"] == "TOTAL_UNKNOWN"


class TestCapacity:
    def test_without_a_cluster_there_is_no_verdict(self, snapshot):
        asked = question("gpt2", "h100-sxm")
        del asked["cluster"]
        answer = ask(snapshot, "memory", asked)
        assert {"fits", "fit_probability", "capacity_bytes", "usable_bytes"}.isdisjoint(answer)
        assert gaps(answer)["/fits"] == "CAPACITY_UNKNOWN"
        assert total(answer) > 0

    def test_a_label_is_doubtful(self, snapshot):
        answer = ask(snapshot, "memory", question("gpt2", "tpu-v5p"))
        assert "CAPACITY_UNCERTAIN" in codes(answer["warnings"])

    def test_an_80_gb_h100_is_what_its_driver_reports(self, snapshot):
        """79.1 GiB; "80 GB" read as 80e9 bytes (74.5 GiB) would refuse models."""
        answer = ask(snapshot, "memory", question("gpt2", "h100-sxm"))
        assert 79.0 < answer["capacity_bytes"] / 2**30 < 79.7

    def test_serving_leaves_a_share_unused(self, snapshot):
        workload = {"kind": "inference", "memory_fraction": 0.5, "engine": {"name": "of our own"}}
        asked = {**question("gpt2", "h100-sxm"), "workload": workload}
        answer = ask(snapshot, "memory", asked)
        assert answer["usable_bytes"] == round(answer["capacity_bytes"] * 0.5)


def test_a_sample_whose_size_is_not_known_is_a_gap(snapshot):
    stem = {
        "kind": "convolution",
        "input_channels": 3,
        "output_channels": 64,
        "kernel_height": 7,
        "kernel_width": 7,
    }
    architecture = {"inputs": [{"name": "image", "kind": "image", "channels": 3}], "layers": [stem]}
    model = {"source": "architecture", "architecture": architecture}
    answer = ask(snapshot, "memory", question(model, "h100-sxm"))
    assert gaps(answer)["/per_device/total_bytes"] == "SAMPLE_REQUIRED"
    assert answer["parameter_count"] > 0
    told = ask(snapshot, "memory", question(model, "h100-sxm", sample={"height": 64}))
    assert told["fits"]


def test_what_a_device_holds_beside_tensors_is_itemised(snapshot):
    """Context, buffers of one communicator, workspace of matrix multiplication, lost by the allocator."""
    answer = ask(snapshot, "memory", question("llama-2-7b", "h100-sxm", 8))
    parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
    constants = snapshot.curves.training_memory
    assert parts["device_context"] == round(constants.context.value)
    assert parts["communication_buffers"] == round(constants.communicator.value)
    assert parts["workspace"] == round(constants.matrix_workspace.value)
    passing = sum(parts.get(name, 0) for name in ("activations", "logits", "gathered_weights"))
    passing += parts.get("gradient_buffers", 0)
    assert parts["fragmentation"] == pytest.approx(constants.fragmentation.value * passing, abs=2)
    figure = answer["per_device"]["total_bytes"]
    assert figure["basis"] == "reference"
    # Of no named framework: as far off as measured rows of all of them.
    spread = snapshot.curves.residuals["training_memory", "reference"]
    assert figure["low"] == pytest.approx(spread.low * figure["value"])
    assert figure["high"] == pytest.approx(spread.high * figure["value"])


def test_a_named_framework_settles_how_wide_gradients_are(snapshot):
    """Megatron Core keeps 2 + 4 + 12 bytes per parameter in bf16; nothing is left to widen the interval."""
    spread = snapshot.curves.training_memory.total
    asked = question("llama-2-7b", "mi300x", framework={"name": "Megatron-LM", "version": "0.8"})
    answer = ask(snapshot, "memory", asked)
    parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
    assert parts["gradients"] == 2 * parts["weights"]
    figure = answer["per_device"]["total_bytes"]
    assert figure["high"] == pytest.approx(spread.high * figure["value"])
    for name in ("PyTorch FSDP", "Hugging Face", "torchtitan", "NeMo"):
        known = ask(snapshot, "memory", question("llama-2-7b", "mi300x", framework={"name": name}))
        assert "FRAMEWORK_UNKNOWN" not in codes(known["warnings"])
    unknown = ask(snapshot, "memory", question("llama-2-7b", "mi300x", framework={"name": "my own"}))
    assert "FRAMEWORK_UNKNOWN" in codes(unknown["warnings"])


class TestAdaptation:
    def test_low_rank_training_keeps_states_of_what_is_trained(self, snapshot):
        asked = question("llama-2-7b", "h100-sxm", adaptation={"kind": "lora", "rank": 8})
        answer = ask(snapshot, "memory", asked)
        parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
        trained = answer["trained_parameter_count"]
        assert trained == 32 * 2 * (4096 * 8 + 8 * 4096)  # LitGPT prints 4,194,304
        assert parts["optimizer_states"] == 8 * trained
        assert parts["weights"] == 2 * (answer["parameter_count"] + trained)

    def test_a_quantised_base_is_half_a_byte(self, snapshot):
        """QLoRA: NF4 with double quantisation takes 0.127 bits of scales for a weight (section 3)."""
        asked = question("llama-2-7b", "h100-sxm", adaptation={"kind": "qlora", "rank": 8})
        answer = ask(snapshot, "memory", asked)
        weights = next(part["bytes"] for part in answer["per_device"]["components"])
        outside = 2 * 32000 * 4096 + 65 * 4096
        inside = answer["parameter_count"] - outside
        expected = inside * (4 + 0.127) / 8 + 2 * outside + 2 * answer["trained_parameter_count"]
        assert weights == pytest.approx(expected, rel=1e-4)

    def test_what_a_kind_does_not_have_is_warned_of(self, snapshot):
        asked = question("gpt2", "h100-sxm", adaptation={"kind": "prompt", "rank": 8, "virtual_tokens": 100})
        answer = ask(snapshot, "memory", asked)
        assert answer["trained_parameter_count"] == 100 * 768
        assert "NOT_USED" in codes(answer["warnings"])

    def test_a_parameter_count_has_nothing_to_adapt(self, snapshot):
        model = {"source": "parameter_count", "parameter_count": 10**9}
        asked = question(model, "h100-sxm", adaptation={"kind": "lora"})
        assert refusal(snapshot, "memory", asked) == ("ARCHITECTURE_REQUIRED", "/workload/adaptation/kind")


class TestOffload:
    def test_what_leaves_the_device_is_on_the_host(self, snapshot):
        here = ask(snapshot, "memory", question("llama-2-7b", "mi300x", **KEPT))
        there = ask(
            snapshot, "memory", question("llama-2-7b", "mi300x", **KEPT, offload={"optimizer": "cpu"})
        )
        assert "host" not in here
        parts = {part["name"]: part["bytes"] for part in here["per_device"]["components"]}
        moved = parts["master_weights"] + parts["optimizer_states"]
        assert there["host"] == {"memory_bytes": moved, "nvme_bytes": 0}
        assert total(here) - total(there) == moved

    def test_drives_hold_what_is_sent_there(self, snapshot):
        asked = question(
            "llama-2-7b", "mi300x", offload={"optimizer": "nvme", "parameters": "cpu", "activations": "cpu"}
        )
        answer = ask(snapshot, "memory", asked)
        assert answer["host"]["nvme_bytes"] == 12 * answer["parameter_count"]
        assert answer["host"]["memory_bytes"] > 2 * answer["parameter_count"]

    def test_paged_states_may_leave(self, snapshot):
        answer = ask(snapshot, "memory", question("llama-2-7b", "mi300x", optimizer="paged_adamw"))
        assert answer["host"]["memory_bytes"] == 8 * answer["parameter_count"]


def test_a_step_in_the_backward_pass_has_one_micro_batch(snapshot):
    asked = question("gpt2", "h100-sxm", optimizer_in_backward=True, gradient_accumulation_steps=2)
    assert refusal(snapshot, "memory", asked) == ("STEP_IN_BACKWARD", "/workload/optimizer_in_backward")
    asked["workload"]["gradient_accumulation_steps"] = 1
    parts = ask(snapshot, "memory", asked)["per_device"]["components"]
    assert next(part["bytes"] for part in parts if part["name"] == "gradients") == 0


def test_every_k_needs_its_k_and_the_others_have_none(snapshot):
    for recomputation in ({"strategy": "every_k"}, {"strategy": "full", "k": 2}):
        asked = question("gpt2", "h100-sxm", recomputation=recomputation)
        refused = ("RECOMPUTATION_INTERVAL", "/workload/recomputation/k")
        assert refusal(snapshot, "memory", asked) == refused
    asked = question("gpt2", "h100-sxm", recomputation={"strategy": "every_k", "k": 3})
    assert ask(snapshot, "memory", asked)["fits"]


@pytest.mark.parametrize(
    ("objective", "copies"),
    [("supervised", 0), ("simpo", 0), ("dpo", 2), ("grpo", 2), ("distillation", 2), ("ppo", 2 + 2 + 16)],
)
def test_objectives_hold_more_models(snapshot, objective, copies):
    """Bytes per parameter beside the trained 16: claims M12 to M15."""
    answer = ask(snapshot, "memory", question("llama-2-7b", "mi300x", objective=objective))
    parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
    assert parts.get("auxiliary_models", 0) == copies * answer["parameter_count"]


def test_the_cache_of_generated_sequences_is_said_not_to_be_counted(snapshot):
    """Llama-2-7B, 4 sequences of 4,096 tokens at 524,288 bytes each."""
    for objective in ("ppo", "grpo", "dpo"):
        workload = {"objective": objective, "micro_batch_size": 4, "sequence_length": 4096}
        answer = ask(snapshot, "memory", question("llama-2-7b", "mi300x", **workload))
        said = [note["detail"] for note in answer["warnings"] if note["code"] == "GENERATION_NOT_COUNTED"]
        assert len(said) == (objective != "dpo")
        assert all("holds 8.6 GB of KV cache" in detail for detail in said)


@pytest.mark.parametrize("workload", [{"objective": "distillation"}, {"framework": {"name": "fsdp"}}])
def test_a_model_without_parameters_is_no_crash(snapshot, workload):
    layers = [{"kind": "resampling", "factor": 2.0}]
    model = {"source": "architecture", "architecture": {"layers": layers}}
    answer = ask(snapshot, "memory", question(model, "h100-sxm", **workload))
    assert answer["parameter_count"] == 0
    assert answer["fits"]


def test_an_encoder_is_asked_by_the_requests_of_a_pass(snapshot):
    asked = {**question("bert-large", "h100-sxm"), "workload": {"kind": "inference", "input_tokens": 512}}
    answer = ask(snapshot, "memory", asked)
    most = answer["limits"]["max_concurrency"]
    assert gaps(answer)["/limits/kv_cache_tokens"] == "NO_KV_CACHE"
    fits = []
    for concurrency in (most, most + 1):
        workload = {**asked["workload"], "concurrency": concurrency}
        fits.append(ask(snapshot, "memory", {**asked, "workload": workload})["fits"])
    assert fits == [True, False]


@settings(max_examples=30)
@given(questions)
def test_wide_gradients_are_warned_of_where_they_decide(asked):
    """4 bytes for each of the 2-byte gradients, where they would take more than the headroom."""
    answer = ask(shipped(), "memory", asked)
    parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
    workload = asked["workload"]
    unsettled = workload.get("framework", {"name": "generic"})["name"] == "generic"
    unsettled &= workload.get("precision", "bf16") not in ("fp32", "pure_bf16")
    decides = answer["fits"] and unsettled and 2 * parts.get("gradients", 0) > answer["headroom_bytes"]
    assert ("GRADIENTS_MAY_BE_WIDE" in codes(answer["warnings"])) == decides


def test_what_has_no_narrow_gradients_is_not_warned_of_wide_ones(snapshot):
    tight = question("llama-3.1-8b", "h100-sxm", 2)
    assert "GRADIENTS_MAY_BE_WIDE" in codes(ask(snapshot, "memory", tight)["warnings"])
    for precision in ("fp32", "pure_bf16"):
        layout = {**tight, "workload": {**tight["workload"], "precision": precision}}
        assert "GRADIENTS_MAY_BE_WIDE" not in codes(ask(snapshot, "memory", layout)["warnings"])


def served(model, accelerator="h100-sxm", count=1, **workload):
    return {**question(model, accelerator, count), "workload": {"kind": "inference", **workload}}


def quantised(**fields):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "quantization_config": fields,
    }
    return {"source": "huggingface_config", "config": config}


def components(answer):
    return {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}


AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}


def test_a_quantised_checkpoint_is_taken_as_it_is_stored(snapshot):
    by_config = components(ask(snapshot, "memory", served(quantised(**AWQ))))
    by_name = components(ask(snapshot, "memory", served("llama-3.1-8b", weight_format="awq_int4_g128")))
    assert by_config["weights"] == by_name["weights"] == 5_727_854_592
    on_host = ask(
        snapshot,
        "memory",
        served("llama-3.1-8b", weight_format="gguf_q4_k_m", engine={"name": "llama.cpp"}),
    )
    assert on_host["stored_weight_bytes"] == 4_912_898_048 > components(on_host)["weights"]


def test_the_workload_may_say_otherwise_and_is_told(snapshot):
    answer = ask(snapshot, "memory", served(quantised(**AWQ), weight_precision="bf16"))
    assert components(answer)["weights"] == 16_060_522_496
    assert "CHECKPOINT_FORMAT_NOT_USED" in codes(answer["warnings"])


def test_a_quantisation_that_cannot_be_read_is_refused_unless_the_workload_says(snapshot):
    unreadable = quantised(quant_method="something")
    pointer = "/model/config/quantization_config/quant_method"
    assert refusal(snapshot, "memory", served(unreadable)) == ("QUANTIZATION_UNKNOWN", pointer)
    answer = ask(snapshot, "memory", served(unreadable, weight_format="gptq_int4_g128"))
    assert answer["fits"]
    trained = {**question(unreadable, "h100-sxm"), "workload": {"kind": "training"}}
    assert "QUANTIZATION_NOT_READ" in codes(ask(snapshot, "memory", trained)["warnings"])


def test_two_words_on_the_weights_contradict(snapshot):
    asked = served("llama-3.1-8b", weight_precision="fp8", weight_format="gguf_q4_k_m")
    assert refusal(snapshot, "memory", asked) == ("WEIGHT_FORMAT_CONFLICT", "/workload/weight_format")


def test_what_vllm_reports_of_its_cache(snapshot):
    """Llama-3.1-8B on one H100: 51.38 GiB for the cache, as a start-up log of version 0.11 says."""
    engine = {"name": "vLLM", "version": "0.11.0", "max_model_len": 16000}
    answer = ask(snapshot, "memory", served("llama-3.1-8b", engine=engine))
    logged = 51.38 * 2**30 / 131_072
    assert answer["limits"]["kv_cache_tokens"] == pytest.approx(logged, rel=0.01)
    parts = components(answer)
    assert parts.keys() >= {
        "weights",
        "kv_cache",
        "workspace",
        "sampler",
        "cuda_graphs",
        "runtime",
        "device_context",
    }
    drawn = snapshot.curves.serving_memory[EngineName.VLLM]["sampler_bytes_per_logit"].value
    assert parts["sampler"] == pytest.approx(drawn * 1024 * 128_256)
    assert answer["kv_cache"] == {
        "allocation": "paged",
        "block_tokens": 16,
        "bytes_per_token": 131_072.0,
        "bytes_per_request": 1280 * 131_072,
        "waste_bytes_per_request": 0,
        "model_bytes_per_token": 131_072.0,
    }
    assert answer["per_device"]["total_bytes"]["basis"] == "reference"


@pytest.mark.parametrize(
    ("model", "accelerator", "workload"),
    [
        # Start-up logs and published tables in which the model did not start or ran out of memory.
        ("qwen3-32b", "h100-sxm", {"engine": {"name": "vllm", "version": "0.11.0"}, "input_tokens": 31_000}),
        (
            "llama-3.1-70b",
            "h100-sxm",
            {"engine": {"name": "vllm", "version": "0.11.0"}, "weight_format": "fp8_channel"},
        ),
        ("llama-2-70b", "a100-sxm-40gb", {"engine": {"name": "transformers"}}),
        ("llama-3.1-70b", "a100-sxm-80gb", {"engine": {"name": "llama.cpp"}, "weight_format": "gguf_f16"}),
        ("llama-3.1-70b", "l40s", {"engine": {"name": "llama.cpp"}, "weight_format": "gguf_q6_k"}),
        ("llama-3.1-70b", "rtx-4090", {"engine": {"name": "llama.cpp"}, "weight_format": "gguf_q4_k_m"}),
    ],
)
def test_what_must_not_fit(snapshot, model, accelerator, workload):
    answer = ask(snapshot, "memory", served(model, accelerator, **workload))
    assert answer["fits"] is False
    assert answer["fit_probability"] < 0.1


@pytest.mark.parametrize(
    ("model", "accelerator", "workload"),
    [
        ("llama-3.1-70b", "a100-sxm-80gb", {"engine": {"name": "llama.cpp"}, "weight_format": "gguf_q4_k_m"}),
        ("llama-3.1-8b", "rtx-4090", {"engine": {"name": "llama.cpp"}, "weight_format": "gguf_f16"}),
        ("llama-2-7b", "a100-sxm-40gb", {"engine": {"name": "transformers"}}),
        ("qwen3-32b", "h100-sxm", {"engine": {"name": "vllm", "version": "0.11.0"}}),
    ],
)
def test_what_ran_is_not_refused(snapshot, model, accelerator, workload):
    answer = ask(snapshot, "memory", served(model, accelerator, **workload))
    assert answer["fits"]
    assert answer["fit_probability"] > 0.9


def test_the_cheapest_set_of_changes_is_advised(snapshot):
    """70B with 8 requests of 16,000 tokens on one device: no single change makes room for that."""
    asked = served("llama-3.1-70b", input_tokens=16_000, output_tokens=256, concurrency=8)
    answer = ask(snapshot, "memory", asked)
    assert not answer["fits"]
    advised = [advice["code"] for advice in answer["advice"]]
    assert advised == ["FP8_KV_CACHE_AND_INT4_WEIGHTS", "INT4_WEIGHTS_AND_CONCURRENCY_1"]


def test_less_is_reserved_before_anything_is_made_narrow(snapshot):
    """Room to draw tokens for 1,024 requests, where one is asked for."""
    engine = {"name": "vllm", "version": "0.11.0"}
    answer = ask(snapshot, "memory", served("qwen3-32b", engine=engine, input_tokens=31_000))
    assert answer["advice"][0]["code"] == "FEWER_SEQUENCES"


@pytest.mark.parametrize(
    ("engine", "share"), [("transformers", 2), ("sglang", 2), ("llama.cpp", 2), ("vllm", 1), ("other", 1)]
)
def test_states_are_as_wide_as_the_engine_keeps_them(snapshot, engine, share):
    """Mamba-2.8B: in FP32 or in BF16, unless the question says."""
    own, wide, narrow = (
        components(ask(snapshot, "memory", served("mamba-2.8b", engine={"name": engine}, **given)))["state"]
        for given in ({}, {"state_precision": "fp32"}, {"state_precision": "bf16"})
    )
    assert own == {2: wide, 1: narrow}[share]
    assert wide > 1.5 * narrow


def test_a_draft_model_and_adapters_count(snapshot):
    base = served("qwen3-32b", "h200-sxm", engine={"name": "vllm"})
    draft = {"model": {"source": "catalog", "id": "qwen3-0.6b"}, "tokens": 4}
    beside = {"speculative": draft, "adapters": {"max_loras": 4, "rank": 32}}
    plain, more = (
        components(ask(snapshot, "memory", {**base, "workload": {**base["workload"], **extra}}))
        for extra in ({}, beside)
    )
    assert more.keys() - plain.keys() == {"draft_weights", "draft_kv_cache", "adapters"}
    timed = ask(snapshot, "throughput", {**base, "workload": {**base["workload"], **beside}})
    assert "ACCEPTANCE_ASSUMED" in codes(timed["warnings"])
    unknown = {"speculative": {"model": {"source": "catalog", "id": "nothing"}}}
    asked = {**base, "workload": {**base["workload"], **unknown}}
    assert refusal(snapshot, "memory", asked) == ("UNKNOWN_REFERENCE", "/workload/speculative/model/id")


def test_a_decoder_behind_an_encoder_keeps_its_output_and_reads_the_input(snapshot):
    """T5 11B: 24 layers of 128 heads of 128, over 208 tokens of output and 1,000 of input."""
    answer = ask(snapshot, "memory", served("t5-11b", "h200-sxm", input_tokens=1000, output_tokens=200))
    assert components(answer)["kv_cache"] == 24 * 2 * 128 * 128 * 2 * (208 + 1000)
    assert answer["fits"]


def test_a_tower_beside_the_decoder_is_told(snapshot):
    answer = ask(snapshot, "memory", served("qwen3-vl-8b", input_tokens=1000, output_tokens=24))
    assert components(answer)["kv_cache"] == 36 * 2 * 8 * 128 * 2 * 1024
    assert "TOKENS_ALONE_COUNTED" in codes(answer["warnings"])
    seen = ask(
        snapshot,
        "memory",
        served("qwen3-vl-8b", input_tokens=1000, output_tokens=24, sample={"height": 1024}),
    )
    # 1024 pixels are 64 x 64 patches, of which 2 x 2 are one position of the decoder.
    assert components(seen)["kv_cache"] == 36 * 2 * 8 * 128 * 2 * (1024 + 32 * 32)
    assert components(seen)["workspace"] >= components(answer)["workspace"]


TOWERS = Path(__file__).parents[1] / "oracles" / "tower_configs"


def published(name, **workload):
    """A question about one H100 and a configuration as it was published."""
    config = json.loads((TOWERS / f"{name}.json").read_text())
    return question({"source": "huggingface_config", "config": config}, "h100-sxm", **workload)


PICTURES = {
    "stable-diffusion-vae": {"height": 512},
    "qwen2-vl-7b": {"height": 1008},
    "qwen2.5-vl-7b": {"height": 1008, "width": 756},
    "qwen3-vl-8b": {"height": 1024},
    "gemma-4-26b-a4b": {"height": 768},
    "gemma-4-12b-unified": {"height": 768, "audio_frames": 3000},
    "gemma-4-e2b": {"height": 768, "audio_frames": 3000},
    "flux.1-dev": {"height": 1024},
    "flux.1-schnell": {"height": 1024},
    "flux.2-dev": {"height": 1024},
    "qwen-image": {"height": 1328},
    "wan-2.1-1.3b": {"height": 480, "width": 832, "frames": 81},
    "wan-2.1-14b": {"height": 480, "width": 832, "frames": 17},
    "wan-2.2-ti2v-5b": {"height": 704, "width": 1280, "frames": 121},
    "cogvideox-2b": {"height": 480, "width": 720, "frames": 49},
    "cogvideox-5b": {"height": 480, "width": 720, "frames": 49},
    "hunyuan-video": {"height": 544, "width": 960, "frames": 17},
    "mochi-1": {"height": 480, "width": 848, "frames": 19},
    "ltx-video": {"height": 512, "width": 768, "frames": 121},
}
"""Samples of models that do not say for which they were built."""


PUBLISHED = sorted(path.stem for path in TOWERS.glob("*.json"))


@pytest.mark.parametrize("kind", ["training", "inference"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_model_has_a_total(snapshot, name, kind):
    """Of one model in eight the configuration of a training run is searched, which takes the longest."""
    sample = {"sample": PICTURES[name]} if name in PICTURES else {}
    stated = KEPT if kind == "training" and PUBLISHED.index(name) % 8 else {}
    answer = ask(snapshot, "memory", published(name, kind=kind, **sample, **stated))
    assert answer["per_device"]["total_bytes"]["value"] == answer["per_device"]["known_bytes"]
    assert "fits" in answer
    assert not codes(answer["gaps"]) - {"NOT_APPLICABLE", "NO_KV_CACHE", "UNBOUNDED"}


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        ("resnet-50", {}),
        ("stable-diffusion-1.5-unet", {"sample": {"height": 512}}),
        ("dit-xl-2", {"recomputation": {"strategy": "full"}}),
        ("t5-base", {"sequence_length": 300}),
        ("cogvideox-2b", {"sample": {"height": 240, "frames": 9}, "attention": "standard"}),
        ("clip-vit-large-patch14", {"precision": "fp32", "optimizer": "lamb"}),
    ],
)
def test_the_largest_micro_batch_of_samples_fits_and_no_larger_one(snapshot, name, workload):
    workload = {**KEPT, **workload}
    most = ask(snapshot, "memory", published(name, **workload))["limits"]["max_micro_batch_size"]
    fits = [
        ask(snapshot, "memory", published(name, **{**workload, "micro_batch_size": size}))["fits"]
        for size in (most, most + 1)
    ]
    assert most > 1
    assert fits == [True, False]


@pytest.mark.parametrize("name", ["t5-base", "bart-large", "whisper-small", "deberta-v3-base"])
def test_the_longest_sequence_of_an_encoder_decoder_fits_and_no_longer_one(snapshot, name):
    most = ask(snapshot, "memory", published(name, **KEPT))["limits"]["max_sequence_length"]
    fits = [
        ask(snapshot, "memory", published(name, **KEPT, sequence_length=length))["fits"]
        for length in (most, most + 1)
    ]
    assert fits == [True, False]


@pytest.mark.parametrize(
    ("name", "sample"),
    [
        ("vit-base-patch16-224", {}),
        ("stable-diffusion-vae", {"sample": {"height": 1024}}),
        ("wan-2.1-1.3b", {"sample": PICTURES["wan-2.1-1.3b"]}),
        ("dlrm-criteo-1tb", {}),
    ],
)
def test_the_most_requests_of_a_forward_pass_fit_and_no_more(snapshot, name, sample):
    most = ask(snapshot, "memory", published(name, kind="inference", **sample))["limits"]["max_concurrency"]
    fits = []
    for concurrency in (min(most, 65_536), most + 1):
        asked = published(name, kind="inference", concurrency=min(concurrency, 65_536), **sample)
        fits.append(ask(snapshot, "memory", asked)["fits"])
    assert fits == [True, most >= 65_536]


def test_the_decoder_of_pictures_takes_more_than_the_network_that_denoises(snapshot):
    """Latent diffusion at 1024 pixels: the autoencoder works on pixels (Rombach et al. 2022)."""
    sample = {"sample": {"height": 1024}}
    held = [
        components(ask(snapshot, "memory", published(name, kind="inference", **sample)))["workspace"]
        for name in ("stable-diffusion-vae", "stable-diffusion-1.5-unet")
    ]
    assert held[0] > held[1]


def test_cross_attention_caches_what_an_encoder_heard(snapshot):
    """Whisper small: 12 layers of 12 heads of 64, over 1,500 positions and the tokens of the answer."""
    answer = ask(
        snapshot, "memory", published("whisper-small", kind="inference", input_tokens=4, output_tokens=200)
    )
    assert components(answer)["kv_cache"] == 12 * 2 * 12 * 64 * 2 * (208 + 1500)


def test_a_head_that_only_the_class_ties_is_told(snapshot):
    answer = ask(snapshot, "memory", published("flan-t5-base"))
    assert answer["parameter_count"] == 222_903_552
    told = [note["detail"] for note in answer["warnings"] if note["code"] == "HEAD_TIED_BY_CLASS"]
    assert len(told) == 1
    assert "24674304" in told[0]
    assert "HEAD_TIED_BY_CLASS" not in codes(ask(snapshot, "memory", published("t5-base"))["warnings"])


def test_a_sample_is_checked(snapshot):
    wrong = published("resnet-50", sample={"channels": 4})
    assert refusal(snapshot, "memory", wrong) == ("SAMPLE_CHANNELS", "/workload/sample/channels")
    small = published("vit-base-patch16-224", sample={"height": 8})
    assert refusal(snapshot, "memory", small) == ("SAMPLE_TOO_SMALL", "/workload/sample/height")
    crowded = published("llava-1.5-7b", sequence_length=512)
    assert "SEQUENCE_TOO_SHORT" in codes(ask(snapshot, "memory", crowded)["warnings"])
    plain = ask(snapshot, "memory", question("llama-2-7b", "h100-sxm", sample={"height": 8}))
    assert "NOT_USED" in codes(plain["warnings"])


@pytest.mark.parametrize(("model", "heads"), [("llama-3.1-70b", 8), ("qwen3-30b-a3b", 4), ("deepseek-r1", 1)])
@pytest.mark.parametrize("tensor", [1, 2, 4, 8, 16])
def test_bytes_of_a_token_on_a_device_are_the_models_over_its_layout(model, heads, tensor):
    """A group divides the heads, and repeats what is fewer than its devices; stages divide the layers."""
    asked = served(model, "h200-sxm", 16)
    cache = ask(shipped(), "memory", {**asked, "parallelism": {"tensor": tensor}})["kv_cache"]
    assert cache["bytes_per_token"] * min(tensor, heads) == pytest.approx(cache["model_bytes_per_token"])
    staged = {**asked, "parallelism": {"tensor": min(tensor, 8), "pipeline": 2}}
    if model == "llama-3.1-70b":
        cache = ask(shipped(), "memory", staged)["kv_cache"]
        whole = cache["bytes_per_token"] * min(tensor, 8) * 2
        assert whole == pytest.approx(cache["model_bytes_per_token"])


def test_tables_of_a_recommender_are_not_gathered(snapshot):
    """Naumov et al. 2019, section 3.2: features of samples are sent, rows of tables are not.

    24.03e9 parameters of 16 bytes are 385 GB, 48 GB on each of 8 devices.
    """
    asked = question("dlrm-criteo-1tb", "h100-sxm", 8, micro_batch_size=8192)
    answer = ask(snapshot, "memory", {**asked, "parallelism": {"data": 8, "sharding": "zero_3"}})
    parts = {part["name"]: part["bytes"] for part in answer["per_device"]["components"]}
    assert answer["fits"]
    assert parts.get("gathered_weights", 0) < 1e9
