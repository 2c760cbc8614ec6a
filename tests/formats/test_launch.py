"""Launch settings: what published configurations say, and that what is written reads back the same."""

import json
import shlex
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.launch import (
    TABLE,
    TOOLS,
    build_sections,
    parse_keys,
    read_settings,
    render_arguments,
    render_toml,
    write_settings,
)
from service.planning.errors import PlanningError

SAMPLES = Path(__file__).parents[1] / "data" / "launch"


def _tool(name):
    return {"me": "megatron_lm", "to": "torchtitan", "ds": "deepspeed"}[name[:2]]


def _sample(name):
    return parse_keys(_tool(name), (SAMPLES / name).read_text())


def _codes(read):
    return {error.pointer: error.code for error in read.unread}


def test_gpt3_of_megatron():
    """Narayanan et al. 2021, table 1, third row from below: 175 billion parameters, tensor 8, pipeline 16."""
    read = read_settings(
        "megatron_lm", _sample("megatron-gpt3-175b-args.json"), {"/cluster/accelerator_count": 1024}
    )
    said = read.settings
    assert (said["/parallelism/tensor"], said["/parallelism/pipeline"], said["/parallelism/data"]) == (
        8,
        16,
        8,
    )
    assert said["/parallelism/sharding"] == "none"
    assert said["/parallelism/pipeline_schedule"] == "one_f_one_b"
    assert said["/workload/precision"] == "fp16"
    assert said["/workload/sequence_length"] == 2048
    assert said["/workload/micro_batch_size"] == 1
    assert said["/workload/recomputation/strategy"] == "none"
    assert said["/workload/total_steps"] == 500_000
    # The file gives 1536 as the last size of a schedule that starts at 16.
    assert _codes(read) == {"/workload/global_batch_size": "UNREADABLE"}
    assert "/workload/global_batch_size" not in said
    assert "hidden-size" in read.others


def test_llama3_of_megatron():
    """Its FP8 and its degrees are shell variables of the script: the arguments say bf16 and no more."""
    read = read_settings("megatron_lm", _sample("megatron-llama3-8b-h100-fp8-args.json"))
    said = read.settings
    assert said["/workload/precision"] == "bf16"
    assert said["/workload/gradient_precision"] == "bf16"
    assert said["/parallelism/sharding"] == "zero_1"
    assert said["/workload/total_samples"] == 1_953_125_000
    assert not read.unread
    assert not {"/parallelism/tensor", "/workload/micro_batch_size", "/workload/global_batch_size"} & set(
        said
    )


def test_mixtral_of_megatron():
    read = read_settings(
        "megatron_lm", _sample("megatron-mixtral-8x7b-args.json"), {"/cluster/accelerator_count": 64}
    )
    said = read.settings
    degrees = [said[f"/parallelism/{name}"] for name in ("tensor", "pipeline", "data", "expert")]
    assert degrees == [1, 4, 16, 8]
    assert said["/parallelism/sharding"] == "zero_1"
    # --sequence-parallel is given, but Megatron turns it off without tensor parallelism.
    assert said["/parallelism/sequence_parallel"] is False
    assert said["/workload/gradient_accumulation_steps"] == 256 // 16
    assert not read.unread


def test_llama3_of_torchtitan():
    """A preset for 64 A100: tensor 8, the remaining 8 devices hold one copy of the state."""
    read = read_settings(
        "torchtitan", _sample("torchtitan-llama3-70b.toml"), {"/cluster/accelerator_count": 64}
    )
    said = read.settings
    degrees = [said[f"/parallelism/{name}"] for name in ("tensor", "pipeline", "data", "context")]
    assert degrees == [8, 1, 8, 1]
    assert said["/parallelism/sharding"] == "zero_3"
    assert said["/parallelism/sequence_parallel"] is True
    assert said["/workload/micro_batch_size"] == 8
    assert said["/workload/global_batch_size"] == 64
    assert said["/workload/gradient_accumulation_steps"] == 1
    assert said["/workload/sequence_length"] == 8192
    assert said["/workload/recomputation/strategy"] == "full"
    assert said["/workload/precision"] == "bf16"
    assert said["/workload/fusion"] == "eager"
    assert said["/workload/total_steps"] == 1000
    assert not read.unread


