"""Rules between a setting and the keys of a tool, used in both directions.

Settings are flat: the JSON Pointer of a member of an estimate's question, such as /parallelism/tensor. Keys
are those of the tool: a flag without its dashes, or section and key joined by a dot.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from service.planning.errors import PlanningError

SettingValue: TypeAlias = bool | int | float | str | list[str]
LaunchSettingValues: TypeAlias = Mapping[str, SettingValue]
ToolKeys: TypeAlias = Mapping[str, SettingValue]

LEFT_OPEN: Final = "auto"
"""Value that DeepSpeed's integrations and engines write if another program or the device decides."""


class SettingRule(NamedTuple):
    """One meaning as a setting and as keys.

    ``write`` returns the keys for ``settings``, ``read`` the settings for ``keys``, given those that are
    ``known`` already; both raise PlanningError if that is not possible, with the setting as its pointer.
    """

    settings: tuple[str, ...]
    keys: tuple[str, ...]
    meaning: str
    write: Callable[[LaunchSettingValues], ToolKeys]
    read: Callable[[ToolKeys, LaunchSettingValues], LaunchSettingValues]


def build_inexpressible_error(setting: str, detail: str) -> PlanningError:
    """Builds the error for a setting that the tool lacks."""
    return PlanningError("NO_SETTING", setting, detail)


def build_unreadable_error(setting: str, detail: str) -> PlanningError:
    """Builds the error for keys that do not determine a setting."""
    return PlanningError("UNREADABLE", setting, detail)


def read_integer(settings: Mapping[str, SettingValue], name: str, default: int | None = None) -> int:
    """Returns a whole number, or ``default`` if it is absent. Raises PlanningError without one."""
    value = settings.get(name, default)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise build_unreadable_error(name, f"{name.rsplit('/', 1)[-1]} must be a whole number here")
    return value


