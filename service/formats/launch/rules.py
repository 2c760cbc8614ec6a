"""How a setting of ours and keys of a tool say the same: one rule, read in both directions.

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
"""What DeepSpeed's integrations and engines write where another program or the device decides."""


class SettingRule(NamedTuple):
    """One meaning in both languages.

    ``write`` gives the keys that say ``settings``, ``read`` the settings that ``keys`` say, beside what is
    ``known`` already; both raise PlanningError where that cannot be said, with the setting as its pointer.
    """

    settings: tuple[str, ...]
    keys: tuple[str, ...]
    meaning: str
    write: Callable[[LaunchSettingValues], ToolKeys]
    read: Callable[[ToolKeys, LaunchSettingValues], LaunchSettingValues]


def build_inexpressible_error(setting: str, detail: str) -> PlanningError:
    """The tool has no way to say a setting."""
    return PlanningError("NO_SETTING", setting, detail)


def build_unreadable_error(setting: str, detail: str) -> PlanningError:
    """Keys do not say what a setting is."""
    return PlanningError("UNREADABLE", setting, detail)


def read_integer(settings: Mapping[str, SettingValue], name: str, default: int | None = None) -> int:
    """A whole number; ``default`` where it is not said. Raises PlanningError without one."""
    value = settings.get(name, default)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise build_unreadable_error(name, f"{name.rsplit('/', 1)[-1]} is no whole number here")
    return value


def build_number_rule(setting: str, key: str, meaning: str) -> SettingRule:
    """The same whole number under another name."""

    def write(settings: LaunchSettingValues) -> ToolKeys:
        return {key: settings[setting]} if setting in settings else {}

    def read(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
        if keys.get(key) == LEFT_OPEN:
            raise build_unreadable_error(setting, f"{key} is left to another program")
        return {setting: read_integer(keys, key)} if key in keys else {}

    return SettingRule((setting,), (key,), meaning, write, read)


def build_share_rule(setting: str, key: str, meaning: str) -> SettingRule:
    """The same share of 1 under another name."""

    def write(settings: LaunchSettingValues) -> ToolKeys:
        return {key: settings[setting]} if setting in settings else {}

    def read(keys: ToolKeys, _: LaunchSettingValues) -> LaunchSettingValues:
        if key not in keys:
            return {}
        value = keys[key]
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise build_unreadable_error(setting, f"{key} is no number here")
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
    """Each value of ours in keys of the tool: the first way is written, all of them are read.

    A way is read where its keys hold and nothing else is said but ``silent`` values, those that a key has
    without changing what the others mean.
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
        raise build_unreadable_error(setting, f"what {', '.join(sorted(said))} say is none of its values")

    return SettingRule((setting,), names, meaning, write, read)


def _is_stated(way: ToolKeys, said: ToolKeys, quiet: Mapping[str, Sequence[SettingValue]]) -> bool:
    rest = {name: value for name, value in said.items() if name not in way}
    return all(name in said and said[name] == value for name, value in way.items()) and all(
        value in quiet.get(name, ()) for name, value in rest.items()
    )


def build_flag_rule(setting: str, key: str, meaning: str) -> SettingRule:
    """A flag that is there where the setting holds."""
    return build_choice_rule(setting, meaning, {True: ({key: True},), False: ({},)})


def build_implied_rule(setting: str, meaning: str) -> SettingRule:
    """A setting that the tool works out from the others."""
    return SettingRule((setting,), (), meaning, lambda _: {}, lambda _keys, _known: {})


def build_name_rule(setting: str, names: frozenset[str], detail: str) -> SettingRule:
    """Figures that hold for a program of one of these names, however it is spelled."""

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
DEVICES: Final = "/cluster/accelerator_count"
PER_NODE: Final = "/cluster/accelerators_per_node"
EXPERTS: Final = "/model/experts"
"""Whether the model has experts."""
BLOCKS: Final = "/model/blocks"
"""Blocks of the model."""
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
    IN_BACKWARD: (False,),
    ATTENTION: ("flash",),
    LOSS: ("fp32",),
    RECOMPUTATION: ("none",),
    OFFLOADED_OPTIMIZER: ("none",),
    OFFLOADED_PARAMETERS: ("none",),
    OFFLOADED_ACTIVATIONS: ("none",),
    OBJECTIVE: ("pretraining", "supervised"),
    "/workload/adaptation/kind": ("full",),
    "/workload/weight_average": (False,),
    GRAPHS: (True,),
    PREFIX: (0.0,),
    SCHEDULER: ("continuous",),
}
"""Values that need no setting, where a tool has none."""

OF_ENGINE: Final = (MEMORY_FRACTION, REQUESTS, BATCHED, BLOCK, CHUNKED)
"""Limits that hold for the engine that they were given for: another one counts them otherwise."""

ASIDE: Final = frozenset({DEVICES, PER_NODE, EXPERTS, BLOCKS})
"""What rules look at and no row chooses for itself."""