def test_zero_stages_of_deepspeed():
    said = read_settings(
        "deepspeed", _sample("ds-zero3-bf16.json"), {"/cluster/accelerator_count": 8}
    ).settings
    assert said["/parallelism/sharding"] == "zero_3"
    assert said["/workload/precision"] == "bf16"
    assert said["/workload/optimizer"] == "adamw"
    assert said["/workload/micro_batch_size"] == 1
    assert said["/workload/global_batch_size"] == 8
    assert said["/workload/offload/optimizer"] == "none"


def test_what_deepspeed_leaves_open_is_not_made_up():
    read = read_settings("deepspeed", _sample("ds-zero3-offload-auto.json"))
    assert read.settings["/parallelism/sharding"] == "zero_3"
    assert read.settings["/workload/offload/optimizer"] == "cpu"
    assert read.settings["/workload/offload/parameters"] == "cpu"
    assert read.settings["/workload/precision"] == "fp16"
    assert _codes(read) == {"/workload/micro_batch_size": "UNREADABLE"}
    read = read_settings("deepspeed", _sample("ds-zero2.json"))
    assert read.settings["/parallelism/sharding"] == "zero_2"
    assert read.settings["/workload/offload/parameters"] == "none"
    assert _codes(read) == {
        "/workload/micro_batch_size": "UNREADABLE",
        "/workload/precision": "UNREADABLE",
    }


@pytest.mark.parametrize(
    "name",
    [
        "megatron-gpt3-175b-args.json",
        "megatron-llama3-8b-h100-fp8-args.json",
        "megatron-mixtral-8x7b-args.json",
        "torchtitan-llama3-70b.toml",
        "ds-zero2.json",
        "ds-zero3-bf16.json",
        "ds-zero3-offload-auto.json",
    ],
)
def test_a_sample_written_again_says_the_same_of_the_layout(name):
    tool = _tool(name)
    keys, known = _sample(name), {"/cluster/accelerator_count": 1024}
    read = read_settings(tool, keys, known)
    again = write_settings(tool, read.settings)
    assert not again.missing
    assert read.settings.items() <= read_settings(tool, again.keys, known).settings.items()
    # What is written is what the project wrote, but for what it leaves open and kernels that are alike.
    shared = {key for key in again.keys if key in keys and keys[key] not in (-1, "auto", "fused")}
    assert shared
    assert {key: keys[key] for key in shared} == {key: again.keys[key] for key in shared}


DEGREES = st.sampled_from([1, 2, 4, 8])


@st.composite
def trainings(draw):
    tensor, pipeline, context, data = (draw(DEGREES) for _ in range(4))
    schedule = draw(st.sampled_from(["one_f_one_b", "gpipe", "interleaved", "zero_bubble"]))
    spread = ["zero_1", "zero_2", "zero_3", "hybrid"] if data * context > 1 else []
    sharding = draw(st.sampled_from(["none", *spread]))
    strategy = draw(st.sampled_from(["none", "selective", "full", "every_k", "sqrt"]))
    micro, steps = draw(DEGREES), draw(st.integers(1, 64))
    settings = {
        "/cluster/accelerator_count": tensor * pipeline * context * data,
        "/cluster/accelerators_per_node": 8,
        "/model/blocks": draw(st.integers(8, 128)),
        "/parallelism/tensor": tensor,
        "/parallelism/pipeline": pipeline,
        "/parallelism/context": context,
        "/parallelism/data": data,
        "/parallelism/expert": draw(st.sampled_from([1, data])),
        "/parallelism/sequence_parallel": tensor > 1 and draw(st.booleans()),
        "/parallelism/sharding": sharding,
        "/parallelism/pipeline_schedule": schedule,
        "/parallelism/virtual_stages": draw(st.sampled_from([2, 4])) if schedule == "interleaved" else 1,
        "/workload/sequence_length": draw(st.sampled_from([2048, 8192])),
        "/workload/micro_batch_size": micro,
        "/workload/gradient_accumulation_steps": steps,
        "/workload/global_batch_size": micro * steps * data,
        "/workload/precision": draw(
            st.sampled_from(["fp32", "tf32", "fp16", "bf16", "pure_bf16", "fp8_delayed", "mxfp8", "nvfp4"])
        ),
        "/workload/optimizer": draw(st.sampled_from(["adamw", "sgd", "momentum", "lion", "muon"])),
        "/workload/recomputation/strategy": strategy,
        "/workload/offload/optimizer": draw(st.sampled_from(["none", "cpu", "nvme"])),
        "/workload/offload/parameters": draw(st.sampled_from(["none", "cpu"])),
        "/workload/total_steps": draw(st.integers(1, 10**6)),
    }
    if sharding == "hybrid":
        settings["/parallelism/data"] = data = 2 * data
        settings["/parallelism/sharding_group_size"] = data * context // 2
        settings["/cluster/accelerator_count"] *= 2
        settings["/workload/global_batch_size"] *= 2
    if strategy == "every_k":
        settings["/workload/recomputation/k"] = draw(st.sampled_from([2, 4]))
    return settings


