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
    Keys,
    Rule,
    Settings,
    choice,
    named,
    number,
    share,
    whole,
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


def plain(keys: Keys) -> Keys:
    """Keys by the names that the rules have."""
    return {_ALIASES.get(name, name): value for name, value in keys.items()}


def _write_devices(settings: Settings) -> Keys:
    tensor, data = whole(settings, TENSOR, 1), whole(settings, DATA, 1)
    expert = whole(settings, EXPERT, 1)
    holders = tensor * expert
    if expert > 1 and data != expert:
        raise PlanningError("SEVERAL_SERVERS", DATA, SEVERAL_SERVERS)
    spread = holders // whole(settings, EXPERT_TENSOR, tensor)
    attention: Keys = {_DATA: expert, _ATTENTION: True} if expert > 1 else {}
    copies: Keys = {_DATA: data} if expert == 1 and data > 1 else {}
    experts: Keys = {_EXPERT: spread} if spread > 1 else {}
    server = holders * whole(settings, PIPELINE, 1)
    nodes = -(-server // whole(settings, PER_NODE, server))
    several: Keys = {_NODES: nodes} if nodes > 1 else {}
    return {_TENSOR: holders, **attention, **copies, **experts, **several}


def _read_devices(keys: Keys, _: Settings) -> Settings:
    holders, data = whole(keys, _TENSOR, 1), whole(keys, _DATA, 1)
    spread = whole(keys, _EXPERT, 1)
    expert = data if keys.get(_ATTENTION) else 1
    tensor, cut = holders // expert, holders // spread
    return {TENSOR: tensor, DATA: data, EXPERT: expert, **({} if cut == tensor else {EXPERT_TENSOR: cut})}


def _ranks(keys: Keys) -> int:
    return whole(keys, _DATA, 1) if keys.get(_ATTENTION) else 1


def _write_chunks(settings: Settings) -> Keys:
    if settings.get(CHUNKED) is False:
        said: Keys = {"max-prefill-tokens": settings[BATCHED]} if BATCHED in settings else {}
        return {_CHUNK: -1, **said}
    return {_CHUNK: settings[BATCHED]} if BATCHED in settings else {}


def _read_chunks(keys: Keys, _: Settings) -> Settings:
    if _CHUNK not in keys:
        return {}
    if whole(keys, _CHUNK) > 0:
        return {BATCHED: whole(keys, _CHUNK)}
    tokens: Settings = {BATCHED: whole(keys, "max-prefill-tokens")} if "max-prefill-tokens" in keys else {}
    return {CHUNKED: False, **tokens}


RULES: Final = (
    Rule(
        (TENSOR, DATA, EXPERT, EXPERT_TENSOR),
        (_TENSOR, _DATA, _ATTENTION, _EXPERT, _NODES),
        "devices of a server's layers, replicas or attention ranks, devices that experts are spread over",
        _write_devices,
        _read_devices,
    ),
    number(PIPELINE, "pp-size", "stages"),
    *LOADED,
    choice(
        CACHE,
        "format of the cache; auto is that of the model",
        {
            "bf16": ({"kv-cache-dtype": "auto"}, {"kv-cache-dtype": "bf16"}, {"kv-cache-dtype": "bfloat16"}),
            "fp8": ({"kv-cache-dtype": "fp8_e4m3"}, {"kv-cache-dtype": "fp8_e5m2"}),
        },
        why="the cache has the format of the model, or FP8",
    ),
    share(MEMORY_FRACTION, "mem-fraction-static", "share of the device's memory for weights and cache"),
    Rule(
        (REQUESTS,),
        (_REQUESTS,),
        "most requests of all attention ranks together, or of a replica",
        lambda settings: (
            {_REQUESTS: whole(settings, REQUESTS) * whole(settings, EXPERT, 1)}
            if REQUESTS in settings
            else {}
        ),
        lambda keys, _: {REQUESTS: whole(keys, _REQUESTS) // _ranks(keys)} if _REQUESTS in keys else {},
    ),
    Rule(
        (BATCHED, CHUNKED),
        (_CHUNK, "max-prefill-tokens"),
        "most tokens of a chunk of prompts, of all attention ranks together; -1 for whole prompts",
        _write_chunks,
        _read_chunks,
    ),
    number(BLOCK, "page-size", "tokens of a page of the cache"),
    number(LENGTH, "context-length", "longest sequence in tokens"),
    choice(
        GRAPHS,
        "whether decode steps are launched as graphs",
        {True: ({},), False: ({"disable-cuda-graph": True},)},
    ),
    Rule(
        (PREFIX,),
        ("disable-radix-cache",),
        "keys and values of prompts are found again unless this is set; how often is the traffic's",
        lambda _: {},
        lambda keys, _: {PREFIX: 0.0} if keys.get("disable-radix-cache") else {},
    ),
    Rule(
        (ADAPTERS,),
        ("enable-lora", "max-loras-per-batch"),
        "low-rank adapters that are loaded at a time",
        lambda settings: (
            {"enable-lora": True, "max-loras-per-batch": settings[ADAPTERS]} if ADAPTERS in settings else {}
        ),
        lambda keys, _: {ADAPTERS: whole(keys, "max-loras-per-batch", 8)} if keys.get("enable-lora") else {},
    ),
    number(ADAPTER_RANK, "max-lora-rank", "largest rank of an adapter"),
    named(ENGINE, frozenset({"sglang"}), "the figures hold for another engine"),
)
