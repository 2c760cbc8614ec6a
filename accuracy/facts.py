"""Facts from the free text of a row: engine settings, software, the counting of batches."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from accuracy import recipes
from accuracy.rows import MeasuredRow
from service.evidence.measured import MemoryView
from service.planning.units import GIBIBYTE_BYTES

_SETTING: Final = {
    name: re.compile(rf"\b{name}[= ]\s*(\d+(?:\.\d+)?)")
    for name in ("gpu_memory_utilization", "total_gpu_memory", "max_model_len", "max_num_seqs", "block_size")
}


def setting(row: MeasuredRow, name: str) -> float | None:
    """Returns a setting that the notes print as ``name=value`` or ``name value``."""
    match = _SETTING[name].search(row.text.get("notes", ""))
    return float(match[1]) if match else None


def device_bytes(row: MeasuredRow) -> int | None:
    """Returns the device memory in the log. Engines print decimals; a whole number is the device's label."""
    printed = setting(row, "total_gpu_memory")
    return None if printed is None or printed.is_integer() else round(printed * GIBIBYTE_BYTES)


_LABEL = re.compile(r"(?<![\d.])(\d+)gb(?![a-z])")


def label_gigabytes(row: MeasuredRow) -> float | None:
    """The memory that the name of a device outside the catalog carries."""
    match = _LABEL.search(row.accelerator_id.replace("-class", ""))
    return float(match[1]) if match else None


class SourceFramework(NamedTuple):
    """A training framework of a source, with unstated settings of its recipes."""

    name: str
    attention: str = "flash"
    pure: bool = False
    """True if ``bf16`` means that weights and optimizer states are bf16 too."""
    sequence_parallel: bool = False
    """True if its tensor parallelism always divides the activations between layers too."""
    splits_local_batch: bool = False
    """True if a pipeline cuts the stated local batch into as many micro-batches as it has stages."""
    adapted: tuple[str, ...] = ()
    """Matrices that its recipes add low-rank ones to."""
    rank: int | None = None
    """Rank of the low-rank matrices, if the row states none."""
    loss: str | None = None
    """Computation of the loss from logits in its recipes, if unusual."""
    recomputation: str = "none"
    """Recomputation of its recipes, if the row leaves it open."""
    view: MemoryView = MemoryView.DEVICE
    """Source of its peaks of memory."""
    sharding: str | None = None
    """Sharding of the training state in its recipes, if nothing else is stated."""


_FRAMEWORKS: Final[Mapping[str, SourceFramework]] = {
    "torchtitan": SourceFramework(
        "torchtitan", sequence_parallel=True, splits_local_batch=True, view=MemoryView.RESERVED
    ),
    "torchtune": SourceFramework(
        "torchtune",
        pure=True,
        adapted=("query", "value", "output", "gate", "up", "down"),
        rank=8,
        loss="chunked",
        recomputation="full",
        view=MemoryView.ALLOCATED,
    ),
    "LitGPT": SourceFramework(
        "litgpt", pure=True, adapted=("query", "value"), loss="narrow", view=MemoryView.ALLOCATED
    ),
    "HF PEFT": SourceFramework("transformers"),
    "QLoRA": SourceFramework("transformers"),
    "InternEvo": SourceFramework("internevo"),
    "BigScience BLOOM": SourceFramework("megatron_deepspeed", attention="standard"),
    "MosaicML llm-foundry": SourceFramework("fsdp", loss="narrow"),
    "NVIDIA Megatron-Bridge": SourceFramework("megatron_core", sequence_parallel=True, sharding="zero_1"),
    "NVIDIA NeMo": SourceFramework("megatron_core"),
    "IBM fms-fsdp": SourceFramework("fsdp"),
    "LLMQ": SourceFramework("llmq", pure=True),
    "Megatron-LM": SourceFramework("megatron_lm"),
    "Megatron-LM SC21": SourceFramework("megatron_lm", attention="standard"),
    "Korthikanti 2022": SourceFramework("megatron_lm", attention="standard"),
    "vTrain": SourceFramework("megatron_deepspeed", attention="standard"),
    "MaxText": SourceFramework("maxtext"),
    "TPU recipes": SourceFramework("maxtext"),
}
_CONTAINERS: Final[Mapping[str, SourceFramework]] = {
    "container NeMo": SourceFramework("megatron_core"),
    "container MaxText": SourceFramework("maxtext"),
}
"""Frameworks by the container that the notes of a row name, where a source has several."""


