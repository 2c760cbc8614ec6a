"""From questions to planning values: defaults, choices, and refusals that name the field."""

import json

import pytest

from service.planning.memory.training import estimate_training_memory
from service.planning.notes import AnswerNotes
from service.planning.precision import NumberFormat, TrainingPrecision
from service.resolve import resolve_memory
from service.resolve.hardware import resolve_cluster
from service.schemas.estimates import MemoryEstimateRequest
from tests.asking import ask, codes, question, refusal


def resolved(snapshot, body):
    asked = MemoryEstimateRequest.model_validate_json(json.dumps(body))
    notes = AnswerNotes()
    return resolve_memory(asked, snapshot, notes)


def with_layout(body, **parallelism):
    return {**body, "parallelism": parallelism}


class TestPrecision:
    @pytest.mark.parametrize(
        ("accelerator", "expected"),
        [("h100-sxm", TrainingPrecision.BF16), ("v100-sxm2-32gb", TrainingPrecision.FP16)],
    )
    def test_defaults_to_the_narrowest_training_format_of_the_accelerator(
        self, snapshot, accelerator, expected
    ):
        workload = resolved(snapshot, question("gpt2", accelerator)).workload
        assert workload.recipe.compute is NumberFormat(expected.value)

    def test_a_format_that_the_accelerator_lacks_is_refused(self, snapshot):
        asked = question("gpt2", "v100-sxm2-32gb", precision="bf16")
        assert refusal(snapshot, "throughput", asked) == ("PEAK_RATE_UNKNOWN", "/workload/precision")
        served = {**asked, "workload": {"kind": "inference", "weight_precision": "fp4"}}
        assert "fits" in ask(snapshot, "memory", served)

    def test_weights_narrower_than_any_rate_are_multiplied_in_the_next_wider_one(self, snapshot):
        """An H100 has no FP4 rate: FP4 weights are widened (weight-only quantization)."""
        served = {"kind": "inference", "weight_precision": "fp4"}
        answer = ask(snapshot, "throughput", {**question("gpt2", "h100-sxm"), "workload": served})
        assert answer["peak_flops_per_second_per_device"] in (989e12, 1979e12)


class TestLayout:
    BODY = question("llama-2-7b", "h100-sxm", 16)

    def test_data_parallelism_is_what_remains(self, snapshot):
        layout = resolved(snapshot, with_layout(self.BODY, tensor=4, pipeline=2)).layout
        assert (layout.tensor, layout.pipeline, layout.data) == (4, 2, 2)

    @pytest.mark.parametrize(
        ("given", "field"),
        [
            ({"tensor": 3}, ""),
            ({"tensor": 4, "data": 5}, ""),
            ({"data": 17}, ""),
            ({"tensor": 32}, ""),
        ],
    )
    def test_a_product_that_does_not_match_says_so(self, snapshot, given, field):
        code, pointer = refusal(snapshot, "memory", with_layout(self.BODY, **given))
        assert code == "PARALLELISM_MISMATCH"
        assert pointer.startswith(f"/parallelism{field}")

    def test_the_detail_names_the_product(self, snapshot):
        with pytest.raises(Exception, match="16") as caught:
            ask(snapshot, "memory", with_layout(self.BODY, tensor=4, data=5))
        assert "20" in caught.value.detail

    @pytest.mark.parametrize(
        ("model", "given", "pointer"),
        [
            ("llama-2-7b", {"pipeline": 64}, "/parallelism/pipeline"),
            ("llama-2-7b", {"expert": 2}, "/parallelism/expert"),
            ("mixtral-8x7b", {"expert": 3, "data": 192}, "/parallelism/expert"),
            ("qwen2.5-7b", {"tensor": 64}, "/parallelism/tensor"),
        ],
    )
    def test_degrees_that_the_shapes_do_not_allow(self, snapshot, model, given, pointer):
        body = with_layout(question(model, "h100-sxm", 192), **given)
        assert refusal(snapshot, "memory", body) == ("PARALLELISM_MISMATCH", pointer)

    def test_a_chosen_layout_is_stated_and_can_be_given_back(self, snapshot):
        body = question("llama-2-70b", "h100-sxm", 64)
        answer = ask(snapshot, "memory", body)
        layout = dict(answer["parallelism"])
        assert layout.pop("chosen") is True
        again = ask(snapshot, "memory", with_layout(body, **layout))
        assert again["per_device"] == answer["per_device"]
        assert again["parallelism"]["chosen"] is False

    def test_without_a_cluster_the_layout_is_its_own_cluster(self, snapshot):
        body = {"model": {"source": "catalog", "id": "llama-2-7b"}, "workload": {"kind": "training"}}
        whole = ask(snapshot, "memory", body)
        halved = ask(snapshot, "memory", with_layout(body, tensor=2))
        assert halved["per_device"]["known_bytes"] < whole["per_device"]["known_bytes"]