@st.composite
def services(draw):
    tensor, data = draw(DEGREES), draw(DEGREES)
    has_experts = draw(st.booleans())
    expert = draw(st.sampled_from([1, data])) if has_experts else 1
    settings = {
        "/model/experts": has_experts,
        "/cluster/accelerators_per_node": 8,
        "/parallelism/tensor": tensor,
        "/parallelism/pipeline": 1,
        "/parallelism/data": data,
        "/parallelism/expert": expert,
        "/workload/weight_precision": draw(st.sampled_from(["bf16", "fp16", "fp8", "int4"])),
        "/workload/kv_cache_precision": draw(st.sampled_from(["bf16", "fp8", "int8"])),
        "/workload/memory_fraction": draw(st.sampled_from([0.8, 0.9])),
        "/workload/engine/max_num_seqs": draw(st.integers(1, 1024)),
        "/workload/engine/max_batched_tokens": draw(st.integers(1, 16384)),
        "/workload/engine/block_tokens": 16,
        "/workload/engine/max_model_len": 8192,
        "/workload/engine/cuda_graphs": draw(st.booleans()),
    }
    if has_experts:
        cuts = {
            cut for cut in (1, 2, tensor, tensor * expert) if (tensor * expert) % cut == 0 and cut != tensor
        }
        if cuts and draw(st.booleans()):
            settings["/parallelism/expert_tensor"] = draw(st.sampled_from(sorted(cuts)))
    return settings


DEGREE_NAMES = tuple(f"/parallelism/{name}" for name in ("tensor", "pipeline", "context"))
KNOWN = ("/cluster/accelerator_count", "/cluster/accelerators_per_node", "/model/experts", "/model/blocks")


def _stored(tool, keys):
    """Keys as the tool is given them."""
    match TABLE[tool].file_format:
        case "toml":
            return render_toml(build_sections(keys))
        case "json":
            return json.dumps(build_sections(keys))
        case _:
            return shlex.join(render_arguments(keys))


def _agrees(tool, settings):
    """Every setting is read back from what was written, or named as missing."""
    again = write_settings(tool, settings)
    known = {name: settings[name] for name in KNOWN if name in settings}
    missing = {error.pointer for error in again.missing}
    read = read_settings(tool, parse_keys(tool, _stored(tool, again.keys)), known).settings
    if missing & set(DEGREE_NAMES):
        missing.add("/parallelism/data")  # what remains of the devices
    for setting, value in settings.items():
        # A rule that cannot say one of its settings says none of them.
        together = next((rule.settings for rule in TABLE[tool].rules if setting in rule.settings), (setting,))
        if not missing & set(together) and setting in read:
            assert read[setting] == value, setting
        elif not missing & set(together):
            assert value in (1, False, "none", "one_f_one_b", True), setting
    return missing