def framework(row: MeasuredRow) -> SourceFramework | None:
    """Returns the framework of a training row, by its source or its container."""
    notes = row.text.get("notes", "")
    known = [name for name in _FRAMEWORKS if row.source.startswith(name)]
    if known:
        return _FRAMEWORKS[max(known, key=len)]
    return next((of for name, of in _CONTAINERS.items() if name in notes), None)


_MONTH = re.compile(r"_(20\d\d)-?(\d\d)_")
_COMPILES_LOSS: Final = "202502"
"""Month from which torchtitan compiles the loss with the model."""


def is_compiled(row: MeasuredRow) -> bool:
    """Returns true if torch.compile compiles the blocks."""
    return "compile" in row.text.get("method", "").lower()


def loss(row: MeasuredRow) -> str | None:
    """Returns the computation of the loss from logits, if unusual.

    A compiled loss makes log-probabilities and gradients in one kernel each, at the width of the logits.
    """
    known = framework(row)
    if known is None:
        return None
    month = _MONTH.search(row.text.get("source_ref", ""))
    compiles = known.name == "torchtitan" and is_compiled(row) and month is not None
    if compiles and month is not None and "".join(month.groups()) >= _COMPILES_LOSS:
        return "narrow"
    return known.loss


def view(row: MeasuredRow) -> MemoryView:
    """Returns the source of a row's peak of memory."""
    known = framework(row)
    return known.view if known else MemoryView.DEVICE


_ENGINES: Final = (
    ("neuronx", None),
    ("vllm", "vllm"),
    ("sglang", "sglang"),
    ("tensorrt", "tensorrt-llm"),
    ("trtllm", "tensorrt-llm"),
    ("trt-llm", "tensorrt-llm"),
    ("llama.cpp", "llama.cpp"),
    ("transformers", "transformers"),
    ("litgpt", "litgpt"),
)


def engine(row: MeasuredRow) -> str | None:
    """Returns the engine of a serving row by its name in the service.

    None for one that the service does not know. Transformers NeuronX is one: it compiles a model as a whole,
    and shares the configurations of Transformers but none of its kernels.
    """
    text = row.text.get("engine", "").lower()
    return next((name for start, name in _ENGINES if start in text), None)


_BEFORE_HYBRID_CACHES = "0.9"
"""Last version of vLLM that charges windowed layers at full length."""


_ONLY_V0 = frozenset({"non_torch_memory_per_gpu", "activation_peak_per_gpu"})
"""Figures that the first engine of vLLM logs, and the second not before 0.9."""


def engine_versions(row: MeasuredRow, run: Mapping[str, MeasuredRow] | None = None) -> list[str]:
    """Returns the versions that the source states or that its notes imply. A slash leaves both open."""
    text = row.text.get("engine_version", "").strip()
    if re.fullmatch(r"0\.8\.\w+", text) and engine(row) == "vllm" and _ONLY_V0 & (run or {}).keys():
        return [f"{text} V0"]
    if re.fullmatch(r"[\d.]+(/[\d.]+)+", text):
        return text.split("/")
    changed = re.fullmatch(r"(\d+\.\d+)\.(\d+)\+PR", text)
    if changed:
        # A change under review is in the next version.
        return [f"{changed[1]}.{int(changed[2]) + 1}"]
    if not text and engine(row) == "vllm" and says(row, "at full length"):
        return [_BEFORE_HYBRID_CACHES]
    return [text] if text else []


_ALLOCATED = ("Qwen3 speed benchmark",)
"""Sources whose figures are not peaks: for 16-bit, FP8 and GPTQ weights they are weights, cache and 33 to 48
MiB at every length.
"""


def cache_rounding(row: MeasuredRow) -> float:
    """Returns the share that the allocator of a source adds to a cache.

    The AWQ runs of the Qwen3 table had an environment of their own. Their caches are an eighth larger than
    their tokens at every length: 2,049, 8,193, 16,385 and 32,769 rounded up to eighths of powers of two.
    """
    rounded = leaves_passing_out(row) and row.precision.get("quantisation") == "awq"
    return 1.0 / 8.0 if rounded else 0.0


