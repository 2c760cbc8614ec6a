"""Layouts of services whose devices the heads or the experts of a model do not divide over."""

import json

import pytest

from service.planning.models.padding import ModelPadding, choose_padding, pad_profile
from service.planning.notes import AnswerNotes
from service.planning.parallelism import Parallelism
from service.resolve import resolve_run
from service.schemas.estimates import ThroughputEstimateRequest
from tests.asking import ask, codes, question, refusal, shipped

_LOAD = {"kind": "inference", "input_tokens": 2000, "output_tokens": 200, "concurrency": 960}


def _serve(model, accelerator, count, **members):
    return {**question(model, accelerator, count, **_LOAD), **members}


def _weights(answer):
    return next(part["bytes"] for part in answer["per_device"]["components"] if part["name"] == "weights")


def _details(answer, code):
    return [note["detail"] for note in answer["warnings"] if note["code"] == code]


@pytest.mark.parametrize(("devices", "held", "added"), [(72, 4, 32), (96, 3, 32), (320, 1, 64)])
def test_redundant_experts_fill_the_devices_of_a_replica(devices, held, added):
    # 96 H100 of LMSYS decode DeepSeek-V3 with 72 ranks of 4 experts: 256 and 32 redundant ones (2025-05-05).
    asked = _serve("deepseek-v3", "h200-sxm", devices, parallelism={"data": devices, "expert": devices})
    answer = ask(shipped(), "memory", asked)
    (detail,) = _details(answer, "REDUNDANT_EXPERTS")
    assert f"{added} redundant experts beside the 256" in detail
    assert f"make {held} on each" in detail
    assert answer["parameter_count"] == 671_026_404_352
    whole = ask(
        shipped(), "memory", _serve("deepseek-v3", "h200-sxm", 64, parallelism={"data": 64, "expert": 64})
    )
    # Experts are 3 x 7168 x 2048 values in 58 layers; in FP8 a byte each, and a scale in 4 bytes a tile.
    each = 3 * 7168 * 2048 * 58 * (1 + 4 / 128**2)
    assert _weights(whole) - _weights(answer) == pytest.approx((4 - held) * each, rel=1e-4)


def test_redundant_experts_cost_what_further_experts_of_the_model_would():
    described = shipped().models["deepseek-v3"].architecture
    grown = json.loads(json.dumps(described).replace('"expert_count": 256', '"expert_count": 288'))
    assert grown != described
    load = {"weight_precision": "bf16", "kv_cache_precision": "bf16"}
    found = []
    for architecture in (described, grown):
        model = {"source": "architecture", "architecture": architecture}
        asked = _serve(model, "h200-sxm", 48, parallelism={"data": 48, "expert": 48})
        asked["workload"].update(load)
        found.append(ask(shipped(), "throughput", asked))
    padded, larger = found
    assert "REDUNDANT_EXPERTS" in codes(padded["warnings"])
    assert "REDUNDANT_EXPERTS" not in codes(larger["warnings"])
    for name in ("time_to_first_token_seconds", "time_per_output_token_seconds", "output_tokens_per_second"):
        # The router of the other one has 288 columns.
        assert padded[name]["value"] == pytest.approx(larger[name]["value"], rel=1e-3)


def test_training_refuses_experts_that_do_not_divide():
    asked = question("deepseek-v3", "h200-sxm", 96, sequence_length=4096, micro_batch_size=1)
    asked["parallelism"] = {"data": 96, "expert": 96}
    assert refusal(shipped(), "memory", asked) == ("PARALLELISM_MISMATCH", "/parallelism/expert")


def test_more_than_two_copies_of_every_expert_are_refused():
    asked = _serve("mixtral-8x7b", "h200-sxm", 24, parallelism={"data": 24, "expert": 24})
    assert refusal(shipped(), "memory", asked) == ("PARALLELISM_MISMATCH", "/parallelism/expert")
    asked = _serve("mixtral-8x7b", "h200-sxm", 16, parallelism={"data": 16, "expert": 16})
    assert _details(ask(shipped(), "memory", asked), "REDUNDANT_EXPERTS")