def build_number_rule(setting: str, key: str, meaning: str) -> SettingRule:
    """Maps a whole number to another name."""

    def write(settings: LaunchSettingValues) -> ToolKeys:
        return {key: settings[setting]} if setting in settings else {}

    def read(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
        if keys.get(key) == LEFT_OPEN:
            raise build_unreadable_error(setting, f"{key} is left to another program")
        return {setting: read_integer(keys, key)} if key in keys else {}

    return SettingRule((setting,), (key,), meaning, write, read)


def build_share_rule(setting: str, key: str, meaning: str) -> SettingRule:
    """Maps a share of 1 to another name."""

    def write(settings: LaunchSettingValues) -> ToolKeys:
        return {key: settings[setting]} if setting in settings else {}

    def read(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
        if key not in keys:
            return {}
        value = keys[key]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise build_unreadable_error(setting, f"{key} must be a number here")
        return {setting: float(value)}

    return SettingRule((setting,), (key,), meaning, write, read)


def build_choice_rule(
    setting: str,
    meaning: str,
    ways: Mapping[str | bool, Sequence[ToolKeys]],
    *,
    silent: Mapping[str, Sequence[SettingValue]] | None = None,
    why: str = "the tool has no setting for it",
) -> SettingRule:
    """Maps each value to keys of the tool: the first way is written, all of them are read.

    A way is read if its keys hold and the other keys have only ``silent`` values, which do not change the
    meaning of the others.
    """
    quiet = silent or {}
    names = tuple(
        dict.fromkeys((*(key for options in ways.values() for way in options for key in way), *quiet))
    )

    def write(settings: LaunchSettingValues) -> ToolKeys:
        value = settings.get(setting)
        if value is None:
            return {}
        if not isinstance(value, str | bool) or value not in ways:
            raise build_inexpressible_error(setting, why)
        return ways[value][0]

    def read(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
        said = {name: keys[name] for name in names if name in keys}
        found = [
            (len(way), value)
            for value, options in ways.items()
            for way in options
            if _is_stated(way, said, quiet)
        ]
        if found:
            return {setting: max(found, key=lambda pair: pair[0])[1]}
        if all(value in quiet.get(name, ()) for name, value in said.items()):
            return {}
        raise build_unreadable_error(setting, f"{', '.join(sorted(said))} give none of its values")

    return SettingRule((setting,), names, meaning, write, read)


def _is_stated(way: ToolKeys, said: ToolKeys, quiet: Mapping[str, Sequence[SettingValue]]) -> bool:
    rest = {name: value for name, value in said.items() if name not in way}
    return all(name in said and said[name] == value for name, value in way.items()) and all(
        value in quiet.get(name, ()) for name, value in rest.items()
    )


def build_flag_rule(setting: str, key: str, meaning: str) -> SettingRule:
    """Maps a setting to a flag that is present if the setting holds."""
    return build_choice_rule(setting, meaning, {True: ({key: True},), False: ({},)})


def build_implied_rule(setting: str, meaning: str) -> SettingRule:
    """Declares a setting that the tool derives from the others."""
    return SettingRule((setting,), (), meaning, lambda _: {}, lambda _keys, _known: {})


def build_name_rule(setting: str, names: frozenset[str], detail: str) -> SettingRule:
    """Accepts only programs with one of these names, in any spelling, for which the figures hold."""

    def write(settings: LaunchSettingValues) -> ToolKeys:
        name = settings.get(setting)
        if name is not None and str(name).strip().lower() not in names:
            raise PlanningError("OTHER_PROGRAM", setting, detail)
        return {}

    return SettingRule((setting,), (), detail, write, lambda _keys, _known: {})


TENSOR: Final = "/parallelism/tensor"
PIPELINE: Final = "/parallelism/pipeline"
DATA: Final = "/parallelism/data"
CONTEXT: Final = "/parallelism/context"
EXPERT: Final = "/parallelism/expert"
EXPERT_TENSOR: Final = "/parallelism/expert_tensor"
SEQUENCE_PARALLEL: Final = "/parallelism/sequence_parallel"
SHARDING: Final = "/parallelism/sharding"
GROUP: Final = "/parallelism/sharding_group_size"
SCHEDULE: Final = "/parallelism/pipeline_schedule"
VIRTUAL: Final = "/parallelism/virtual_stages"
OVERLAP: Final = "/parallelism/overlap_expert_communication"
OVERLAP_TENSOR: Final = "/parallelism/overlap_tensor_communication"
DEVICES: Final = "/cluster/accelerator_count"
PER_NODE: Final = "/cluster/accelerators_per_node"
EXPERTS: Final = "/model/experts"
"""Setting that is true if the model has experts."""
BLOCKS: Final = "/model/blocks"
"""Setting with the number of blocks of the model."""
SEQUENCE_LENGTH: Final = "/workload/sequence_length"
MICRO_BATCH: Final = "/workload/micro_batch_size"
ACCUMULATION: Final = "/workload/gradient_accumulation_steps"
GLOBAL_BATCH: Final = "/workload/global_batch_size"
PRECISION: Final = "/workload/precision"
GRADIENTS: Final = "/workload/gradient_precision"
STATES: Final = "/workload/optimizer_state_precision"
OPTIMIZER: Final = "/workload/optimizer"
IN_BACKWARD: Final = "/workload/optimizer_in_backward"
ATTENTION: Final = "/workload/attention"
FUSION: Final = "/workload/fusion"
CUDA_GRAPHS: Final = "/workload/cuda_graphs"
EXPERT_BALANCE: Final = "/workload/expert_balance"
EXPERT_CAPACITY: Final = "/workload/expert_capacity_factor"
LOSS: Final = "/workload/loss"
RECOMPUTATION: Final = "/workload/recomputation/strategy"
INTERVAL: Final = "/workload/recomputation/k"
OFFLOADED_OPTIMIZER: Final = "/workload/offload/optimizer"
OFFLOADED_PARAMETERS: Final = "/workload/offload/parameters"
OFFLOADED_ACTIVATIONS: Final = "/workload/offload/activations"
STEPS: Final = "/workload/total_steps"
SAMPLES: Final = "/workload/total_samples"
TOKENS: Final = "/workload/total_tokens"
OBJECTIVE: Final = "/workload/objective"
FRAMEWORK: Final = "/workload/framework/name"
WEIGHTS: Final = "/workload/weight_precision"
FORMAT: Final = "/workload/weight_format"
CACHE: Final = "/workload/kv_cache_precision"
RECURRENT: Final = "/workload/state_precision"
ENGINE: Final = "/workload/engine/name"
MEMORY_FRACTION: Final = "/workload/memory_fraction"
REQUESTS: Final = "/workload/engine/max_num_seqs"
BATCHED: Final = "/workload/engine/max_batched_tokens"
BLOCK: Final = "/workload/engine/block_tokens"
LENGTH: Final = "/workload/engine/max_model_len"
CHUNKED: Final = "/workload/engine/chunked_prefill"
GRAPHS: Final = "/workload/engine/cuda_graphs"
PREFIX: Final = "/workload/prefix_cache_hit_rate"
SCHEDULER: Final = "/workload/scheduler"
ADAPTERS: Final = "/workload/adapters/max_loras"
ADAPTER_RANK: Final = "/workload/adapters/rank"

NEUTRAL: Final[Mapping[str, tuple[SettingValue, ...]]] = {
    **dict.fromkeys((TENSOR, PIPELINE, DATA, CONTEXT, EXPERT, VIRTUAL), (1,)),
    SEQUENCE_PARALLEL: (False,),
    SHARDING: ("none",),
    SCHEDULE: ("one_f_one_b",),
    OVERLAP: (False,),
    OVERLAP_TENSOR: (False,),
    IN_BACKWARD: (False,),
    ATTENTION: ("flash",),
    CUDA_GRAPHS: ("none",),
    EXPERT_BALANCE: ("trained",),
    LOSS: ("fp32",),
    RECOMPUTATION: ("none",),
    OFFLOADED_OPTIMIZER: ("none",),
    OFFLOADED_PARAMETERS: ("none",),
    OFFLOADED_ACTIVATIONS: ("none",),
    OBJECTIVE: ("pretraining", "supervised"),
    "/workload/adaptation/kind": ("full",),
    GRAPHS: (True,),
    PREFIX: (0.0,),
    SCHEDULER: ("continuous",),
}
"""Values that need no key if a tool has none."""

OF_ENGINE: Final = (MEMORY_FRACTION, REQUESTS, BATCHED, BLOCK, CHUNKED)
"""Limits that hold only for the engine that they were given for, because others count differently."""

ASIDE: Final = frozenset({DEVICES, PER_NODE, EXPERTS, BLOCKS})
"""Settings that rules read and that no row chooses."""