class TestBatch:
    BODY = question("llama-2-7b", "h100-sxm", 8)

    def batch(self, snapshot, **workload):
        body = with_layout(question("llama-2-7b", "h100-sxm", 8, **workload), data=8)
        return resolved(snapshot, body).workload.micro_batches

    def test_accumulation_follows_from_the_global_batch(self, snapshot):
        assert self.batch(snapshot, micro_batch_size=1) == 1
        assert self.batch(snapshot, gradient_accumulation_steps=4) == 4
        assert self.batch(snapshot, global_batch_size=64) == 8
        assert self.batch(snapshot, global_batch_size=64, micro_batch_size=2) == 4
        assert self.batch(snapshot, global_batch_size=64, gradient_accumulation_steps=8) == 8

    @pytest.mark.parametrize(
        "workload",
        [
            {"global_batch_size": 65},
            {"global_batch_size": 4},
            {"global_batch_size": 64, "gradient_accumulation_steps": 4},
            {"global_batch_size": 64, "micro_batch_size": 3},
        ],
    )
    def test_a_batch_that_does_not_divide_is_refused(self, snapshot, workload):
        body = with_layout(question("llama-2-7b", "h100-sxm", 8, **workload), data=8)
        assert refusal(snapshot, "memory", body) == ("BATCH_MISMATCH", "/workload/global_batch_size")

    def test_a_chosen_layout_divides_the_batch(self, snapshot):
        answer = ask(snapshot, "throughput", question("llama-2-7b", "h100-sxm", 12, global_batch_size=6))
        assert 6 % answer["parallelism"]["data"] == 0


class TestLength:
    @pytest.mark.parametrize(
        ("total", "tokens"),
        [
            ({"total_tokens": 10**9}, 10**9),
            ({"total_steps": 100}, 100 * 64 * 2048),
            ({"total_samples": 1000}, 1000 * 2048),
        ],
    )
    def test_each_total_gives_the_tokens(self, snapshot, total, tokens):
        body = question("gpt2", "h100-sxm", 8, sequence_length=2048, global_batch_size=64, **total)
        assert resolved(snapshot, body).total_tokens == tokens

    def test_two_totals_are_refused(self, snapshot):
        body = question("gpt2", "h100-sxm", 1, total_tokens=1, total_samples=1)
        assert refusal(snapshot, "memory", body) == ("TOTAL_CONFLICT", "/workload/total_samples")

    @pytest.mark.parametrize("horizon", [{}, {"duration_seconds": 1.0, "total_requests": 1}])
    def test_a_horizon_has_one_end(self, snapshot, horizon):
        body = {**question("gpt2", "h100-sxm"), "workload": {"kind": "inference", "horizon": horizon}}
        assert refusal(snapshot, "throughput", body) == ("HORIZON", "/workload/horizon")

    def test_a_sequence_beyond_the_context_is_answered_with_a_warning(self, snapshot):
        body = question("gpt2", "h100-sxm", sequence_length=4096)
        assert "CONTEXT_EXCEEDED" in codes(ask(snapshot, "memory", body)["warnings"])
        fine = question("gpt2", "h100-sxm", sequence_length=1024)
        assert ask(snapshot, "memory", fine)["warnings"] == []


