"""vLLM: flags of ``vllm serve``.

Source: ``vllm/engine/arg_utils.py`` of vllm-project/vllm at 001999d2, ``vllm/config/cache.py`` at 002f10e0,
and the pages "Data Parallel Deployment" and "Expert Parallel Deployment" of its documentation: ranks of
data parallelism are independent for a dense model; a model with experts cuts each of them over all tensor x
data devices, or with ``--enable-expert-parallel`` spreads whole ones over these.
"""

from typing import Final

from service.formats.launch.engines import LOADED, SEVERAL_SERVERS
from service.formats.launch.rules import (
    ADAPTER_RANK,
    ADAPTERS,
    BATCHED,
    BLOCK,
    CACHE,
    CHUNKED,
    DATA,
    ENGINE,
    EXPERT,
    EXPERT_TENSOR,
    EXPERTS,
    GRAPHS,
    LENGTH,
    MEMORY_FRACTION,
    PER_NODE,
    PIPELINE,
    PREFIX,
    RECURRENT,
    REQUESTS,
    TENSOR,
    LaunchSettingValues,
    SettingRule,
    ToolKeys,
    build_choice_rule,
    build_name_rule,
    build_number_rule,
    build_share_rule,
    build_unreadable_error,
    read_integer,
)
from service.planning.errors import PlanningError

_TENSOR, _DATA, _SPREAD = "tensor-parallel-size", "data-parallel-size", "enable-expert-parallel"


def _write_replicas(settings: LaunchSettingValues) -> ToolKeys:
    tensor, data = read_integer(settings, TENSOR, 1), read_integer(settings, DATA, 1)
    expert = read_integer(settings, EXPERT, 1)
    cut = read_integer(settings, EXPERT_TENSOR, tensor)
    if expert == 1:
        spread: ToolKeys = _build_expert_keys(cut, tensor) if settings.get(EXPERTS) else {}
        if data > 1 and settings.get(EXPERTS):
            raise PlanningError("SEVERAL_SERVERS", DATA, SEVERAL_SERVERS)
        return {**spread, **({_DATA: data} if data > 1 else {})}
    if data != expert:
        raise PlanningError("SEVERAL_SERVERS", DATA, SEVERAL_SERVERS)
    return {_DATA: expert, **_build_expert_keys(cut, tensor * expert)}


def _build_expert_keys(cut: int, holders: int) -> ToolKeys:
    if cut == holders:
        return {}
    if cut == 1:
        return {_SPREAD: True}
    raise PlanningError(
        "NO_SETTING", EXPERT_TENSOR, "each expert is whole, or cut over all that hold experts"
    )


def _read_replicas(keys: ToolKeys, known: LaunchSettingValues) -> LaunchSettingValues:
    tensor, data = read_integer(keys, _TENSOR, 1), read_integer(keys, _DATA, 1)
    if known.get(EXPERTS) is None and (data > 1 or keys.get(_SPREAD)):
        raise build_unreadable_error(
            EXPERT, "what data parallelism does with experts depends on whether there are any"
        )
    if not known.get(EXPERTS):
        return {DATA: data}
    cut = 1 if keys.get(_SPREAD) else tensor * data
    return {DATA: data, EXPERT: data, **({} if cut == tensor else {EXPERT_TENSOR: cut})}


def _write_nodes(settings: LaunchSettingValues) -> ToolKeys:
    replica = read_integer(settings, TENSOR, 1) * read_integer(settings, PIPELINE, 1)
    server = replica * read_integer(settings, DATA, 1)
    per_node = read_integer(settings, PER_NODE, server)
    if replica > per_node:
        raise PlanningError("SEVERAL_NODES", PER_NODE, ONE_REPLICA_ON_NODES)
    if server > per_node:
        raise PlanningError("SEVERAL_NODES", PER_NODE, REPLICAS_ON_NODES)
    return {}


ONE_REPLICA_ON_NODES: Final = "the nodes of a replica are joined by Ray before its server starts"
REPLICAS_ON_NODES: Final = (
    "each node starts a server of its own replicas, which names the first one's address"
)


RULES: Final = (
    build_number_rule(TENSOR, _TENSOR, "devices that share each layer"),
    build_number_rule(PIPELINE, "pipeline-parallel-size", "stages"),
    SettingRule(
        (DATA, EXPERT, EXPERT_TENSOR),
        (_DATA, _SPREAD),
        "replicas behind one address, and whether they share whole experts",
        _write_replicas,
        _read_replicas,
    ),
    SettingRule(
        (PER_NODE,),
        (),
        "devices of a node, of which a server takes one",
        _write_nodes,
        lambda _keys, _known: {},
    ),
    *LOADED,
    build_choice_rule(
        CACHE,
        "format of the cache; auto is that of the model",
        {
            "bf16": ({"kv-cache-dtype": "auto"}, {"kv-cache-dtype": "bfloat16"}),
            "fp8": (
                {"kv-cache-dtype": "fp8"},
                {"kv-cache-dtype": "fp8_e4m3"},
                {"kv-cache-dtype": "fp8_e5m2"},
            ),
        },
        why="the cache has the format of the model, or FP8; narrower ones scale each head of a token",
    ),
    build_choice_rule(
        RECURRENT,
        "format of the states of state-space layers",
        {
            "fp32": ({"mamba-ssm-cache-dtype": "float32"},),
            "fp16": ({"mamba-ssm-cache-dtype": "float16"},),
            "bf16": ({"mamba-ssm-cache-dtype": "bfloat16"},),
        },
        silent={"mamba-ssm-cache-dtype": ("auto",)},
    ),
    build_share_rule(
        MEMORY_FRACTION, "gpu-memory-utilization", "share of the device's memory that the engine takes"
    ),
    build_number_rule(REQUESTS, "max-num-seqs", "most requests of a replica in an iteration"),
    build_number_rule(BATCHED, "max-num-batched-tokens", "most tokens of an iteration"),
    build_number_rule(BLOCK, "block-size", "tokens of a block of the cache"),
    build_number_rule(LENGTH, "max-model-len", "longest sequence in tokens"),
    build_choice_rule(
        CHUNKED,
        "whether a long prompt takes several iterations",
        {True: ({"enable-chunked-prefill": True},), False: ({"no-enable-chunked-prefill": True},)},
    ),
    build_choice_rule(
        GRAPHS,
        "whether decode steps are launched as graphs",
        {True: ({},), False: ({"enforce-eager": True},)},
    ),
    SettingRule(
        (PREFIX,),
        ("enable-prefix-caching", "no-enable-prefix-caching"),
        "whether keys and values of prompts are found again; how often is the traffic's",
        lambda settings: {"enable-prefix-caching": True} if settings.get(PREFIX) else {},
        lambda keys, _: {PREFIX: 0.0} if keys.get("no-enable-prefix-caching") else {},
    ),
    SettingRule(
        (ADAPTERS,),
        ("enable-lora", "max-loras"),
        "low-rank adapters that are loaded at a time",
        lambda settings: (
            {"enable-lora": True, "max-loras": settings[ADAPTERS]} if ADAPTERS in settings else {}
        ),
        lambda keys, _: {ADAPTERS: read_integer(keys, "max-loras", 1)} if keys.get("enable-lora") else {},
    ),
    build_number_rule(ADAPTER_RANK, "max-lora-rank", "largest rank of an adapter"),
    build_name_rule(ENGINE, frozenset({"vllm"}), "the figures hold for another engine"),
)