@given(trainings(), st.sampled_from(["megatron_lm", "deepspeed", "torchtitan"]))
def test_training_settings_read_back_or_are_missing(settings, tool):
    single = settings["/parallelism/pipeline"] == 1
    if single:
        settings |= {"/parallelism/pipeline_schedule": "one_f_one_b", "/parallelism/virtual_stages": 1}
    _agrees(tool, settings)


@given(services(), st.sampled_from(["vllm", "sglang"]))
def test_serving_settings_read_back_or_are_missing(settings, tool):
    _agrees(tool, settings)


ODD = st.sampled_from([-1, 0, 1, 2, 3, 2.5, True, False, "auto", "none", "1F1B", "", [], ["mx"]])


@given(st.data(), st.sampled_from(TOOLS))
def test_whatever_a_file_holds_is_read_or_named(data, tool):
    names = sorted({key for rule in TABLE[tool].rules for key in rule.keys} | {"num-layers", "more"})
    keys = data.draw(st.dictionaries(st.sampled_from(names), ODD, max_size=8))
    read = read_settings(tool, keys, {"/cluster/accelerator_count": 16, "/model/blocks": 32})
    assert all(error.code == "UNREADABLE" and error.pointer.startswith("/") for error in read.unread)
    assert ("more" in read.others) == ("more" in keys)


def test_pairs_are_two_sequences():
    """Tokens of dpo count both of a pair, as estimates have them."""
    settings = {
        "/workload/objective": "dpo",
        "/workload/sequence_length": 1000,
        "/workload/global_batch_size": 10,
        "/workload/total_tokens": 1_000_000,
    }
    assert write_settings("megatron_lm", settings).keys["train-iters"] == 50


def test_torchrun():
    keys = write_settings(
        "torchrun", {"/cluster/accelerator_count": 1024, "/cluster/accelerators_per_node": 8}
    ).keys
    assert render_arguments(keys) == ["--nnodes", "128", "--nproc-per-node", "8"]
    assert read_settings("torchrun", parse_keys("torchrun", "--nnodes=2 --nproc_per_node=4")).settings == {
        "/cluster/accelerator_count": 8,
        "/cluster/accelerators_per_node": 4,
    }
    uneven = write_settings(
        "torchrun", {"/cluster/accelerator_count": 12, "/cluster/accelerators_per_node": 8}
    )
    assert [error.code for error in uneven.missing] == ["UNEVEN_NODES"]


def test_megatron_shards_the_state_in_groups():
    settings = {
        "/cluster/accelerator_count": 64,
        "/parallelism/tensor": 2,
        "/parallelism/data": 32,
        "/parallelism/sharding": "hybrid",
        "/parallelism/sharding_group_size": 8,
    }
    keys = write_settings("megatron_lm", settings).keys
    assert keys["data-parallel-sharding-strategy"] == "optim_grads_params"
    assert keys["num-distributed-optimizer-instances"] == 4
    assert (
        read_settings("megatron_lm", keys, {"/cluster/accelerator_count": 64}).settings[
            "/parallelism/sharding_group_size"
        ]
        == 8
    )


def test_megatron_counts_chunks_of_layers():
    line = "--num-layers 96 --pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 3"
    read = read_settings("megatron_lm", parse_keys("megatron_lm", line))
    assert read.settings["/parallelism/pipeline_schedule"] == "interleaved"
    assert read.settings["/parallelism/virtual_stages"] == 4


def test_megatron_overlaps_the_exchange_of_experts_on_interleaved_stages_alone():
    overlap, flag = "/parallelism/overlap_expert_communication", "overlap-moe-expert-parallel-comm"
    read = read_settings("megatron_lm", parse_keys("megatron_lm", f"--expert-model-parallel-size 8 --{flag}"))
    assert read.settings[overlap] is True
    settings = {"/parallelism/expert": 8, overlap: True}
    assert write_settings("megatron_lm", settings).keys[flag] is True
    staged = {**settings, "/parallelism/pipeline": 4}
    assert [error.pointer for error in write_settings("megatron_lm", staged).missing] == [overlap]
    interleaved = {
        **staged, "/parallelism/pipeline_schedule": "interleaved", "/parallelism/virtual_stages": 2
    }  # fmt: skip
    assert write_settings("megatron_lm", interleaved).keys[flag] is True