class TestServing:
    def served(self, snapshot, model="llama-3.1-8b", **workload):
        body = {**question(model, "h100-sxm"), "workload": {"kind": "inference", **workload}}
        return resolved(snapshot, body).workload

    def test_fixed_lengths_by_number_or_by_distribution(self, snapshot):
        by_number = self.served(snapshot, input_tokens=500)
        fixed = {"distribution": "fixed", "tokens": 500}
        assert self.served(snapshot, input_tokens=fixed) == by_number

    def test_settings_of_the_engine(self, snapshot):
        engine = {"name": "vllm", "block_tokens": 32, "max_num_seqs": 64, "max_batched_tokens": 2048}
        workload = self.served(snapshot, engine=engine)
        assert (workload.block_tokens, workload.most_requests, workload.batched_tokens) == (32, 64, 2048)

    def test_an_encoder_generates_nothing(self, snapshot):
        body = {**question("bert-base", "h100-sxm"), "workload": {"kind": "inference", "input_tokens": 128}}
        answer = ask(snapshot, "throughput", body)
        assert "NO_TOKENS_GENERATED" in codes(answer["warnings"])
        assert "output_tokens_per_second" not in answer
        assert answer["requests_per_second"]["value"] > 0


class TestReferences:
    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            ({"model": {"source": "catalog", "id": "nothing"}}, "/model/id"),
            (
                {"cluster": {"accelerator": {"source": "catalog", "id": "nothing"}}},
                "/cluster/accelerator/id",
            ),
            (
                {
                    "cluster": {
                        "accelerator": {"source": "catalog", "id": "h100-sxm"},
                        "inter_node_link": {"source": "catalog", "id": "nothing"},
                    }
                },
                "/cluster/inter_node_link/id",
            ),
        ],
    )
    def test_an_unknown_name_is_refused(self, snapshot, change, pointer):
        asked = {**question("gpt2", "h100-sxm"), **change}
        assert refusal(snapshot, "throughput", asked) == ("UNKNOWN_REFERENCE", pointer)

    def test_an_alias_is_as_good_as_an_id(self, snapshot):
        by_id = ask(snapshot, "memory", question("llama-3.1-8b", "h100-sxm"))
        by_alias = ask(snapshot, "memory", question("meta-llama/Llama-3.1-8B", "h100-sxm"))
        assert by_alias["per_device"] == by_id["per_device"]

    def test_a_configuration_and_an_architecture_answer_alike(self, snapshot):
        config = {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "vocab_size": 32000,
            "max_position_embeddings": 4096,
        }
        by_config = question({"source": "huggingface_config", "config": config}, "h100-sxm", 8)
        by_id = question("llama-2-7b", "h100-sxm", 8)
        assert (
            ask(snapshot, "memory", by_config)["per_device"] == ask(snapshot, "memory", by_id)["per_device"]
        )

    @pytest.mark.parametrize(
        ("config", "pointer"),
        [
            ({"model_type": "martian"}, "/model/config/model_type"),
            ({"hidden_size": 1}, "/model/config/model_type"),
            ({"model_type": "llama", "hidden_size": "big"}, "/model/config/hidden_size"),
            (
                {"model_type": "llama", "hidden_size": 100, "num_attention_heads": 3},
                "/model/config/num_attention_heads",
            ),
        ],
    )
    def test_a_configuration_at_fault_names_its_member(self, snapshot, config, pointer):
        asked = question({"source": "huggingface_config", "config": config}, "h100-sxm")
        assert refusal(snapshot, "memory", asked)[1] == pointer

    def test_defaults_of_a_configuration_are_said(self, snapshot):
        asked = question({"source": "huggingface_config", "config": {"model_type": "gpt2"}}, "h100-sxm")
        answer = ask(snapshot, "memory", asked)
        assert "CONFIG_DEFAULT_USED" in codes(answer["warnings"])
        assert answer["parameter_count"] == 124_439_808

    def test_parts_of_a_configuration_that_are_not_read_are_said(self, snapshot):
        config = {"model_type": "qwen2_5_omni", "thinker_config": {}, "talker_config": {}}
        asked = question({"source": "huggingface_config", "config": config}, "h100-sxm")
        told = {note["code"]: note["detail"] for note in ask(snapshot, "memory", asked)["warnings"]}
        assert "Thinker" in told["MODEL_PART_LEFT_OUT"]
        assert "talker_config" in told["MODEL_PART_LEFT_OUT"]

    def test_an_accelerator_by_its_figures(self, snapshot):
        known = snapshot.accelerators["h100-sxm"].accelerator
        specification = {
            "memory_bytes": int(known.capacity_bytes.value),
            "memory_bandwidth_bytes_per_second": known.bandwidth_bytes_per_second,
            "peak_flops_per_second": {"bf16": 989e12},
            "power_limit_watts": 700.0,
        }
        asked = question("llama-2-7b", "h100-sxm")
        given = {"source": "specification", "specification": specification}
        own = {**asked, "cluster": {"accelerator": given}}
        by_id, by_figures = ask(snapshot, "memory", asked), ask(snapshot, "memory", own)
        assert by_figures["per_device"] == by_id["per_device"]
        assert by_figures["usable_bytes"] == by_id["usable_bytes"]

    def test_links_are_used_by_the_time_of_training_and_said_to_be_unused_by_memory(self, snapshot):
        asked = question("gpt2", "h100-sxm", 8)
        asked["cluster"]["intra_node_link"] = {"source": "catalog", "id": "pcie-3-x16"}
        assert "NOT_USED" in codes(ask(snapshot, "memory", asked)["warnings"])
        slow = ask(snapshot, "throughput", asked)
        del asked["cluster"]["intra_node_link"]
        fast = ask(snapshot, "throughput", asked)
        assert "NOT_USED" not in codes(slow["warnings"])
        assert slow["tokens_per_second"]["value"] < fast["tokens_per_second"]["value"]

    def test_links_of_a_bare_count_are_said_to_be_unused(self, snapshot):
        asked = question("gpt2", "h100-sxm", 8)
        asked["model"] = {"source": "parameter_count", "parameter_count": 7_000_000_000}
        asked["cluster"]["intra_node_link"] = {"source": "catalog", "id": "pcie-3-x16"}
        assert "NOT_USED" in codes(ask(snapshot, "throughput", asked)["warnings"])


