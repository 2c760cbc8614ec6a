"""Questions in files: which of them changed between two states of a directory, and in which settings."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from service.kit.http.problems import pointer

MOST_FILES: Final = 200
MOST_BYTES: Final = 4 * 1024 * 1024
_WHOLE: Final = ("source", "kind", "distribution", "process", "strategy", "currency_code")
"""Members that say what an object is: where one of them moves, the others mean something else."""


class Unreadable(Exception):
    """A file is no question; the message names it."""


class Asked(NamedTuple):
    """A question, and of which kind it is: the name of an estimate, or plan."""

    operation: str
    question: Mapping[str, Any]


class Pair(NamedTuple):
    """A file before and after; None where it is not there."""

    name: str
    before: Asked | None
    after: Asked | None


class Setting(NamedTuple):
    """A member of a question that changed; without a value where it is left out."""

    pointer: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    path: tuple[str | int, ...]


def pairs(base: Path, head: Path) -> Iterator[Pair]:
    """The files of two directories, or two files, whose questions differ.

    Raises:
        Unreadable: there is neither, one is a link, there are too many of them, or one is no JSON object.
    """
    for path in (base, head):
        if path.is_symlink():
            raise Unreadable(f"{path}: a link, which is not followed")
    if not base.exists() and not head.exists():
        raise Unreadable("neither of the two is there")
    if base.is_file() or head.is_file():
        if base.is_dir() or head.is_dir():
            raise Unreadable("one of the two is a file and the other a directory")
        name, there = head.name if head.exists() else base.name, {"": (base, head)}
    else:
        name, there = "", {each: (base / each, head / each) for each in sorted(_names(base) | _names(head))}
    for inner, (before, after) in there.items():
        if before.exists() and after.exists() and before.read_bytes() == after.read_bytes():
            continue
        pair = Pair(inner or name, _asked(before), _asked(after))
        if pair.before != pair.after:
            yield pair


def _names(directory: Path) -> set[str]:
    """JSON files below a directory by their paths; links are not followed, whoever wrote them."""
    found = set()
    for folder, _, files in os.walk(directory):
        for file in files:
            path = Path(folder, file)
            if file.endswith(".json") and not path.is_symlink():
                found.add(path.relative_to(directory).as_posix())
    if len(found) > MOST_FILES:
        raise Unreadable(f"more than {MOST_FILES} files: give a directory of questions")
    return found


def _asked(path: Path) -> Asked | None:
    if not path.exists():
        return None
    if path.stat().st_size > MOST_BYTES:
        raise Unreadable(f"{path}: more than {MOST_BYTES} bytes")
    try:
        document = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise Unreadable(f"{path}: not JSON") from None
    if not isinstance(document, dict):
        raise Unreadable(f"{path}: not a JSON object")
    if isinstance(document.get("request"), dict) and isinstance(document.get("operation"), str):
        return Asked(document["operation"], document["request"])
    return Asked(operation_of(document), document)


def operation_of(question: Mapping[str, Any]) -> str:
    """The narrowest question that has all members of one; the broadest where none has."""
    from service.schemas.base import Input  # noqa: PLC0415
    from service.schemas.estimates import (  # noqa: PLC0415  # the other commands start faster without them
        CostQuestion,
        MemoryQuestion,
        ThroughputQuestion,
        UtilityBillQuestion,
    )

    if "goal" in question:
        return "plan"
    shapes: dict[str, type[Input]] = {
        "memory": MemoryQuestion,
        "throughput": ThroughputQuestion,
        "cost": CostQuestion,
    }
    for name, shape in shapes.items():
        if question.keys() <= shape.model_fields.keys():
            return name
    return "utility-bill" if question.keys() & UtilityBillQuestion.model_fields.keys() else "memory"


def settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Setting]:
    """What changed between two questions, member by member."""
    return list(_changed(before, after, ()))


def _changed(before: object, after: object, path: tuple[str | int, ...]) -> Iterator[Setting]:
    if before == after and isinstance(before, bool) == isinstance(after, bool):
        return
    if isinstance(before, dict) and isinstance(after, dict) and not _is_another(before, after):
        for name in [*before, *(name for name in after if name not in before)]:
            if name in before and name in after:
                yield from _changed(before[name], after[name], (*path, name))
            else:
                sides = (tuple(side[name] for side in (each,) if name in side) for each in (before, after))
                yield _setting((*path, name), *sides)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changed(one, other, (*path, place))
    else:
        yield _setting(path, (before,), (after,))


def _is_another(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two objects are of different kinds, so that members of one mean nothing in the other."""
    return any(before.get(name) != after.get(name) for name in _WHOLE)


def _setting(path: tuple[str | int, ...], before: tuple[Any, ...], after: tuple[Any, ...]) -> Setting:
    return Setting(pointer(path), before, after, path)


def with_settings(question: Mapping[str, Any], changes: list[Setting]) -> dict[str, Any]:
    """A question with some of its settings changed to what they are afterwards."""
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