@pytest.mark.parametrize(
    ("tool", "text", "flag"),
    [
        (
            "megatron_lm",
            "--tensor-model-parallel-size 8 --sequence-parallel --tp-comm-overlap",
            "tp-comm-overlap",
        ),
        (
            "torchtitan",
            "parallelism = {tensor_parallel_degree = 8, enable_async_tensor_parallel = true}",
            "parallelism.enable_async_tensor_parallel",
        ),
    ],
)
def test_an_overlap_of_tensor_parallelism_is_read_and_written(tool, text, flag):
    overlap = "/parallelism/overlap_tensor_communication"
    read = read_settings(tool, parse_keys(tool, text))
    assert read.settings[overlap] is True
    assert flag not in read.others
    compiled = {**read.settings, "/workload/fusion": "compiled"}
    assert write_settings(tool, compiled).keys[flag] is True
    for said in ({}, {overlap: False}):
        settings = {name: value for name, value in read.settings.items() if name != overlap} | said
        told = write_settings(tool, settings)
        assert flag not in told.keys
        assert overlap not in {error.pointer for error in told.missing}
        assert overlap not in read_settings(tool, told.keys).settings
    alone = write_settings(tool, {**read.settings, "/parallelism/tensor": 1})
    assert overlap in {error.pointer for error in alone.missing}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (
            "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity",
            {"/workload/expert_capacity_factor": 1.25},
        ),
        ("--moe-router-force-load-balancing", {"/workload/expert_balance": "forced"}),
        ("--cuda-graph-impl transformer_engine", {"/workload/cuda_graphs": "layer"}),
        ("--cuda-graph-impl local --cuda-graph-scope full_iteration", {"/workload/cuda_graphs": "iteration"}),
    ],
)
def test_megatron_states_how_tokens_take_experts_and_how_kernels_are_launched(text, settings):
    keys = parse_keys("megatron_lm", text)
    read = read_settings("megatron_lm", keys)
    assert settings.items() <= read.settings.items()
    assert write_settings("megatron_lm", settings).keys.items() >= keys.items()
    assert {error.pointer for error in write_settings("deepspeed", settings).missing} >= settings.keys()


@pytest.mark.parametrize("key", ["debug.moe_force_load_balance", "training.debug_moe_force_load_balance"])
def test_torchtitan_overrides_the_router_under_two_names(key):
    section, name = key.split(".")
    read = read_settings("torchtitan", parse_keys("torchtitan", f"{section} = {{{name} = true}}"))
    assert read.settings["/workload/expert_balance"] == "forced"
    told = write_settings("torchtitan", read.settings)
    assert told.keys["debug.moe_force_load_balance"] is True


def test_a_capacity_without_padding_is_not_read():
    keys = parse_keys("megatron_lm", "--moe-expert-capacity-factor 1.0")
    read = read_settings("megatron_lm", keys)
    assert "/workload/expert_capacity_factor" not in read.settings
    assert [error.pointer for error in read.unread] == ["/workload/expert_capacity_factor"]


def test_programs_name_what_an_overlap_of_tensor_parallelism_takes():
    settings = {
        "/parallelism/tensor": 8,
        "/parallelism/data": 1,
        "/parallelism/overlap_tensor_communication": True,
    }
    assert write_settings("megatron_lm", settings).keys["sequence-parallel"] is True
    for tool, beside in (
        ("megatron_lm", {"/parallelism/sequence_parallel": False}),
        ("torchtitan", {"/parallelism/sequence_parallel": True, "/workload/fusion": "eager"}),
        ("deepspeed", {}),
    ):
        missing = write_settings(tool, {**settings, **beside}).missing
        assert "/parallelism/overlap_tensor_communication" in {error.pointer for error in missing}


