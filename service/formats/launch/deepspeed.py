"""DeepSpeed: its configuration file, ds_config.json.

Source: "DeepSpeed Configuration JSON" (docs/_pages/config-json.md of deepspeedai/DeepSpeed at 00376da4):
the train batch is micro-batch x accumulation x data-parallel devices, ZeRO stages 0 to 3, Adam is AdamW
unless ``adam_w_mode`` is false; AutoTP training (tensor_parallel.autotp_size) for stages 0 to 2. Pipeline
stages, sequence parallelism, experts and activation checkpoints are asked for in the code of the model, not
here.
"""

from typing import Final

from service.formats.launch.rules import (
    ACCUMULATION,
    CONTEXT,
    DATA,
    DEVICES,
    FRAMEWORK,
    GLOBAL_BATCH,
    GRADIENTS,
    LEFT_OPEN,
    MICRO_BATCH,
    OFFLOADED_OPTIMIZER,
    OFFLOADED_PARAMETERS,
    OPTIMIZER,
    PRECISION,
    SHARDING,
    TENSOR,
    LaunchSettingValues,
    SettingRule,
    ToolKeys,
    build_choice_rule,
    build_implied_rule,
    build_inexpressible_error,
    build_name_rule,
    build_number_rule,
    build_unreadable_error,
    read_integer,
)

_STAGE, _TENSOR = "zero_optimization.stage", "tensor_parallel.autotp_size"
_STAGES: Final = {"none": 0, "zero_1": 1, "zero_2": 2, "zero_3": 3}


def _write_stage(settings: LaunchSettingValues) -> ToolKeys:
    sharding = settings.get(SHARDING)
    if sharding is None:
        return {}
    if sharding not in _STAGES:
        raise build_inexpressible_error(SHARDING, "the stages of ZeRO spread the state over all replicas")
    return {_STAGE: _STAGES[str(sharding)]}


def _read_stage(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    if "zero_optimization.mics_shard_size" in keys:
        raise build_unreadable_error(SHARDING, "MiCS")
    stage = read_integer(keys, _STAGE, 0)
    return {SHARDING: next(name for name, number_ in _STAGES.items() if number_ == stage)}


def _write_tensor(settings: LaunchSettingValues) -> ToolKeys:
    tensor = read_integer(settings, TENSOR, 1)
    if tensor == 1:
        return {}
    if settings.get(SHARDING) == "zero_3":
        raise build_inexpressible_error(TENSOR, "AutoTP goes with stages 0 to 2 of ZeRO")
    return {_TENSOR: tensor}


def _write_batch(settings: LaunchSettingValues) -> ToolKeys:
    names = {
        MICRO_BATCH: "train_micro_batch_size_per_gpu",
        ACCUMULATION: "gradient_accumulation_steps",
        GLOBAL_BATCH: "train_batch_size",
    }
    return {key: settings[setting] for setting, key in names.items() if setting in settings}


def _read_batch(keys: ToolKeys, known: LaunchSettingValues) -> LaunchSettingValues:
    said = {
        name: read_integer(keys, name)
        for name in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size")
        if keys.get(name, LEFT_OPEN) != LEFT_OPEN
    }
    micro, steps = said.get("train_micro_batch_size_per_gpu"), said.get("gradient_accumulation_steps")
    batch = said.get("train_batch_size")
    if micro is None and (batch is None or steps is None or DEVICES not in known):
        raise build_unreadable_error(MICRO_BATCH, "the micro-batch is left to another program")
    if micro is None and batch and steps:
        micro = batch // (steps * (read_integer(known, DEVICES) // read_integer(keys, _TENSOR, 1)))
    read = {MICRO_BATCH: micro, ACCUMULATION: steps, GLOBAL_BATCH: batch}
    return {setting: value for setting, value in read.items() if value is not None}


RULES: Final = (
    SettingRule(
        (SHARDING,),
        (_STAGE, "zero_optimization.mics_shard_size"),
        "stage of ZeRO: 1 spreads optimizer states, 2 gradients too, 3 weights too",
        _write_stage,
        _read_stage,
    ),
    build_number_rule(TENSOR, _TENSOR, "devices of a tensor-parallel group")._replace(write=_write_tensor),
    build_implied_rule(DATA, "the world size over tensor x pipeline"),
    SettingRule(
        (MICRO_BATCH, ACCUMULATION, GLOBAL_BATCH),
        ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size"),
        "sequences of a replica at a time; micro-batches of a step; sequences of a step over all replicas",
        _write_batch,
        _read_batch,
    ),
    build_choice_rule(
        PRECISION,
        "bf16 or fp16 with FP32 master weights, else FP32",
        {
            "bf16": ({"bf16.enabled": True},),
            "fp16": ({"fp16.enabled": True},),
            "fp32": ({},),
        },
        silent={"bf16.enabled": (False,), "fp16.enabled": (False,)},
        why="its own precisions are fp32, fp16 and bf16; narrower products are the model's code",
    ),
    build_choice_rule(
        GRADIENTS,
        "format in which gradients of micro-batches are summed",
        {name: ({"data_types.grad_accum_dtype": name},) for name in ("fp32", "fp16", "bf16")},
    ),
    build_choice_rule(
        OPTIMIZER,
        "Adam is AdamW unless adam_w_mode is false",
        {
            "adamw": ({"optimizer.type": "AdamW"}, {"optimizer.type": "Adam"}),
            "adam": ({"optimizer.type": "Adam", "optimizer.params.adam_w_mode": False},),
            "lamb": ({"optimizer.type": "Lamb"},),
            "muon": ({"optimizer.type": "Muon"},),
        },
        silent={"optimizer.params.adam_w_mode": (True,)},
        why="its own optimizers are Adam, AdamW, Lamb and Muon; others are passed in code",
    ),
    *(
        build_choice_rule(
            setting,
            f"where {what} lie between their uses",
            {
                "none": ({}, {key: "none"}),
                **{place: ({key: place},) for place in ("cpu", "nvme")},
            },
        )
        for setting, key, what in (
            (OFFLOADED_OPTIMIZER, "zero_optimization.offload_optimizer.device", "optimizer states"),
            (OFFLOADED_PARAMETERS, "zero_optimization.offload_param.device", "weights, under stage 3"),
        )
    ),
    build_name_rule(
        FRAMEWORK, frozenset({"deepspeed", "megatron_deepspeed"}), "the figures hold for another framework"
    ),
)

IN_CODE: Final = {
    CONTEXT: "sequence parallelism is set up in the training script",
    "/parallelism/pipeline": "stages are made in the training script, by PipelineModule",
    "/parallelism/expert": "expert parallelism is an argument of its layers in the model's code",
    "/workload/recomputation/strategy": "the model's code asks for activation checkpoints",
    "/workload/sequence_length": "the length of a sequence is the data's",
    "/workload/total_steps": "the training script counts its steps",
}
"""Settings that are made elsewhere than in the configuration file."""
