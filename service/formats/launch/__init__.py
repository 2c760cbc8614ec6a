"""Launch settings of training frameworks and serving engines: one table of rules, used in both directions.

``write_settings`` turns settings of an estimate's question into keys of a tool and names those that the tool
lacks; ``read_settings`` turns a configuration into settings and names the keys that are not known.
"""

import json
import tomllib
from collections.abc import Mapping
from math import ceil
from shlex import split
from typing import Final, Literal, NamedTuple, TypeAlias

from service.formats.launch import deepspeed, megatron, sglang, torchrun, torchtitan, vllm
from service.formats.launch.rules import (
    ACCUMULATION,
    ASIDE,
    CONTEXT,
    DATA,
    DEVICES,
    ENGINE,
    GLOBAL_BATCH,
    MICRO_BATCH,
    NEUTRAL,
    OBJECTIVE,
    OF_ENGINE,
    PIPELINE,
    SEQUENCE_LENGTH,
    STEPS,
    TENSOR,
    TOKENS,
    LaunchSettingValues,
    SettingRule,
    SettingValue,
    ToolKeys,
)
from service.formats.launch.surfaces import (
    build_sections,
    parse_arguments,
    parse_groups,
    parse_sections,
    render_arguments,
    render_toml,
)
from service.planning.errors import PlanningError
from service.planning.workload import PAIRED

__all__ = [
    "TABLE",
    "TOOLS",
    "LaunchSettingValues",
    "LaunchTool",
    "ReadLaunch",
    "SettingValue",
    "ToolName",
    "WrittenSettings",
    "build_sections",
    "find_tool",
    "parse_keys",
    "read_settings",
    "render_arguments",
    "render_toml",
    "write_settings",
]

ToolName: TypeAlias = Literal["torchrun", "megatron_lm", "deepspeed", "torchtitan", "vllm", "sglang"]


class LaunchTool(NamedTuple):
    """A program, the work that it runs, its rules, and the format of its keys."""

    kind: Literal["training", "inference"]
    file_format: Literal["json", "toml"] | None
    """Format of its configuration file; None if it takes arguments."""
    rules: tuple[SettingRule, ...]
    elsewhere: Mapping[str, str] = {}
    """Settings that are made elsewhere, with the place."""
    starts_only: bool = False
    """True if it only starts processes, whose work it does not know."""


TABLE: Final[Mapping[ToolName, LaunchTool]] = {
    "torchrun": LaunchTool("training", file_format=None, rules=torchrun.RULES, starts_only=True),
    "megatron_lm": LaunchTool("training", file_format=None, rules=megatron.RULES),
    "deepspeed": LaunchTool(
        "training", file_format="json", rules=deepspeed.RULES, elsewhere=deepspeed.IN_CODE
    ),
    "torchtitan": LaunchTool("training", file_format="toml", rules=torchtitan.RULES),
    "vllm": LaunchTool("inference", file_format=None, rules=vllm.RULES),
    "sglang": LaunchTool("inference", file_format=None, rules=sglang.RULES),
}
TOOLS: Final = tuple(TABLE)


def _build_other_engine_error(setting: str) -> PlanningError:
    return PlanningError("OTHER_PROGRAM", setting, "it holds for another engine, which counts otherwise")


def find_tool(text: str) -> ToolName | None:
    """Returns the tool of a name; None if it is not known."""
    return next((name for name in TOOLS if name == text), None)


class WrittenSettings(NamedTuple):
    """Keys of a tool, and an error for each setting that it lacks, with the setting as its pointer."""

    keys: ToolKeys
    missing: tuple[PlanningError, ...]


class ReadLaunch(NamedTuple):
    """Settings of a configuration, its unreadable parts, and keys without effect on a layout."""

    settings: LaunchSettingValues
    unread: tuple[PlanningError, ...]
    others: tuple[str, ...]


