"""Questions in files: changed files between two states of a directory, and the settings that changed."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from service.kit.http.problems import build_pointer

MOST_FILES: Final = 200
MOST_BYTES: Final = 4 * 1024 * 1024
_WHOLE: Final = ("source", "kind", "distribution", "process", "strategy", "currency_code")
"""Members that determine the kind of an object: if one of them changes, the other members change their
meaning.
"""


class UnreadableFileError(Exception):
    """A file that is not a readable question; the message names the file."""


class FileQuestion(NamedTuple):
    """A question and its operation: the name of an estimate, or `plan`."""

    operation: str
    question: Mapping[str, Any]


class FilePair(NamedTuple):
    """A file before and after the change; None where it does not exist."""

    name: str
    before: FileQuestion | None
    after: FileQuestion | None


class ChangedSetting(NamedTuple):
    """A member of a question that changed; a side is empty where the member is left out."""

    pointer: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    path: tuple[str | int, ...]


def list_pairs(base: Path, head: Path) -> Iterator[FilePair]:
    """Yields the files of two directories, or the two files, whose questions differ.

    Raises:
        UnreadableFileError: Neither path exists, a file is a link, there are too many, or one is not a JSON
    object.
    """
    for path in (base, head):
        if path.is_symlink():
            raise UnreadableFileError(f"{path}: links are not followed")
    if not base.exists() and not head.exists():
        raise UnreadableFileError("neither of the two paths exists")
    if base.is_file() or head.is_file():
        if base.is_dir() or head.is_dir():
            raise UnreadableFileError("one of the two paths is a file and the other a directory")
        name, there = head.name if head.exists() else base.name, {"": (base, head)}
    else:
        name, there = (
            "",
            {each: (base / each, head / each) for each in sorted(_list_names(base) | _list_names(head))},
        )
    for inner, (before, after) in there.items():
        if before.exists() and after.exists() and before.read_bytes() == after.read_bytes():
            continue
        pair = FilePair(inner or name, _read_question(before), _read_question(after))
        if pair.before != pair.after:
            yield pair


def _list_names(directory: Path) -> set[str]:
    """Returns the JSON files below a directory by their paths. Links are not followed."""
    found = set()
    for folder, _, files in os.walk(directory):
        for file in files:
            path = Path(folder, file)
            if file.endswith(".json") and not path.is_symlink():
                found.add(path.relative_to(directory).as_posix())
    if len(found) > MOST_FILES:
        raise UnreadableFileError(f"more than {MOST_FILES} files; give a directory of questions")
    return found


def _read_question(path: Path) -> FileQuestion | None:
    if not path.exists():
        return None
    if path.stat().st_size > MOST_BYTES:
        raise UnreadableFileError(f"{path}: the file has more than {MOST_BYTES} bytes")
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise UnreadableFileError(f"{path}: the file is not JSON") from None
    if not isinstance(document, dict):
        raise UnreadableFileError(f"{path}: the file is not a JSON object")
    if isinstance(document.get("request"), dict) and isinstance(document.get("operation"), str):
        return FileQuestion(document["operation"], document["request"])
    return FileQuestion(detect_operation(document), document)


def detect_operation(question: Mapping[str, Any]) -> str:
    """Returns the narrowest estimate that has all members of the question; the broadest if none has."""
    from service.schemas.base import StrictModel  # noqa: PLC0415
    from service.schemas.estimates import (  # noqa: PLC0415  # the other commands start faster without them
        CostEstimateRequest,
        MemoryEstimateRequest,
        ThroughputEstimateRequest,
        UtilityBillRequest,
    )

    if "goal" in question:
        return "plan"
    shapes: dict[str, type[StrictModel]] = {
        "memory": MemoryEstimateRequest,
        "throughput": ThroughputEstimateRequest,
        "cost": CostEstimateRequest,
    }
    for name, shape in shapes.items():
        if question.keys() <= shape.model_fields.keys():
            return name
    return "utility-bill" if question.keys() & UtilityBillRequest.model_fields.keys() else "memory"


def list_changed_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ChangedSetting]:
    """Returns the changes between two questions, member by member."""
    return list(_find_changes(before, after, ()))


def _find_changes(before: object, after: object, path: tuple[str | int, ...]) -> Iterator[ChangedSetting]:
    if before == after and isinstance(before, bool) == isinstance(after, bool):
        return
    if isinstance(before, dict) and isinstance(after, dict) and not _is_other_kind(before, after):
        for name in [*before, *(name for name in after if name not in before)]:
            if name in before and name in after:
                yield from _find_changes(before[name], after[name], (*path, name))
            else:
                sides = (tuple(side[name] for side in (each,) if name in side) for each in (before, after))
                yield _build_setting((*path, name), *sides)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _find_changes(one, other, (*path, place))
    else:
        yield _build_setting(path, (before,), (after,))


def _is_other_kind(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Returns true if two objects are of different kinds, so that their members cannot be compared."""
    return any(before.get(name) != after.get(name) for name in _WHOLE)


def _build_setting(
    path: tuple[str | int, ...], before: tuple[Any, ...], after: tuple[Any, ...]
) -> ChangedSetting:
    return ChangedSetting(build_pointer(path), before, after, path)


def apply_settings(question: Mapping[str, Any], changes: list[ChangedSetting]) -> dict[str, Any]:
    """Returns a question with some of its settings changed to their new values."""
    document: dict[str, Any] = json.loads(json.dumps(question))
    for change in changes:
        *way, last = change.path
        place: Any = document
        for step in way:
            place = place[step]
        if change.after:
            place[last] = change.after[0]
        else:
            del place[last]
    return document