def test_torchtitan_passes_a_local_batch_whole_but_through_stages():
    settings = {
        "/parallelism/data": 4,
        "/parallelism/pipeline": 2,
        "/parallelism/sharding": "zero_3",
        "/workload/micro_batch_size": 2,
        "/workload/gradient_accumulation_steps": 8,
        "/workload/global_batch_size": 64,
    }
    keys = write_settings("torchtitan", settings).keys
    assert keys["training.local_batch_size"] == 16
    assert keys["parallelism.pipeline_parallel_microbatch_size"] == 2
    # By default weights stay gathered under pipeline parallelism, which would be zero_2.
    assert keys["parallelism.fsdp_reshard_after_forward"] == "always"
    keys = write_settings("torchtitan", settings | {"/parallelism/pipeline": 1}).keys
    assert keys["training.local_batch_size"] == 2
    assert keys["training.global_batch_size"] == 64


def test_torchtitan_counts_stages_by_layers():
    """Table and head count for a layer each: 78 blocks are 16 stages of 5, and 80 make 17 of 5 or 14 of 6."""
    settings = {
        "/model/blocks": 80,
        "/parallelism/pipeline": 4,
        "/parallelism/pipeline_schedule": "interleaved",
        "/parallelism/virtual_stages": 4,
    }
    settings = {**settings, "/parallelism/data": 1}
    told = write_settings("torchtitan", {**settings, "/model/blocks": 78})
    assert told.keys["parallelism.pipeline_parallel_layers_per_stage"] == 5
    assert (
        read_settings("torchtitan", told.keys, {"/model/blocks": 78}).settings["/parallelism/virtual_stages"]
        == 4
    )
    missing = [error.pointer for error in write_settings("torchtitan", settings).missing]
    assert missing == ["/parallelism/virtual_stages"]
    assert "/parallelism/virtual_stages" in _codes(read_settings("torchtitan", told.keys))
    assert "/parallelism/virtual_stages" in _codes(
        read_settings("torchtitan", told.keys, {"/model/blocks": 80})
    )


def test_torchtitan_is_told_only_what_it_can_do():
    settings = {
        "/cluster/accelerator_count": 16,
        "/parallelism/tensor": 2,
        "/parallelism/data": 8,
        "/parallelism/sharding": "none",
        "/parallelism/sequence_parallel": False,
        "/workload/precision": "fp8_delayed",
    }
    missing = {error.pointer for error in write_settings("torchtitan", settings).missing}
    assert missing == {"/parallelism/sharding", "/parallelism/sequence_parallel", "/workload/precision"}


def test_selective_checkpoints_of_every_second_layer_are_no_strategy_of_ours():
    read = read_settings("torchtitan", {"activation_checkpoint.mode": "selective"})
    assert "/workload/recomputation/strategy" in _codes(read)
    read = read_settings(
        "torchtitan",
        {"activation_checkpoint.mode": "selective", "activation_checkpoint.selective_ac_option": "op"},
    )
    assert read.settings["/workload/recomputation/strategy"] == "selective"


def test_attention_ranks_of_sglang_share_devices_requests_and_chunks():
    """Two attention ranks of 4 devices: SGLang's tp-size is 8, and its limits are those of both."""
    settings = {
        "/parallelism/tensor": 4,
        "/parallelism/data": 2,
        "/parallelism/expert": 2,
        "/parallelism/expert_tensor": 1,
        "/workload/engine/max_num_seqs": 128,
    }
    line = render_arguments(write_settings("sglang", settings).keys)
    assert " ".join(line) == (
        "--tp-size 8 --dp-size 2 --enable-dp-attention --ep-size 8 --max-running-requests 256"
    )
    read = read_settings(
        "sglang", parse_keys("sglang", "--tp 8 --dp 2 --enable-dp-attention --ep 8")
    ).settings
    assert read["/parallelism/tensor"] == 4
    assert read["/parallelism/expert"] == 2
    assert read["/parallelism/expert_tensor"] == 1


def test_whole_replicas_of_sglang_are_no_attention_ranks():
    read = read_settings("sglang", parse_keys("sglang", "--tp 4 --dp 2")).settings
    assert (read["/parallelism/tensor"], read["/parallelism/data"], read["/parallelism/expert"]) == (4, 2, 1)


