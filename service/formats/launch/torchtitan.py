"""torchtitan: its TOML configuration, by section and key.

Source: ``torchtitan/config/job_config.py`` of pytorch/torchtitan at 000204a4 (2025; later versions take
Python configurations). Traps of it: tensor parallelism always divides activations between layers;
data_parallel_shard_degree -1 is what remains of the world and is spread over context-parallel devices too;
FSDP reshards after the forward pass by default, but not under pipeline parallelism; DDP goes with no other
parallelism; a local batch is passed whole unless there are stages, where it is cut into micro-batches; the
checkpoint mode selective keeps every second layer unless its option is "op".
"""

from math import ceil
from typing import Final

from service.formats.launch.rules import (
    ACCUMULATION,
    BLOCKS,
    CONTEXT,
    DATA,
    DEVICES,
    EXPERT,
    EXPERT_BALANCE,
    FRAMEWORK,
    FUSION,
    GLOBAL_BATCH,
    GROUP,
    IN_BACKWARD,
    MICRO_BATCH,
    OFFLOADED_OPTIMIZER,
    OFFLOADED_PARAMETERS,
    OPTIMIZER,
    OVERLAP_TENSOR,
    PIPELINE,
    PRECISION,
    RECOMPUTATION,
    SCHEDULE,
    SEQUENCE_LENGTH,
    SEQUENCE_PARALLEL,
    SHARDING,
    STEPS,
    TENSOR,
    VIRTUAL,
    LaunchSettingValues,
    SettingRule,
    ToolKeys,
    build_choice_rule,
    build_flag_rule,
    build_inexpressible_error,
    build_name_rule,
    build_number_rule,
    build_unreadable_error,
    read_integer,
)

_TENSOR, _PIPELINE = "parallelism.tensor_parallel_degree", "parallelism.pipeline_parallel_degree"
_CONTEXT, _EXPERT = "parallelism.context_parallel_degree", "parallelism.expert_parallel_degree"
_EXPERT_TENSOR = "parallelism.expert_tensor_parallel_degree"
_REPLICATE = "parallelism.data_parallel_replicate_degree"
_SHARD, _RESHARD = "parallelism.data_parallel_shard_degree", "parallelism.fsdp_reshard_after_forward"
_SCHEDULE, _STAGE_LAYERS = (
    "parallelism.pipeline_parallel_schedule",
    "parallelism.pipeline_parallel_layers_per_stage",
)
_LOCAL, _GLOBAL = "training.local_batch_size", "training.global_batch_size"
_MICRO = "parallelism.pipeline_parallel_microbatch_size"
_OFFLOAD = "training.enable_cpu_offload"
_FORCED, _EARLY_FORCED = "debug.moe_force_load_balance", "training.debug_moe_force_load_balance"
_ASYNC, _EARLY_ASYNC = "parallelism.enable_async_tensor_parallel", "experimental.enable_async_tensor_parallel"
_MODE, _OPTION = "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"
_LOOPED_STAGES = 2
"""Stages of a device under a looped schedule, unless the layers of a stage are given."""
_ENDS = 2
"""Layers that the embedding table and the head count as when layers are dealt to stages."""