def test_nodes_follow_the_reference_server(snapshot):
    def nodes(accelerator, count, **cluster):
        asked = question("gpt2", accelerator, count)
        asked["cluster"] |= cluster
        body = MemoryEstimateRequest.model_validate_json(json.dumps(asked))
        return resolve_cluster(body.cluster, snapshot, AnswerNotes()).node_count

    assert nodes("h100-sxm", 1000) == 125
    assert nodes("h100-sxm", 9) == 2
    assert nodes("l4", 4) == 1
    assert nodes("l4", 4, accelerators_per_node=1) == 4
    assert nodes("h100-sxm", 4, accelerators_per_node=16) == 1


def test_training_defaults(snapshot):
    """Left out are: AdamW, mixed BF16, flash attention, nothing recomputed, 4096 tokens, 2^19 a step."""
    found = resolved(snapshot, question("gpt2", "h100-sxm"))
    workload = found.workload
    assert workload.sequence_length * workload.micro_batch_size * workload.micro_batches == 2**19
    assert workload.sequence_length == 4096
    assert (workload.optimizer.value, workload.kernel.value) == ("adamw", "flash")
    assert workload.recomputation.value == "none"
    stage = estimate_training_memory(found.profile, workload, found.layout)[0]
    # 2 weights + 2 gradients + 4 master weights + 8 Adam states, bytes per parameter
    per_parameter = (
        stage.state.weights
        + stage.state.gradients
        + stage.state.master_weights
        + stage.state.optimizer_states
    ) / found.profile.parameter_count
    assert per_parameter == pytest.approx(16.0)