def leaves_passing_out(row: MeasuredRow) -> bool:
    """Returns true if the source counts memory that stays allocated, without the workspace of a prompt."""
    return row.source.startswith(_ALLOCATED)


_LOW_RANK: Final = frozenset({"lora", "qlora"})
_LORA_RANK = re.compile(r"\br=(\d+)")


def lora_rank(row: MeasuredRow) -> int | None:
    """Returns the rank that the text names."""
    match = _LORA_RANK.search(f"{row.text.get('method', '')} {row.text.get('notes', '')}")
    return int(match[1]) if match else None


def packing(row: MeasuredRow) -> str:
    """Returns the format of NF4 weights: with plain scales if the row says so, else with packed ones."""
    return "nf4" if row.precision.get("quantisation") == "nf4" and row.source == "LitGPT" else "nf4_double"


_MICRO_COUNT = re.compile(r"micro_num (\d+)")


def micro_batches(row: MeasuredRow) -> int | None:
    """Returns the micro-batches of a step, if the text states them."""
    match = _MICRO_COUNT.search(row.text.get("method", ""))
    return int(match[1]) if match else None


def says(row: MeasuredRow, *words: str) -> bool:
    """Returns true if method or notes contain one of ``words``, in any case."""
    text = f"{row.text.get('method', '')} {row.text.get('notes', '')}".lower()
    return any(word in text for word in words)


def overlaps_experts(row: MeasuredRow) -> bool:
    """Returns true if a run sends tokens to its experts behind other work: by its recipe, or in DualPipe."""
    if says(row, "dualpipe"):
        return True
    stated = [each.get("moe_a2a_overlap") for each in recipes.list_recipes(row)]
    return bool(stated) and all(str(each).lower() == "true" for each in stated)


def overlaps_products(row: MeasuredRow) -> bool | None:
    """Returns true if a run sends tensor-parallel collectives beside products, None if nothing states it.

    torchtitan calls it asynchronous, and tensor parallelism without it vanilla.
    """
    if says(row, "tensor-parallel overlap", "async tp", "asynctp"):
        return True
    if says(row, "vanilla tp"):
        return False
    stated = {str(each.get("tp_comm_overlap")).lower() for each in recipes.list_recipes(row)}
    return {"true": True, "false": False}.get(next(iter(stated))) if len(stated) == 1 else None


_CAPACITY: Final = re.compile(r"capacity factor (\d+(?:\.\d+)?)")
_DROPPING_RECIPES: Final = {"NeMo": ("grok-1", "deepseek-v3", "mixtral")}
"""Models whose recipes pad experts to the mean of their tokens, by container.

``moe_expert_capacity_factor`` of grok1_314b.yaml in NVIDIA's dgxc-benchmarking, and MegatronTokenDropCallback
in NeMo's performance scripts of DeepSeek-V3 and Mixtral, whose factor is 1.
"""


def get_expert_capacity(row: MeasuredRow) -> float | None:
    """Returns the capacity factor of the experts of a run by its recipe, its name or its notes."""
    stated = {
        float(each["moe_capacity_factor"])
        for each in recipes.list_recipes(row)
        if each.get("moe_capacity_factor")
    }
    if len(stated) == 1:
        return stated.pop()
    notes = row.text.get("notes", "")
    printed = _CAPACITY.search(notes)
    if printed:
        return float(printed[1])
    drops = "tokendrop" in row.text.get("model", "").lower() or any(
        f"container {name} " in notes and row.model_id.startswith(models)
        for name, models in _DROPPING_RECIPES.items()
    )
    return 1.0 if drops else None


def is_load_forced(row: MeasuredRow) -> bool:
    """Returns true if a benchmark overrides the router, so that every expert takes as many tokens."""
    stated = {
        str(each["moe_force_load_balancing"]).lower()
        for each in recipes.list_recipes(row)
        if each.get("moe_force_load_balancing")
    }
    return stated == {"true"} if stated else says(row, "force-balanced")