def write_settings(tool: ToolName, settings: LaunchSettingValues) -> WrittenSettings:
    """Returns the keys with which a tool runs ``settings``; every setting that it lacks is reported."""
    given, known = complete_settings(settings), TABLE[tool]
    keys: dict[str, SettingValue] = {}
    missing = []
    if str(given.get(ENGINE, tool)).strip().lower() != tool:
        missing = [_build_other_engine_error(setting) for setting in OF_ENGINE if setting in given]
        given = {setting: value for setting, value in given.items() if setting not in OF_ENGINE}
    for rule in known.rules:
        try:
            keys |= rule.write(given)
        except PlanningError as error:
            # It is a value from here on, and would keep the frames that it was raised in.
            missing.append(error.with_traceback(None))
    if known.starts_only:
        return WrittenSettings(keys, tuple(missing))
    said = {setting for rule in known.rules for setting in rule.settings}
    for setting, value in given.items():
        if setting in said or setting in ASIDE or value in NEUTRAL.get(setting, ()):
            continue
        detail = known.elsewhere.get(setting, "the tool has no setting for it")
        # Steps that follow from tokens are reported under the member that was sent.
        pointer = setting if setting in settings or setting != STEPS else TOKENS
        missing.append(PlanningError("NO_SETTING", pointer, detail))
    return WrittenSettings(keys, tuple(missing))


def read_settings(tool: ToolName, keys: ToolKeys, known: LaunchSettingValues | None = None) -> ReadLaunch:
    """Returns the settings of a configuration, given the ``known`` devices and the presence of experts."""
    if tool == "sglang":
        keys = sglang.normalize_keys(keys)
    settings: dict[str, SettingValue] = dict(known or {})
    unread = []
    for rule in TABLE[tool].rules:
        try:
            settings |= rule.read(keys, settings)
        except PlanningError as error:
            # A key that is not a number is reported under the setting that it would have set.
            pointer = error.pointer if error.pointer.startswith("/") else rule.settings[0]
            unread.append(PlanningError(error.code, pointer, error.detail))
        except ZeroDivisionError:
            unread.append(PlanningError("UNREADABLE", rule.settings[0], "it divides by a degree of 0"))
    names = {key for rule in TABLE[tool].rules for key in rule.keys}
    others = tuple(sorted(name for name in keys if name not in names))
    said = settings if TABLE[tool].starts_only else complete_settings(settings)
    return ReadLaunch(said, tuple(unread), others)


def parse_keys(tool: ToolName, text: str) -> ToolKeys:
    """Parses a stored configuration: its file, or arguments as text or in named groups of JSON.

    Raises PlanningError if it is neither.
    """
    file_format = TABLE[tool].file_format
    try:
        if file_format == "toml":
            return parse_sections(tomllib.loads(text))
        if file_format is None and not text.lstrip().startswith("{"):
            joined = text.replace("\\\r\n", " ").replace("\\\n", " ")
            return parse_arguments(split(joined, comments=True))
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanningError("UNREADABLE", "", f"this is not a configuration of {tool}") from error
    if not isinstance(document, dict):
        raise PlanningError("UNREADABLE", "", f"this is not a configuration of {tool}")
    return parse_groups(document) if file_format is None else parse_sections(document)


def complete_settings(settings: LaunchSettingValues) -> LaunchSettingValues:
    """Adds derived settings: replicas, micro-batches and sequences of a step, steps."""
    given = dict(settings)
    model = _multiply_degrees(given, (TENSOR, PIPELINE, CONTEXT))
    devices, micro = given.get(DEVICES), given.get(MICRO_BATCH)
    if DATA not in given and isinstance(devices, int) and model > 0:
        given[DATA] = devices // model
    data, batch, steps = given.get(DATA), given.get(GLOBAL_BATCH), given.get(ACCUMULATION)
    if isinstance(data, int) and isinstance(micro, int) and min(data, micro) > 0:
        if isinstance(batch, int) and steps is None and batch % (micro * data) == 0:
            given[ACCUMULATION] = batch // (micro * data)
        elif isinstance(steps, int) and batch is None:
            given[GLOBAL_BATCH] = steps * micro * data
    return _convert_tokens_to_steps(given)


def _convert_tokens_to_steps(given: dict[str, SettingValue]) -> LaunchSettingValues:
    """Tokens of the run as optimizer steps, where the tokens of a step are known."""
    tokens, batch, length = given.get(TOKENS), given.get(GLOBAL_BATCH), given.get(SEQUENCE_LENGTH)
    if not isinstance(tokens, int) or not isinstance(batch, int) or not isinstance(length, int):
        return given
    of_sample = length * (2 if given.get(OBJECTIVE) in PAIRED else 1)
    rest = {name: value for name, value in given.items() if name != TOKENS}
    return rest | {STEPS: ceil(tokens / (batch * of_sample))}


def _multiply_degrees(given: LaunchSettingValues, names: tuple[str, ...]) -> int:
    product = 1
    for name in names:
        value = given.get(name, 1)
        product *= value if isinstance(value, int) else 1
    return product
