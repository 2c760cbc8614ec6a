"""Hints hold what the estimate's question holds, member by member."""

import json

from service.planning.notes import AnswerNotes
from service.plans.hints import DESCRIBED, SETTINGS, _list_workload_settings, build_launch_hints
from service.resolve.model import resolve_model
from service.schemas.estimates import ThroughputEstimateRequest
from service.schemas.workloads import InferenceWorkloadInput, TrainingWorkloadInput
from tests.asking import shipped

LLAMA = {
    "model": {"source": "catalog", "id": "llama-2-70b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 64},
    "parallelism": {
        "tensor": 8,
        "pipeline": 4,
        "data": 2,
        "sequence_parallel": True,
        "sharding": "zero_1",
        "pipeline_schedule": "interleaved",
        "virtual_stages": 2,
    },
    "workload": {
        "kind": "training",
        "sequence_length": 4096,
        "micro_batch_size": 2,
        "global_batch_size": 256,
        "precision": "fp8_delayed",
        "total_tokens": 1_048_576_000,
        "recomputation": {"strategy": "selective"},
    },
}
MIXTRAL = {
    "model": {"source": "catalog", "id": "mixtral-8x7b"},
    "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}, "accelerator_count": 8},
    "parallelism": {"tensor": 2, "data": 4, "expert": 4, "expert_tensor": 1},
    "workload": {
        "kind": "inference",
        "weight_precision": "bf16",
        "kv_cache_precision": "fp8",
        "memory_fraction": 0.85,
        "engine": {"name": "vllm", "max_num_seqs": 256, "max_batched_tokens": 8192, "cuda_graphs": False},
        "prefix_cache_hit_rate": 0.3,
        "request_rate_per_second": 4,
    },
}


def _hints(question):
    asked = ThroughputEstimateRequest.model_validate_json(json.dumps(question))
    catalog = shipped()
    row = {"requests": {"throughput": asked}}
    return {
        hint["tool"]: hint
        for hint in build_launch_hints(row, resolve_model(asked.model, catalog, AnswerNotes()), catalog)
    }


def _missing(hint):
    return {gap["pointer"].removeprefix("/rows/0/requests/throughput") for gap in hint["missing"]}


def test_a_member_of_a_workload_is_told_or_described():
    members = {*TrainingWorkloadInput.model_fields, *InferenceWorkloadInput.model_fields}
    assert members >= SETTINGS | DESCRIBED
    assert not SETTINGS & DESCRIBED


def test_a_member_that_no_program_knows_is_named_where_it_is_no_default():
    workload = {**LLAMA["workload"], "adaptation": {"kind": "full"}, "weight_average": False}
    assert _missing(_hints({**LLAMA, "workload": workload})["megatron_lm"]) == set()
    hint = _hints({**LLAMA, "workload": {**workload, "weight_average": True}})["megatron_lm"]
    assert _missing(hint) == {"/workload/weight_average"}
    [missing] = hint["missing"]
    assert (missing["code"], missing["detail"]) == ("NO_SETTING", "the tool has no setting for it")


def test_a_member_that_comes_later_is_named():
    class Later(InferenceWorkloadInput):
        share_of_later: float = 0.0

    settings = dict(_list_workload_settings(Later(kind="inference", share_of_later=0.5)))
    assert settings["/workload/share_of_later"] is True
    assert "/workload/share_of_later" not in dict(_list_workload_settings(Later(kind="inference")))


def test_training_hints():
    hints = _hints(LLAMA)
    assert set(hints) == {"torchrun", "megatron_lm", "deepspeed", "torchtitan"}
    assert hints["torchrun"]["arguments"] == ["--nnodes", "8", "--nproc-per-node", "8"]
    assert hints["torchrun"]["missing"] == []
    line = " ".join(hints["megatron_lm"]["arguments"])
    for part in (
        "--tensor-model-parallel-size 8",
        "--pipeline-model-parallel-size 4",
        "--num-virtual-stages-per-pipeline-rank 2",
        "--sequence-parallel",
        "--use-distributed-optimizer",
        "--micro-batch-size 2",
        "--global-batch-size 256",
        "--bf16 --fp8-format hybrid --fp8-recipe delayed",
        "--recompute-granularity selective",
        # 1,048,576,000 tokens of 4,096 x 256 tokens a step.
        "--train-iters 1000",
        "--optimizer adam",
    ):
        assert part in line
    assert hints["megatron_lm"]["missing"] == []


def test_what_a_program_cannot_be_told_is_missing():
    hints = _hints(LLAMA)
    assert _missing(hints["torchtitan"]) == {"/parallelism/sharding", "/workload/precision"}
    assert hints["torchtitan"]["configuration"]["activation_checkpoint"] == {
        "mode": "selective",
        "selective_ac_option": "op",
    }
    assert _missing(hints["deepspeed"]) == {
        "/parallelism/pipeline",
        "/parallelism/pipeline_schedule",
        "/parallelism/virtual_stages",
        "/parallelism/sequence_parallel",
        "/workload/precision",
        "/workload/recomputation/strategy",
        "/workload/sequence_length",
        "/workload/total_tokens",
    }
    assert hints["deepspeed"]["configuration"]["train_batch_size"] == 256
    assert hints["deepspeed"]["configuration"]["gradient_accumulation_steps"] == 64


def test_another_framework_and_an_adaptation_are_named():
    workload = {
        **LLAMA["workload"],
        "framework": {"name": "torchtitan"},
        "adaptation": {"kind": "lora", "rank": 8},
    }
    hints = _hints({**LLAMA, "workload": workload})
    assert _missing(hints["megatron_lm"]) == {"/workload/framework/name", "/workload/adaptation"}
    assert "/workload/framework/name" not in _missing(hints["torchtitan"])


def test_serving_hints():
    hints = _hints(MIXTRAL)
    assert set(hints) == {"vllm", "sglang"}
    line = " ".join(hints["vllm"]["arguments"])
    for part in (
        "--tensor-parallel-size 2",
        "--data-parallel-size 4 --enable-expert-parallel",
        "--dtype bfloat16",
        "--kv-cache-dtype fp8",
        "--gpu-memory-utilization 0.85",
        "--max-num-seqs 256",
        "--max-num-batched-tokens 8192",
        "--enforce-eager",
        "--enable-prefix-caching",
    ):
        assert part in line
    assert hints["vllm"]["missing"] == []
    # The figures hold for vLLM, whose limits are counted otherwise.
    assert _missing(hints["sglang"]) == {
        "/workload/engine/name",
        "/workload/engine/max_num_seqs",
        "/workload/engine/max_batched_tokens",
        "/workload/engine/block_tokens",
        "/workload/memory_fraction",
    }
    assert " ".join(hints["sglang"]["arguments"]) == (
        "--tp-size 8 --dp-size 4 --enable-dp-attention --ep-size 8 --pp-size 1 --dtype bfloat16 "
        "--kv-cache-dtype fp8_e4m3 --disable-cuda-graph"
    )


def test_an_open_engine_says_its_settings_to_itself_alone():
    question = {
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "cluster": {"accelerator": {"source": "catalog", "id": "h100-sxm"}},
        "workload": {"kind": "inference"},
    }
    hints = _hints(question)
    assert "--gpu-memory-utilization 0.92" in " ".join(hints["vllm"]["arguments"])
    assert hints["vllm"]["missing"] == []
    assert "--mem-fraction-static" not in hints["sglang"]["arguments"]
    assert "/rows/0/requests/throughput/workload/memory_fraction" in {
        gap["pointer"] for gap in hints["sglang"]["missing"]
    }


def test_what_the_engine_takes_by_itself_is_said():
    """Its defaults move with versions and devices: the figures hold for these."""
    workload = {"kind": "inference", "engine": {"name": "vllm"}}
    cluster = {"accelerator": {"source": "catalog", "id": "h100-sxm"}}
    question = {
        "model": {"source": "catalog", "id": "llama-3.1-8b"},
        "cluster": cluster,
        "workload": workload,
    }
    line = " ".join(_hints(question)["vllm"]["arguments"])
    assert (
        "--gpu-memory-utilization 0.92 --max-num-seqs 1024 --max-num-batched-tokens 8192 --block-size 16"
        in line
    )
