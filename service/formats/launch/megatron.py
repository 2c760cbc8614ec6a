"""Megatron-LM: arguments of its training scripts.

Source: ``megatron/training/arguments.py`` of NVIDIA/Megatron-LM at 000c4ac2 and the help of its arguments;
the Megatron-FSDP quick start (docs of Megatron Core: ``--use-megatron-fsdp`` needs the distributed
optimizer, no fused gradient accumulation and fsdp_dtensor checkpoints). Its checks turn sequence
parallelism off where the tensor-parallel size is 1, and gradients of bf16 are accumulated in FP32 unless
``--grad-reduce-in-bf16``.
"""

from typing import Final

from service.formats.launch.rules import (
    ACCUMULATION,
    ATTENTION,
    CONTEXT,
    CUDA_GRAPHS,
    DATA,
    DEVICES,
    EXPERT,
    EXPERT_BALANCE,
    EXPERT_CAPACITY,
    EXPERT_TENSOR,
    FRAMEWORK,
    GLOBAL_BATCH,
    GRADIENTS,
    GROUP,
    INTERVAL,
    MICRO_BATCH,
    OFFLOADED_OPTIMIZER,
    OPTIMIZER,
    OVERLAP,
    OVERLAP_TENSOR,
    PIPELINE,
    PRECISION,
    RECOMPUTATION,
    SAMPLES,
    SCHEDULE,
    SEQUENCE_LENGTH,
    SEQUENCE_PARALLEL,
    SHARDING,
    STATES,
    STEPS,
    TENSOR,
    VIRTUAL,
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

_TENSOR, _PIPELINE = "tensor-model-parallel-size", "pipeline-model-parallel-size"
_CONTEXT, _INSTANCES = "context-parallel-size", "num-distributed-optimizer-instances"
_FSDP, _STRATEGY = "use-megatron-fsdp", "data-parallel-sharding-strategy"
_OVERLAP, _OVERLAP_TENSOR = "overlap-moe-expert-parallel-comm", "tp-comm-overlap"
_CAPACITY, _PADDED = "moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity"
_FORCED = "moe-router-force-load-balancing"
_CHUNKS, _CHUNK_LAYERS = "num-virtual-stages-per-pipeline-rank", "num-layers-per-virtual-pipeline-stage"
_GRANULARITY, _METHOD, _UNIT = "recompute-granularity", "recompute-method", "recompute-num-layers"
_BATCH_SCHEDULES = ("step-batch-size-schedule", "rampup-batch-size")


def _build_fsdp_keys(strategy: str) -> tuple[ToolKeys, ...]:
    bare: ToolKeys = {_FSDP: True, _STRATEGY: strategy}
    whole_way: ToolKeys = {
        **bare,
        "use-distributed-optimizer": True,
        "no-gradient-accumulation-fusion": True,
        "ckpt-format": "fsdp_dtensor",
    }
    return (whole_way, bare, {"use-custom-fsdp": True, _STRATEGY: strategy})


_SHARDED: Final = build_choice_rule(
    SHARDING,
    "distributed optimizer (states), or Megatron-FSDP: no_shard, optim, optim_grads, optim_grads_params",
    {
        "none": ({},),
        "zero_1": ({"use-distributed-optimizer": True}, *_build_fsdp_keys("optim")),
        "zero_2": _build_fsdp_keys("optim_grads"),
        "zero_3": (*_build_fsdp_keys("optim_grads_params"), {"use-torch-fsdp2": True}),
    },
    silent={
        _STRATEGY: ("no_shard",),
        "ckpt-format": ("torch", "torch_dist", "zarr", "fsdp_dtensor"),
        "no-gradient-accumulation-fusion": (True,),
        "use-distributed-optimizer": (True,),
    },
)


def _write_sharding(settings: LaunchSettingValues) -> ToolKeys:
    if settings.get(SHARDING) != "hybrid":
        return _SHARDED.write(settings)
    copies = (
        read_integer(settings, DATA) * read_integer(settings, CONTEXT, 1) // read_integer(settings, GROUP)
    )
    return {**_build_fsdp_keys("optim_grads_params")[0], _INSTANCES: copies}


def _read_sharding(keys: ToolKeys, known: LaunchSettingValues) -> LaunchSettingValues:
    read = _SHARDED.read(keys, known)
    copies = read_integer(keys, _INSTANCES, 1)
    if copies == 1:
        return read
    if read.get(SHARDING) != "zero_3":
        raise build_unreadable_error(
            SHARDING, "states spread over a part of the replicas, weights over none of them"
        )
    if DEVICES not in known:
        raise build_unreadable_error(
            GROUP, "the devices of a copy follow from the number of devices, which is not said"
        )
    model = read_integer(keys, _TENSOR, 1) * read_integer(keys, _PIPELINE, 1)
    return {SHARDING: "hybrid", GROUP: read_integer(known, DEVICES) // model // copies}


def _write_sequence(settings: LaunchSettingValues) -> ToolKeys:
    return {"sequence-parallel": True} if settings.get(SEQUENCE_PARALLEL) else {}


def _read_sequence(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    return {SEQUENCE_PARALLEL: bool(keys.get("sequence-parallel")) and read_integer(keys, _TENSOR, 1) > 1}


def _write_overlap(settings: LaunchSettingValues) -> ToolKeys:
    if not settings.get(OVERLAP):
        return {}
    if read_integer(settings, PIPELINE, 1) > 1 and settings.get(SCHEDULE) != "interleaved":
        raise build_inexpressible_error(OVERLAP, "stages of a pipeline have to be interleaved")
    return {_OVERLAP: True}


def _read_overlap(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    return {OVERLAP: True} if keys.get(_OVERLAP) else {}


def _write_tensor_overlap(settings: LaunchSettingValues) -> ToolKeys:
    if not settings.get(OVERLAP_TENSOR):
        return {}
    if read_integer(settings, TENSOR, 1) == 1 or settings.get(SEQUENCE_PARALLEL) is False:
        raise build_inexpressible_error(OVERLAP_TENSOR, "it takes sequence parallelism of several devices")
    # What it takes is implied where the question leaves it out.
    return {"sequence-parallel": True, _OVERLAP_TENSOR: True}


def _read_tensor_overlap(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    return {OVERLAP_TENSOR: True} if keys.get(_OVERLAP_TENSOR) else {}


def _write_capacity(settings: LaunchSettingValues) -> ToolKeys:
    if EXPERT_CAPACITY not in settings:
        return {}
    return {_CAPACITY: settings[EXPERT_CAPACITY], _PADDED: True}


def _read_capacity(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    if _CAPACITY not in keys:
        return {}
    factor = keys[_CAPACITY]
    if isinstance(factor, bool) or not isinstance(factor, int | float) or factor <= 0:
        raise build_unreadable_error(EXPERT_CAPACITY, f"{_CAPACITY} must be a number above 0 here")
    if not keys.get(_PADDED):
        raise build_unreadable_error(EXPERT_CAPACITY, f"experts are padded to it: {_PADDED} is required")
    return {EXPERT_CAPACITY: float(factor)}


def _write_balance(settings: LaunchSettingValues) -> ToolKeys:
    return {_FORCED: True} if settings.get(EXPERT_BALANCE) == "forced" else {}


def _read_balance(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    return {EXPERT_BALANCE: "forced"} if keys.get(_FORCED) else {}


def _write_schedule(settings: LaunchSettingValues) -> ToolKeys:
    if read_integer(settings, PIPELINE, 1) == 1:
        return {}
    schedule = settings.get(SCHEDULE, "one_f_one_b")
    if schedule == "interleaved":
        return {_CHUNKS: read_integer(settings, VIRTUAL)}
    if schedule == "one_f_one_b":
        return {}
    raise build_inexpressible_error(SCHEDULE, "the schedules of Megatron-LM are 1F1B and interleaved 1F1B")


def _read_schedule(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    chunks = 1
    if _CHUNKS in keys:
        chunks = read_integer(keys, _CHUNKS)
    elif _CHUNK_LAYERS in keys:
        if "num-layers" not in keys:
            raise build_unreadable_error(
                VIRTUAL, f"{_CHUNK_LAYERS} says chunks only where num-layers is known"
            )
        chunks = read_integer(keys, "num-layers") // (
            read_integer(keys, _PIPELINE, 1) * read_integer(keys, _CHUNK_LAYERS)
        )
    if chunks == 1:
        return {SCHEDULE: "one_f_one_b", VIRTUAL: 1}
    return {SCHEDULE: "interleaved", VIRTUAL: chunks}


def _read_batch(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    if any(name in keys for name in _BATCH_SCHEDULES):
        raise build_unreadable_error(
            GLOBAL_BATCH, "the batch grows on a schedule of which the given size is the last"
        )
    return {GLOBAL_BATCH: read_integer(keys, "global-batch-size")} if "global-batch-size" in keys else {}


def _write_batch(settings: LaunchSettingValues) -> ToolKeys:
    return {"global-batch-size": settings[GLOBAL_BATCH]} if GLOBAL_BATCH in settings else {}


_UNITS: Final[ToolKeys] = {_GRANULARITY: "full", _METHOD: "uniform"}


def _write_recomputation(settings: LaunchSettingValues) -> ToolKeys:
    match settings.get(RECOMPUTATION, "none"):
        case "none":
            return {}
        case "selective":
            return {_GRANULARITY: "selective"}
        case "full":
            return {**_UNITS, _UNIT: 1}
        case "every_k":
            return {**_UNITS, _UNIT: read_integer(settings, INTERVAL)}
        case _:
            raise build_inexpressible_error(
                RECOMPUTATION, "the distance of kept inputs is a number of layers: every_k"
            )


def _read_recomputation(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    if keys.get(_GRANULARITY) == "selective" or keys.get("recompute-activations"):
        modules = keys.get("recompute-modules", "core_attn")
        if modules not in ("core_attn", ["core_attn"]):
            raise build_unreadable_error(
                RECOMPUTATION, "selective recomputation of other modules than attention"
            )
        return {RECOMPUTATION: "selective"}
    if _GRANULARITY not in keys:
        return {RECOMPUTATION: "none"}
    if keys.get(_METHOD) != "uniform":
        raise build_unreadable_error(RECOMPUTATION, "only some layers of a stage are computed again")
    unit = read_integer(keys, _UNIT, 1)
    return {RECOMPUTATION: "full"} if unit == 1 else {RECOMPUTATION: "every_k", INTERVAL: unit}


def _build_fp8_keys(recipe: str, *formats: str) -> tuple[ToolKeys, ...]:
    return tuple({"bf16": True, "fp8-format": each, "fp8-recipe": recipe} for each in formats)


def _require_distributed(rule: SettingRule) -> SettingRule:
    """A rule whose precision-aware optimizer has to be the distributed one."""

    def write(settings: LaunchSettingValues) -> ToolKeys:
        keys = rule.write(settings)
        if keys and settings.get(SHARDING, "none") == "none":
            raise build_inexpressible_error(
                rule.settings[0], "it takes the distributed optimizer: zero_1 and above"
            )
        return keys

    return rule._replace(write=write)


RULES: Final = (
    build_number_rule(TENSOR, _TENSOR, "devices of a tensor-parallel group"),
    build_number_rule(PIPELINE, _PIPELINE, "pipeline stages"),
    build_number_rule(CONTEXT, _CONTEXT, "devices that share a sequence"),
    build_number_rule(
        EXPERT, "expert-model-parallel-size", "data-parallel devices that the experts are spread over"
    ),
    build_number_rule(
        EXPERT_TENSOR,
        "expert-tensor-parallel-size",
        "devices that an expert is cut over; as tensor if absent",
    ),
    build_implied_rule(DATA, "the world size over tensor x pipeline x context"),
    SettingRule(
        (SEQUENCE_PARALLEL,),
        ("sequence-parallel",),
        "divides activations between layers; turned off where tensor is 1",
        _write_sequence,
        _read_sequence,
    ),
    SettingRule(
        (SHARDING, GROUP), (*_SHARDED.keys, _INSTANCES), _SHARDED.meaning, _write_sharding, _read_sharding
    ),
    SettingRule(
        (SCHEDULE, VIRTUAL),
        (_CHUNKS, _CHUNK_LAYERS),
        "chunks of the model on a pipeline device, or layers of each; 1F1B without",
        _write_schedule,
        _read_schedule,
    ),
    SettingRule(
        (OVERLAP,),
        (_OVERLAP,),
        "sends tokens to their experts while another micro-batch computes",
        _write_overlap,
        _read_overlap,
    ),
    SettingRule(
        (OVERLAP_TENSOR,),
        (_OVERLAP_TENSOR,),
        "sends collectives of tensor parallelism in pieces beside products; takes sequence parallelism",
        _write_tensor_overlap,
        _read_tensor_overlap,
    ),
    SettingRule(
        (EXPERT_CAPACITY,),
        (_CAPACITY, _PADDED),
        "tokens that each expert takes over the mean of all; others are dropped, missing ones padded",
        _write_capacity,
        _read_capacity,
    ),
    SettingRule(
        (EXPERT_BALANCE,),
        (_FORCED,),
        "overrides the router, so that every expert takes as many tokens",
        _write_balance,
        _read_balance,
    ),
    build_choice_rule(
        CUDA_GRAPHS,
        "launches the kernels of a layer, or of an iteration, together; none without",
        {
            "none": ({}, {"cuda-graph-impl": "none"}),
            "layer": ({"cuda-graph-impl": "transformer_engine"}, {"cuda-graph-impl": "local"}),
            "iteration": ({"cuda-graph-impl": "local", "cuda-graph-scope": "full_iteration"},),
        },
    ),
    build_number_rule(SEQUENCE_LENGTH, "seq-length", "tokens of a sequence"),
    build_number_rule(MICRO_BATCH, "micro-batch-size", "sequences of a replica at a time"),
    SettingRule(
        (GLOBAL_BATCH,),
        ("global-batch-size", *_BATCH_SCHEDULES),
        "sequences of an optimizer step over all replicas",
        _write_batch,
        _read_batch,
    ),
    build_implied_rule(ACCUMULATION, "the global batch over micro-batch x replicas"),
    build_number_rule(STEPS, "train-iters", "optimizer steps of the run"),
    build_number_rule(SAMPLES, "train-samples", "sequences of the run"),
    build_choice_rule(
        PRECISION,
        "bf16 or fp16 with FP32 master weights; scaled FP8 or FP4 products beside bf16",
        {
            "bf16": ({"bf16": True},),
            "fp16": ({"fp16": True},),
            "fp32": ({},),
            "fp8_delayed": (
                *_build_fp8_keys("delayed", "hybrid", "e4m3"),
                {"bf16": True, "fp8-format": "hybrid"},
                {"bf16": True, "fp8-format": "e4m3"},
            ),
            "fp8_blockwise": _build_fp8_keys("blockwise", "e4m3", "hybrid"),
            "mxfp8": _build_fp8_keys("mxfp8", "e4m3", "hybrid"),
            "nvfp4": ({"bf16": True, "fp4-format": "e2m1", "fp4-recipe": "nvfp4"},),
        },
        why="Megatron-LM trains in fp32, fp16, bf16, FP8 and NVFP4, with master weights beside them",
    ),
    build_choice_rule(
        GRADIENTS,
        "format in which gradients are summed and reduced; FP32 under bf16 without a flag",
        {
            "fp32": ({"accumulate-allreduce-grads-in-fp32": True},),
            "bf16": ({"grad-reduce-in-bf16": True},),
        },
        why="gradients are summed in FP32 or in bf16",
    ),
    _require_distributed(
        build_choice_rule(
            STATES,
            "format of both moments under the precision-aware optimizer; FP32 without it",
            {
                "fp32": ({},),
                **{
                    name: (
                        {
                            "use-precision-aware-optimizer": True,
                            "exp-avg-dtype": name,
                            "exp-avg-sq-dtype": name,
                        },
                    )
                    for name in ("bf16", "fp16")
                },
            },
            silent={"use-precision-aware-optimizer": (True,)},
        )
    ),
    build_choice_rule(
        OPTIMIZER,
        "adam is AdamW (decoupled weight decay); sgd has a momentum of 0.9 unless told otherwise",
        {
            "adamw": ({"optimizer": "adam"},),
            "momentum": ({"optimizer": "sgd"},),
            "sgd": ({"optimizer": "sgd", "sgd-momentum": 0.0},),
            "muon": ({"optimizer": "muon"}, {"optimizer": "dist_muon"}),
        },
        why="its optimizers are adam (AdamW), sgd and muon",
    ),
    build_choice_rule(
        ATTENTION,
        "kernel of attention: flash and fused store no scores, unfused does",
        {
            "flash": (
                {"attention-backend": "flash"},
                {"attention-backend": "fused"},
                {"use-flash-attn": True},
            ),
            "standard": ({"attention-backend": "unfused"}, {"attention-backend": "local"}),
        },
        silent={"attention-backend": ("auto",)},
    ),
    SettingRule(
        (RECOMPUTATION, INTERVAL),
        (_GRANULARITY, _METHOD, _UNIT, "recompute-activations", "recompute-modules"),
        "selective is attention's core; full keeps the input of every unit of so many layers",
        _write_recomputation,
        _read_recomputation,
    ),
    _require_distributed(
        build_choice_rule(
            OFFLOADED_OPTIMIZER,
            "optimizer states on the host",
            {"none": ({},), "cpu": ({"optimizer-cpu-offload": True, "use-precision-aware-optimizer": True},)},
            silent={"use-precision-aware-optimizer": (True,)},
        )
    ),
    build_name_rule(
        FRAMEWORK,
        frozenset({"megatron_lm", "megatron_core", "megatron-lm", "megatron-core", "megatron"}),
        "the figures hold for another framework",
    ),
)
