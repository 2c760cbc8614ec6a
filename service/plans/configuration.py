"""Conversion of an existing configuration of a program into a candidate of a plan."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from service.formats.launch import (
    TABLE,
    LaunchSettingValues,
    SettingValue,
    ToolName,
    find_tool,
    parse_keys,
    read_settings,
)
from service.planning.errors import PlanningError
from service.planning.parallelism import Sharding

_WORK: Final = frozenset({"total_steps", "total_samples", "total_tokens", "sequence_length"})
"""Members that are taken from the question, since the work is the same for all candidates."""


class ConfigurationRead(NamedTuple):
    """A member of `given` of a question, and notes on settings that the file leaves out."""

    given: Mapping[str, Any]
    notes: tuple[str, ...]


def read_configuration(
    name: str, tool: str, text: str, workload: Mapping[str, Any], cluster: Mapping[str, Any]
) -> ConfigurationRead:
    """Returns the settings ``text`` of a program on ``cluster``, merged into the workload of the question.

    Raises PlanningError if ``text`` is not a configuration of that program or does not run such a workload.
    """
    known = find_tool(tool)
    if known is None or TABLE[known].starts_only or TABLE[known].kind != workload.get("kind"):
        raise PlanningError("OTHER_WORKLOAD", "/workload/kind", f"{tool} does not run this kind of workload")
    count = cluster.get("accelerator_count", 1)
    read = read_settings(known, parse_keys(known, text), {"/cluster/accelerator_count": count})
    notes = [f"{error.pointer}: {error.detail}" for error in read.unread]
    run = _convert_steps_to_samples(workload)
    length = read.settings.get("/workload/sequence_length")
    if length is not None and length != run.get("sequence_length", length):
        notes.append("/workload/sequence_length: the value differs from the question and is ignored")
    if any(f"/workload/{name}" in read.settings for name in ("micro_batch_size", "global_batch_size")):
        run.pop("gradient_accumulation_steps", None)
    laid_out = _nest_settings(read.settings, "/parallelism/")
    if laid_out.get("sharding") != Sharding.HYBRID:
        laid_out.pop("sharding_group_size", None)
    said = {
        key: value for key, value in _nest_settings(read.settings, "/workload/").items() if key not in _WORK
    }
    if "global_batch_size" in said:
        said.pop("gradient_accumulation_steps", None)
    if TABLE[known].kind == "inference":
        run = _apply_engine(known, run)
    return ConfigurationRead(
        {
            "name": name,
            "cluster": dict(cluster),
            "parallelism": laid_out,
            "workload": _merge_workload(run, said),
        },
        tuple(notes),
    )


def _convert_steps_to_samples(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the workload with steps converted to sequences, which do not depend on the batch."""
    run = dict(workload)
    if "total_steps" in run and "global_batch_size" in run:
        run["total_samples"] = run.pop("total_steps") * run["global_batch_size"]
    return run


def _apply_engine(engine: ToolName, workload: dict[str, Any]) -> dict[str, Any]:
    """Returns a workload under ``engine``, without the limits of another engine."""
    asked = workload.get("engine", {})
    if str(asked.get("name", "")).strip().lower() == engine:
        return workload
    rest = {name: value for name, value in workload.items() if name != "memory_fraction"}
    return {**rest, "engine": {"name": engine}}


def _nest_settings(settings: LaunchSettingValues, room: str) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for pointer, value in settings.items():
        if pointer.startswith(room):
            _put_value(document, pointer.removeprefix(room).split("/"), value)
    return document


def _put_value(document: dict[str, Any], path: list[str], value: SettingValue) -> None:
    for name in path[:-1]:
        document = document.setdefault(name, {})
    document[path[-1]] = value


def _merge_workload(workload: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the workload with the members of a configuration merged in.

    Recomputation is replaced as a whole.
    """
    for name, value in said.items():
        before = workload.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and name != "recomputation":
            workload[name] = {**before, **value}
        else:
            workload[name] = value
    return workload