def _write_replicas(settings: LaunchSettingValues) -> ToolKeys:
    data, context = read_integer(settings, DATA), read_integer(settings, CONTEXT, 1)
    match settings.get(SHARDING, "none"):
        case "none":
            if data * context > 1 and data != read_integer(settings, DEVICES, data):
                raise build_inexpressible_error(
                    SHARDING, "replicas that hold the whole state go with no other parallelism"
                )
            return {_REPLICATE: data, _SHARD: 1}
        case "zero_3":
            return {_REPLICATE: 1, _SHARD: data, _RESHARD: "always"}
        case "zero_2":
            return {_REPLICATE: 1, _SHARD: data, _RESHARD: "never"}
        case "hybrid":
            group = read_integer(settings, GROUP)
            if group % context:
                raise build_inexpressible_error(
                    GROUP, "a copy of the state takes all devices that share a sequence"
                )
            return {_REPLICATE: data * context // group, _SHARD: group // context, _RESHARD: "always"}
        case _:
            raise build_inexpressible_error(SHARDING, "FSDP spreads optimizer states and gradients together")


def _read_replicas(keys: ToolKeys, known: LaunchSettingValues) -> LaunchSettingValues:
    tensor, pipeline = read_integer(keys, _TENSOR, 1), read_integer(keys, _PIPELINE, 1)
    context, copies = read_integer(keys, _CONTEXT, 1), read_integer(keys, _REPLICATE, 1)
    shard = read_integer(keys, _SHARD, -1)
    if shard == -1 and DEVICES in known:
        shard = read_integer(known, DEVICES) // (tensor * pipeline * context * copies)
    data: LaunchSettingValues = {} if shard == -1 else {DATA: copies * shard}
    if shard * context == 1:
        return {**data, SHARDING: "none"}
    resharded = keys.get(_RESHARD, "default")
    if copies == 1:
        is_spread = resharded == "always" or (resharded == "default" and pipeline == 1)
        return {**data, SHARDING: "zero_3" if is_spread else "zero_2"}
    if shard == -1:
        raise build_unreadable_error(
            GROUP, "the devices of a copy follow from the number of devices, which is not said"
        )
    if resharded == "never":
        raise build_unreadable_error(SHARDING, "copies of the state whose weights stay gathered")
    return {**data, SHARDING: "hybrid", GROUP: shard * context}


def _write_sequence(settings: LaunchSettingValues) -> ToolKeys:
    if read_integer(settings, TENSOR, 1) > 1 and not settings.get(SEQUENCE_PARALLEL, False):
        raise build_inexpressible_error(
            SEQUENCE_PARALLEL, "tensor parallelism always divides activations between layers"
        )
    return {}


def _write_tensor_overlap(settings: LaunchSettingValues) -> ToolKeys:
    if not settings.get(OVERLAP_TENSOR):
        return {}
    if read_integer(settings, TENSOR, 1) == 1:
        raise build_inexpressible_error(OVERLAP_TENSOR, "no layer is divided")
    if settings.get(FUSION) != "compiled":
        raise build_inexpressible_error(OVERLAP_TENSOR, "torch.compile cuts the collectives: it takes fusion")
    return {_ASYNC: True}


def _read_tensor_overlap(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    return {OVERLAP_TENSOR: True} if keys.get(_ASYNC) or keys.get(_EARLY_ASYNC) else {}


def _write_balance(settings: LaunchSettingValues) -> ToolKeys:
    return {_FORCED: True} if settings.get(EXPERT_BALANCE) == "forced" else {}


def _read_balance(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    return {EXPERT_BALANCE: "forced"} if keys.get(_FORCED) or keys.get(_EARLY_FORCED) else {}


def _write_schedule(settings: LaunchSettingValues) -> ToolKeys:
    if read_integer(settings, PIPELINE, 1) == 1:
        return {}
    names = {"one_f_one_b": "1F1B", "gpipe": "GPipe", "interleaved": "Interleaved1F1B"}
    schedule = str(settings.get(SCHEDULE, "one_f_one_b"))
    if schedule not in names:
        raise build_inexpressible_error(
            SCHEDULE, "its zero-bubble schedules are interleaved, not the one of the figures"
        )
    name: ToolKeys = {_SCHEDULE: names[schedule]}
    if schedule != "interleaved" or read_integer(settings, VIRTUAL) == _LOOPED_STAGES:
        return name
    stages = read_integer(settings, PIPELINE) * read_integer(settings, VIRTUAL)
    layers = read_integer(settings, BLOCKS, 0) + _ENDS
    of_stage = ceil(layers / stages)
    if layers == _ENDS or ceil(layers / of_stage) != stages:
        raise build_inexpressible_error(
            VIRTUAL, "no number of layers of a stage makes so many stages of a device"
        )
    return {**name, _STAGE_LAYERS: of_stage}


def _read_schedule(keys: ToolKeys, known: LaunchSettingValues) -> LaunchSettingValues:
    if read_integer(keys, _PIPELINE, 1) == 1:
        return {}
    looped = _LOOPED_STAGES
    if _STAGE_LAYERS in keys:
        if BLOCKS not in known:
            raise build_unreadable_error(
                VIRTUAL, "stages of a device follow from the model's blocks, which are not said"
            )
        stages = ceil((read_integer(known, BLOCKS) + _ENDS) / read_integer(keys, _STAGE_LAYERS))
        if stages % read_integer(keys, _PIPELINE):
            raise build_unreadable_error(VIRTUAL, f"{stages} stages do not divide among the pipeline devices")
        looped = stages // read_integer(keys, _PIPELINE)
    match str(keys.get(_SCHEDULE, "1F1B")).lower():
        case "1f1b":
            return {SCHEDULE: "one_f_one_b", VIRTUAL: 1}
        case "gpipe":
            return {SCHEDULE: "gpipe", VIRTUAL: 1}
        case "interleaved1f1b":
            return {SCHEDULE: "interleaved", VIRTUAL: looped}
        case _:
            raise build_unreadable_error(SCHEDULE, "a schedule that is not modelled")


def _write_batch(settings: LaunchSettingValues) -> ToolKeys:
    micro, steps = read_integer(settings, MICRO_BATCH, 1), read_integer(settings, ACCUMULATION, 1)
    batch: ToolKeys = {_GLOBAL: settings[GLOBAL_BATCH]} if GLOBAL_BATCH in settings else {}
    if read_integer(settings, PIPELINE, 1) == 1:
        return {_LOCAL: micro, **batch}
    return {_LOCAL: micro * steps, _MICRO: micro, **batch}


def _read_batch(keys: ToolKeys, known: LaunchSettingValues) -> LaunchSettingValues:
    local = read_integer(keys, _LOCAL, 8)
    staged = read_integer(keys, _PIPELINE, 1) > 1
    micro = read_integer(keys, _MICRO, 1) if staged else local
    read: dict[str, int] = {MICRO_BATCH: micro}
    total, replicas = read_integer(keys, _GLOBAL, -1), known.get(DATA)
    if total != -1:
        return {**read, GLOBAL_BATCH: total}
    read[ACCUMULATION] = local // micro
    if isinstance(replicas, int):
        read[GLOBAL_BATCH] = local * replicas
    return read


def _write_expert(settings: LaunchSettingValues) -> ToolKeys:
    expert, tensor = read_integer(settings, EXPERT, 1), read_integer(settings, TENSOR, 1)
    if expert == 1:
        return {}
    cut: ToolKeys = {_EXPERT_TENSOR: tensor} if tensor > 1 else {}
    return {_EXPERT: expert, **cut}


def _read_expert(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    expert, tensor = read_integer(keys, _EXPERT, 1), read_integer(keys, _TENSOR, 1)
    if expert > 1 and tensor != read_integer(keys, _EXPERT_TENSOR, 1):
        raise build_unreadable_error(EXPERT, "whole experts on devices that share the other layers")
    return {EXPERT: expert} if _EXPERT in keys else {}


def _write_offload(settings: LaunchSettingValues) -> ToolKeys:
    places = {settings.get(name, "none") for name in (OFFLOADED_OPTIMIZER, OFFLOADED_PARAMETERS)}
    if places == {"none"}:
        return {}
    if places != {"cpu"}:
        raise build_inexpressible_error(
            OFFLOADED_OPTIMIZER, "weights, gradients and states go to the host together"
        )
    return {_OFFLOAD: True}


def _read_offload(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    place = "cpu" if keys.get(_OFFLOAD) else "none"
    return {OFFLOADED_OPTIMIZER: place, OFFLOADED_PARAMETERS: place}


RULES: Final = (
    build_number_rule(TENSOR, _TENSOR, "devices of a tensor-parallel group"),
    build_number_rule(PIPELINE, _PIPELINE, "pipeline devices"),
    build_number_rule(CONTEXT, _CONTEXT, "devices that share a sequence"),
    SettingRule(
        (EXPERT,),
        (_EXPERT, _EXPERT_TENSOR),
        "data-parallel devices that the experts are spread over",
        _write_expert,
        _read_expert,
    ),
    SettingRule(
        (SEQUENCE_PARALLEL,),
        (),
        "wherever tensor is above 1",
        _write_sequence,
        lambda keys, _: {SEQUENCE_PARALLEL: read_integer(keys, _TENSOR, 1) > 1},
    ),
    SettingRule(
        (OVERLAP_TENSOR,),
        (_ASYNC, _EARLY_ASYNC),
        "sends collectives of tensor parallelism in pieces beside products, in compiled blocks",
        _write_tensor_overlap,
        _read_tensor_overlap,
    ),
    SettingRule(
        (EXPERT_BALANCE,),
        (_FORCED, _EARLY_FORCED),
        "overrides the router, so that every expert takes as many tokens",
        _write_balance,
        _read_balance,
    ),
    SettingRule(
        (DATA, SHARDING, GROUP),
        (_REPLICATE, _SHARD, _RESHARD),
        "copies of the state, devices that each is spread over (-1: the rest), and whether weights are again",
        _write_replicas,
        _read_replicas,
    ),
    SettingRule(
        (SCHEDULE, VIRTUAL),
        (_SCHEDULE, _STAGE_LAYERS),
        "name of the schedule; looped ones have two stages of a device, or stages of so many layers",
        _write_schedule,
        _read_schedule,
    ),
    SettingRule(
        (MICRO_BATCH, ACCUMULATION, GLOBAL_BATCH),
        (_LOCAL, _GLOBAL, _MICRO),
        "sequences of a replica in a pass, those of a step over all replicas, and of a micro-batch of stages",
        _write_batch,
        _read_batch,
    ),
    build_number_rule(SEQUENCE_LENGTH, "training.seq_len", "tokens of a sequence"),
    build_number_rule(STEPS, "training.steps", "optimizer steps of the run"),
    build_choice_rule(
        PRECISION,
        "format in which FP32 weights are gathered and multiplied; MXFP8 products by a converter",
        {
            "bf16": ({"training.mixed_precision_param": "bfloat16"}, {}),
            "fp32": ({"training.mixed_precision_param": "float32"},),
            "mxfp8": (
                {"model.converters": ["mx"], "mx.recipe_name": "mxfp8"},
                {"model.converters": ["mx"]},
            ),
        },
        silent={"model.converters": ([],), "training.mixed_precision_param": ("bfloat16",)},
        why="its FP8 is scaled as it goes, by tensor or row; it keeps FP32 weights",
    ),
    build_choice_rule(
        OPTIMIZER,
        "class of torch.optim",
        {"adamw": ({"optimizer.name": "AdamW"},), "adam": ({"optimizer.name": "Adam"},)},
        why="its optimizers are Adam and AdamW",
    ),
    build_flag_rule(
        IN_BACKWARD,
        "optimizer.early_step_in_backward",
        "updates each block as soon as its gradients are there",
    ),
    build_choice_rule(
        RECOMPUTATION,
        "none, full blocks, or selective by operator",
        {
            "none": ({_MODE: "none"},),
            "full": ({_MODE: "full"},),
            "selective": ({_MODE: "selective", _OPTION: "op"},),
        },
        silent={_OPTION: ("op", "1", "2")},
        why="blocks are computed again one by one, all or every n-th of them",
    ),
    build_choice_rule(
        FUSION,
        "whether blocks are compiled by torch.compile",
        {
            "compiled": ({"compile.enable": True}, {"training.compile": True}),
            "eager": ({"compile.enable": False}, {"training.compile": False}),
        },
    ),
    SettingRule(
        (OFFLOADED_OPTIMIZER, OFFLOADED_PARAMETERS),
        (_OFFLOAD,),
        "weights, gradients and optimizer states on the host",
        _write_offload,
        _read_offload,
    ),
    build_name_rule(FRAMEWORK, frozenset({"torchtitan"}), "the figures hold for another framework"),
)