def test_pools_of_a_disaggregated_service_have_redundant_experts_of_their_own():
    pools = {
        "prefill": {"parallelism": {"expert": 24}, "replicas": 1},
        "decode": {"parallelism": {"expert": 72}, "replicas": 1},
    }
    asked = question("deepseek-v3", "h200-sxm", 96, **_LOAD, disaggregated=pools)
    for operation in ("memory", "throughput"):
        found = [
            note
            for note in ask(shipped(), operation, asked)["warnings"]
            if note["code"] == "REDUNDANT_EXPERTS"
        ]
        assert [note["pointer"] for note in found] == [
            "/workload/disaggregated/prefill/parallelism/expert",
            "/workload/disaggregated/decode/parallelism/expert",
        ]
        assert ["make 11 on" in found[0]["detail"], "make 4 on" in found[1]["detail"]] == [True, True]


@pytest.mark.parametrize(
    ("model", "device", "tensor", "query", "stored"),
    [
        # Llama 2 70B on the 24 cores of inf2.48xlarge: 64 heads become 72, 8 key-value heads one a core.
        ("llama-2-70b", "inferentia2", 12, 72, 24),
        # 40 of 40 heads on 24 cores: both are rounded up.
        ("llama-2-13b", "inferentia2", 12, 48, 48),
        # 8 key-value heads on 32 cores: one a core, though 32 query heads divide.
        ("llama-3.1-8b", "trainium1", 16, 32, 32),
        # 28 heads of 4 on 4 x 4 cores: 32, and 16.
        ("qwen2.5-7b", "trainium2", 4, 32, 16),
        # 8 key-value heads do not divide 12 cores: as many as query heads.
        ("llama-3.1-8b", "inferentia2", 6, 36, 36),
    ],
)
def test_neuron_pads_heads_to_its_cores(model, device, tensor, query, stored):
    profile = shipped().models[model].profile
    generation = shipped().accelerators[device].accelerator.generation
    padded = pad_profile(profile, choose_padding(Parallelism(tensor=tensor), generation))
    assert {(work.query_heads, work.key_value_heads) for work in padded.attention} == {(query, stored)}
    assert padded.parameter_count == profile.parameter_count
    assert pad_profile(padded, ModelPadding()).attention == profile.attention


def test_neuron_holds_a_key_value_head_on_every_core():
    asked = _serve("llama-3-70b", "inferentia2", 12, parallelism={"tensor": 12})
    answer = ask(shipped(), "memory", asked)
    (detail,) = _details(answer, "HEADS_PADDED")
    assert detail.startswith("24 NeuronCores hold 72 attention heads and 24 key-value heads")
    # Two of 24 heads a device, of 128 values in 80 layers, key and value in two bytes; 32 GB a device.
    assert answer["limits"]["kv_cache_tokens"] < 12 * 34.4e9 / (2 * 2 * 128 * 80 * 2)


def test_other_devices_refuse_ranks_that_do_not_divide_the_heads():
    asked = _serve("llama-3-70b", "h100-sxm", 12, parallelism={"tensor": 12})
    assert refusal(shipped(), "memory", asked) == ("PARALLELISM_MISMATCH", "/parallelism/tensor")


def test_an_open_layout_on_neuron_is_answered_as_the_stated_one():
    left_open = ask(shipped(), "memory", _serve("qwen3-30b-a3b", "trainium1", 16))
    chosen = {name: left_open["parallelism"][name] for name in ("tensor", "pipeline", "data")}
    assert 2 * chosen["tensor"] > 4  # cores and key-value heads
    stated = ask(shipped(), "memory", _serve("qwen3-30b-a3b", "trainium1", 16, parallelism=chosen))
    assert stated["per_device"] == left_open["per_device"]


def test_a_pool_on_neuron_pads_heads_and_the_other_one_does_not():
    pools = {
        "prefill": {
            "parallelism": {"tensor": 4},
            "replicas": 1,
            "accelerator": {"source": "catalog", "id": "trainium2"},
        },
        "decode": {"parallelism": {"tensor": 4}, "replicas": 1},
    }
    asked = question("llama-3.1-8b", "h100-sxm", 8, **_LOAD, disaggregated=pools)
    request = ThroughputEstimateRequest.model_validate_json(json.dumps(asked))
    found = resolve_run(request, shipped(), AnswerNotes()).disaggregation
    heads = [
        {work.key_value_heads for work in pool.profile.attention} for pool in (found.prefill, found.decode)
    ]
    assert heads == [{16}, {8}]
