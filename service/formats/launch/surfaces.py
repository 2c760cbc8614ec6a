"""Notation of keys: arguments of a command line, or sections of a configuration file."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from service.formats.launch.rules import SettingValue, ToolKeys


def render_arguments(keys: ToolKeys) -> list[str]:
    """Returns arguments of a command line; a flag that is true has no value."""
    return [part for name, value in keys.items() for part in _render_argument(name, value)]


def _render_argument(name: str, value: SettingValue) -> Iterator[str]:
    yield f"--{name}"
    if isinstance(value, list):
        yield from value
    elif value is not True:
        yield str(value)


def parse_arguments(parts: Sequence[str]) -> ToolKeys:
    """Keys of arguments, ``--name value``, ``--name=value`` or ``--name`` alone."""
    keys: dict[str, SettingValue] = {}
    name = None
    for part in parts:
        if part.startswith("--"):
            name, has_value, text = part[2:].partition("=")
            keys[name] = parse_scalar(text) if has_value else True
        elif name is not None:
            before = keys[name]
            keys[name] = parse_scalar(part) if before is True else [*_list_texts(before), part]
    return keys


def _list_texts(value: SettingValue) -> Iterable[str]:
    return value if isinstance(value, list) else (str(value),)


def parse_groups(document: Mapping[str, object]) -> ToolKeys:
    """Keys of named groups of arguments, whose values may be text."""
    return {
        name: parse_scalar(value) if isinstance(value, str) else _convert_value(value)
        for group in document.values()
        if isinstance(group, Mapping)
        for name, value in group.items()
    }


def parse_scalar(text: str) -> SettingValue:
    """A number where the text is one, else the text."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def build_sections(keys: ToolKeys) -> dict[str, object]:
    """Returns sections of a configuration file; a dot separates a section from its key."""
    document: dict[str, object] = {}
    for name, value in keys.items():
        *path, last = name.split(".")
        inside = document
        for part in path:
            found = inside.setdefault(part, {})
            if isinstance(found, dict):
                inside = found
        inside[last] = value
    return document


def parse_sections(document: Mapping[str, object], *path: str) -> ToolKeys:
    """Keys of a parsed configuration file."""
    keys: dict[str, SettingValue] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            keys |= parse_sections(value, *path, name)
        else:
            keys[".".join((*path, name))] = _convert_value(value)
    return keys


def _convert_value(value: object) -> SettingValue:
    """A value that rules compare; a list is compared as text, and null as the word."""
    if isinstance(value, bool | int | float | str):
        return value
    return [str(item) for item in value] if isinstance(value, list) else str(value)


def render_toml(document: Mapping[str, object]) -> str:
    """A configuration of one level of sections as TOML."""
    lines = []
    for section, members in document.items():
        if isinstance(members, Mapping):
            lines.append(f"[{section}]")
            lines += [f"{name} = {json.dumps(value)}" for name, value in members.items()]
            lines.append("")
    return "\n".join(lines)