def get_cuda_graphs(row: MeasuredRow) -> str | None:
    """Returns the CUDA graphs of the recipes of a row, None if they state none or disagree."""
    stated = {
        _read_graphs(str(each["cuda_graph_impl"]), str(each.get("cuda_graph_scope")))
        for each in recipes.list_recipes(row)
        if each.get("cuda_graph_impl")
    }
    return stated.pop() if len(stated) == 1 else None


def _read_graphs(implementation: str, scope: str) -> str:
    if implementation == "full_iteration" or (implementation == "local" and scope == "full_iteration"):
        return "iteration"
    return "none" if implementation in ("none", "enable_cuda_graph=false") else "layer"


def may_offload_activations(row: MeasuredRow) -> bool:
    """Returns true if kept inputs of blocks may be on the host: torchtune's adapters, if not stated."""
    return (
        row.source.startswith("torchtune") and row.adaptation in _LOW_RANK and row.recomputation == "unknown"
    )


def is_one_device_recipe(row: MeasuredRow) -> bool:
    """Returns true for torchtune's recipe of all parameters on one device, with 8-bit optimizer states."""
    return row.source.startswith("torchtune") and row.adaptation == "full" and row.text["n_gpus"] == "1"


class AcceleratorVariant(NamedTuple):
    """A part of the catalog with another memory or power limit, as the notes of its rows describe it."""

    part: str
    capacity_bytes: int
    bandwidth_bytes_per_second: float
    power_limit_watts: float


VARIANTS: Final[Mapping[str, AcceleratorVariant]] = {
    "?h100-96gb-hbm2e-500w": AcceleratorVariant("h100-sxm", 96 * 2**30, 2.4e12, 500.0),
}
"""Accelerators outside the catalog whose rows state the differences."""

EITHER: Final[Mapping[str, tuple[str, ...]]] = {
    "?a100-80gb": ("a100-sxm-80gb", "a100-pcie-80gb"),
    "?a100": ("a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "a100-pcie-40gb"),
    "?ascend-910b": ("ascend-910b",),
    "?m2-ultra-76-core-gpu-192gb": ("apple-m2-ultra-192gb",),
    "?m3-max-40-core-gpu-64gb": ("apple-m3-max-64gb",),
    "?rtx-4000-ada-20gb": ("rtx-4000-ada",),
    "?rtx-5000-ada-32gb": ("rtx-5000-ada",),
    "?rtx-5060-ti-16gb": ("rtx-5060-ti-16gb",),
}
"""Parts of the catalog under other names; several where a name leaves the form factor open, the likeliest
first."""


class ClusterNetwork(NamedTuple):
    """Network between the nodes of a cluster: kind, bytes per second of an interface, interfaces per node."""

    kind: str
    bytes_per_second: float
    per_node: int


_INTERFACES = re.compile(r"(\d+)x(\d+)Gb RoCE per node")
_BETWEEN_NODES = re.compile(r"A100 sections: RoCE (\d+) Gbps node-node")
_GIGABIT_BYTES = 1.25e8


def network(row: MeasuredRow) -> ClusterNetwork | None:
    """Returns the network from the notes.

    Jean Zay's nodes of eight A100 have four Omni-Path ports (IDRIS).
    """
    notes = row.text.get("notes", "")
    if match := _INTERFACES.search(notes):
        return ClusterNetwork("roce", float(match[2]) * _GIGABIT_BYTES, int(match[1]))
    if (match := _BETWEEN_NODES.search(notes)) and "a100" in row.accelerator_id:
        return ClusterNetwork("roce", float(match[1]) * _GIGABIT_BYTES, 1)
    if "Jean Zay" in notes:
        return ClusterNetwork("infiniband", 100.0 * _GIGABIT_BYTES, 4)
    return None


_MEAN_TOKENS: Final = {"Alpaca": 135}
"""Mean tokens of a sample. Alpaca: 47,764,738 bytes of 52,002 examples (data set card), which hold each
sample twice, once in a prompt of some 190 bytes: 550 bytes of text a sample, at 4.1 bytes a token.
"""


def mean_tokens(row: MeasuredRow) -> int | None:
    """Returns the tokens of a sample of the data set that the notes name, if samples are not packed."""
    notes = row.text.get("notes", "")
    return next((tokens for name, tokens in _MEAN_TOKENS.items() if notes.startswith(name)), None)