def test_data_parallelism_of_vllm_joins_experts():
    """Experts form a tensor-parallel group of DP x TP, its documentation says; dense ranks are apart."""
    line = parse_keys("vllm", "--tensor-parallel-size 2 --data-parallel-size 4")
    joined = read_settings("vllm", line, {"/model/experts": True}).settings
    assert (joined["/parallelism/expert"], joined["/parallelism/expert_tensor"]) == (4, 8)
    apart = read_settings("vllm", line, {"/model/experts": False}).settings
    assert apart["/parallelism/data"] == 4
    assert "/parallelism/expert" not in apart
    assert "/parallelism/expert" in _codes(read_settings("vllm", line))
    replicas = {"/model/experts": True, "/parallelism/tensor": 2, "/parallelism/data": 4}
    assert [error.code for error in write_settings("vllm", replicas).missing] == ["SEVERAL_SERVERS"]


def test_what_joins_nodes_of_vllm_is_named():
    """Its flags say nothing of nodes: Ray joins those of a replica, and each node serves its own replicas."""
    layout = {"/parallelism/tensor": 8, "/cluster/accelerators_per_node": 8}
    assert not write_settings("vllm", layout).missing
    for wider in ({"/parallelism/pipeline": 2}, {"/parallelism/data": 2}):
        [missing] = write_settings("vllm", layout | wider).missing
        assert (missing.code, missing.pointer) == ("SEVERAL_NODES", "/cluster/accelerators_per_node")


def test_limits_of_another_engine_are_named():
    settings = {"/workload/engine/name": "SGLang", "/workload/memory_fraction": 0.85}
    assert not write_settings("sglang", settings).missing
    assert [error.pointer for error in write_settings("vllm", settings).missing] == list(reversed(settings))


@pytest.mark.parametrize("tool", TOOLS)
def test_what_no_rule_knows_is_missing(tool):
    missing = [
        error.pointer
        for error in write_settings(tool, {"/workload/weight_average": True, **_DEVICES}).missing
    ]
    assert missing == ([] if tool == "torchrun" else ["/workload/weight_average"])


_DEVICES = {"/cluster/accelerator_count": 8, "/cluster/accelerators_per_node": 8}


def test_a_file_is_written_as_its_tool_reads_it():
    keys = write_settings(
        "torchtitan", {"/parallelism/tensor": 8, "/workload/precision": "mxfp8", "/parallelism/data": 1}
    ).keys
    document = build_sections(keys)
    assert document["model"] == {"converters": ["mx"]}
    assert parse_keys("torchtitan", render_toml(document)) == keys
    assert tomllib.loads(render_toml(document)) == document


_NEVER_CLOSED = '{"a":' * 5000


@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("torchtitan", "a ="),
        ("deepspeed", "[]"),
        ("vllm", "--a 'b"),
        ("torchtitan", "a = " + "[" * 5000),
        ("deepspeed", _NEVER_CLOSED),
        ("vllm", _NEVER_CLOSED),
    ],
    ids=["toml", "json", "arguments", "deep toml", "deep json", "deep groups"],
)
def test_what_is_no_configuration_is_refused(tool, text):
    with pytest.raises(PlanningError, match=f"not a configuration of {tool}"):
        parse_keys(tool, text)


def test_errors_name_a_setting():
    with pytest.raises(PlanningError) as caught:
        TABLE["torchtitan"].rules[0].read({"parallelism.tensor_parallel_degree": "many"}, {})
    assert caught.value.code == "UNREADABLE"


def test_the_page_has_every_rule():
    page = (Path(__file__).parents[2] / "docs" / "methods" / "launch-hints.md").read_text()
    for tool in TABLE.values():
        for rule in tool.rules:
            if rule.keys:
                settings = ", ".join(f"`{name.split('/', 2)[2]}`" for name in rule.settings)
                keys = ", ".join(f"`{name}`" for name in rule.keys)
                assert f"| {settings} | {keys} | {rule.meaning} |" in page
