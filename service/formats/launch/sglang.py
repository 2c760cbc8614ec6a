"""SGLang: flags of ``sglang.launch_server``.

Source: ``python/sglang/srt/server_args.py`` of sgl-project/sglang at 001067ff and the pages "Server
Arguments" and "DP, DPA and SGLang router" of its documentation. Traps: under ``--enable-dp-attention`` the
tensor-parallel size is that of all devices of a server, of which each data-parallel rank takes a share for
attention, and the largest number of requests and the tokens of a chunk are those of all ranks; without it
``--dp-size`` makes whole replicas.
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
    GRAPHS,
    LENGTH,
    MEMORY_FRACTION,
    PER_NODE,
    PIPELINE,
    PREFIX,
    REQUESTS,
    TENSOR,
    LaunchSettingValues,
    SettingRule,
    ToolKeys,
    build_choice_rule,
    build_name_rule,
    build_number_rule,
    build_share_rule,
    read_integer,
)
from service.planning.errors import PlanningError

_TENSOR, _DATA, _EXPERT = "tp-size", "dp-size", "ep-size"
_ATTENTION, _NODES, _REQUESTS, _CHUNK = (
    "enable-dp-attention",
    "nnodes",
    "max-running-requests",
    "chunked-prefill-size",
)
_ALIASES: Final = {
    "tensor-parallel-size": _TENSOR,
    "tp": _TENSOR,
    "data-parallel-size": _DATA,
    "dp": _DATA,
    "expert-parallel-size": _EXPERT,
    "ep": _EXPERT,
    "pipeline-parallel-size": "pp-size",
    "pp": "pp-size",
    "max-lora-rank": "max-lora-rank",
}


def normalize_keys(keys: ToolKeys) -> ToolKeys:
    """Keys by the names that the rules have."""
    return {_ALIASES.get(name, name): value for name, value in keys.items()}


def _write_devices(settings: LaunchSettingValues) -> ToolKeys:
    tensor, data = read_integer(settings, TENSOR, 1), read_integer(settings, DATA, 1)
    expert = read_integer(settings, EXPERT, 1)
    holders = tensor * expert
    if expert > 1 and data != expert:
        raise PlanningError("SEVERAL_SERVERS", DATA, SEVERAL_SERVERS)
    spread = holders // read_integer(settings, EXPERT_TENSOR, tensor)
    attention: ToolKeys = {_DATA: expert, _ATTENTION: True} if expert > 1 else {}
    copies: ToolKeys = {_DATA: data} if expert == 1 and data > 1 else {}
    experts: ToolKeys = {_EXPERT: spread} if spread > 1 else {}
    server = holders * read_integer(settings, PIPELINE, 1)
    nodes = -(-server // read_integer(settings, PER_NODE, server))
    several: ToolKeys = {_NODES: nodes} if nodes > 1 else {}
    return {_TENSOR: holders, **attention, **copies, **experts, **several}


def _read_devices(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    holders, data = read_integer(keys, _TENSOR, 1), read_integer(keys, _DATA, 1)
    spread = read_integer(keys, _EXPERT, 1)
    expert = data if keys.get(_ATTENTION) else 1
    tensor, cut = holders // expert, holders // spread
    return {TENSOR: tensor, DATA: data, EXPERT: expert, **({} if cut == tensor else {EXPERT_TENSOR: cut})}


def _count_attention_ranks(keys: ToolKeys) -> int:
    return read_integer(keys, _DATA, 1) if keys.get(_ATTENTION) else 1


def _write_chunks(settings: LaunchSettingValues) -> ToolKeys:
    if settings.get(CHUNKED) is False:
        said: ToolKeys = {"max-prefill-tokens": settings[BATCHED]} if BATCHED in settings else {}
        return {_CHUNK: -1, **said}
    return {_CHUNK: settings[BATCHED]} if BATCHED in settings else {}


def _read_chunks(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
    if _CHUNK not in keys:
        return {}
    if read_integer(keys, _CHUNK) > 0:
        return {BATCHED: read_integer(keys, _CHUNK)}
    tokens: LaunchSettingValues = (
        {BATCHED: read_integer(keys, "max-prefill-tokens")} if "max-prefill-tokens" in keys else {}
    )
    return {CHUNKED: False, **tokens}


RULES: Final = (
    SettingRule(
        (TENSOR, DATA, EXPERT, EXPERT_TENSOR),
        (_TENSOR, _DATA, _ATTENTION, _EXPERT, _NODES),
        "devices of a server's layers, replicas or attention ranks, devices that experts are spread over",
        _write_devices,
        _read_devices,
    ),
    build_number_rule(PIPELINE, "pp-size", "stages"),
    *LOADED,
    build_choice_rule(
        CACHE,
        "format of the cache; auto is that of the model",
        {
            "bf16": ({"kv-cache-dtype": "auto"}, {"kv-cache-dtype": "bf16"}, {"kv-cache-dtype": "bfloat16"}),
            "fp8": ({"kv-cache-dtype": "fp8_e4m3"}, {"kv-cache-dtype": "fp8_e5m2"}),
        },
        why="the cache has the format of the model, or FP8",
    ),
    build_share_rule(
        MEMORY_FRACTION, "mem-fraction-static", "share of the device's memory for weights and cache"
    ),
    SettingRule(
        (REQUESTS,),
        (_REQUESTS,),
        "most requests of all attention ranks together, or of a replica",
        lambda settings: (
            {_REQUESTS: read_integer(settings, REQUESTS) * read_integer(settings, EXPERT, 1)}
            if REQUESTS in settings
            else {}
        ),
        lambda keys, _: (
            {REQUESTS: read_integer(keys, _REQUESTS) // _count_attention_ranks(keys)}
            if _REQUESTS in keys
            else {}
        ),
    ),
    SettingRule(
        (BATCHED, CHUNKED),
        (_CHUNK, "max-prefill-tokens"),
        "most tokens of a chunk of prompts, of all attention ranks together; -1 for whole prompts",
        _write_chunks,
        _read_chunks,
    ),
    build_number_rule(BLOCK, "page-size", "tokens of a page of the cache"),
    build_number_rule(LENGTH, "context-length", "longest sequence in tokens"),
    build_choice_rule(
        GRAPHS,
        "whether decode steps are launched as graphs",
        {True: ({},), False: ({"disable-cuda-graph": True},)},
    ),
    SettingRule(
        (PREFIX,),
        ("disable-radix-cache",),
        "keys and values of prompts are found again unless this is set; how often is the traffic's",
        lambda _: {},
        lambda keys, _: {PREFIX: 0.0} if keys.get("disable-radix-cache") else {},
    ),
    SettingRule(
        (ADAPTERS,),
        ("enable-lora", "max-loras-per-batch"),
        "low-rank adapters that are loaded at a time",
        lambda settings: (
            {"enable-lora": True, "max-loras-per-batch": settings[ADAPTERS]} if ADAPTERS in settings else {}
        ),
        lambda keys, _: (
            {ADAPTERS: read_integer(keys, "max-loras-per-batch", 8)} if keys.get("enable-lora") else {}
        ),
    ),
    build_number_rule(ADAPTER_RANK, "max-lora-rank", "largest rank of an adapter"),
    build_name_rule(ENGINE, frozenset({"sglang"}), "the figures hold for another engine"),
)
