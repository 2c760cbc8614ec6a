"""Mapping of the names in price lists to accelerators of a catalog."""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from service.formats.names import normalize_part_name

_MEMORY_TOLERANCE: Final = 0.1
"""A label of 80 GB is printed as 79, 80 or 81.6; 40 and 80, or 16 and 32, stay apart."""
_SLICE: Final = re.compile(r"^(.+)-([1-9][0-9]{0,5})$")
_SHOWN: Final = re.compile(r"[A-Za-z0-9 ._/+()-]{1,60}")


class NameRule(NamedTuple):
    """Meaning of one name, perhaps on some instances only; ``cores_per_device`` lets it name a slice."""

    names: frozenset[str]
    accelerator_id: str
    instances: tuple[str, ...] = ()
    cores_per_device: int = 0
    doubt: str | None = None


class ListedAccelerators(NamedTuple):
    """The accelerators that a list may mean: ids by every name, and the label's memory in GB of every id."""

    ids: Mapping[str, str]
    labels_gb: Mapping[str, float | None]


class PriceListContext(NamedTuple):
    """Facts that a list lacks: its provider, the known accelerators, and the one that it prices."""

    provider: str
    accelerators: ListedAccelerators
    accelerator: str | None = None


class NamedAccelerator(NamedTuple):
    """An accelerator of the catalog, its number in one unit of the list, and the assumption that was made."""

    accelerator_id: str
    devices: int = 1
    doubt: str | None = None


class UnknownName(NamedTuple):
    """Reason why a name matches no accelerator."""

    code: str
    detail: str


def format_name(name: str) -> str:
    """``name`` for a message, or a stand-in where it holds what should not be printed."""
    return name if _SHOWN.fullmatch(name) else "an accelerator of another name"


@cache
def _load_document() -> Mapping[str, Any]:
    content: Mapping[str, Any] = json.loads((files(__package__) / "names.json").read_bytes())
    return content


@cache
def load_rules() -> tuple[NameRule, ...]:
    """The rules of ``names.json``, in order."""
    written = _load_document()["rules"]
    return tuple(
        NameRule(
            frozenset(map(normalize_part_name, rule["names"])),
            rule["accelerator_id"],
            tuple(rule.get("instances", ())),
            rule.get("cores_per_device", 0),
            rule.get("doubt"),
        )
        for rule in written
    )


@cache
def load_hosts() -> Mapping[str, tuple[str, int]]:
    """Machine types whose accelerators some lists price apart: name and count of these."""
    written = _load_document()["hosts"]
    return {name: (accelerator, count) for name, (accelerator, count) in written["instances"].items()}


def resolve_accelerator(
    accelerators: ListedAccelerators, name: str, *, instance: str = "", memory_gb: float | None = None
) -> NamedAccelerator | UnknownName:
    """Returns the accelerator that a list calls ``name``, on ``instance`` and with ``memory_gb`` if given."""
    found = list(_list_candidates(accelerators, name, instance))
    if not found:
        return UnknownName("UNKNOWN_ACCELERATOR", f"the catalog has no {format_name(name)}")
    for one in found:
        label = accelerators.labels_gb.get(one.accelerator_id)
        if memory_gb is None or label is None or abs(memory_gb - label) <= _MEMORY_TOLERANCE * label:
            return one
    return UnknownName("MEMORY_MISMATCH", f"no {format_name(name)} of the catalog has {memory_gb:g} GB")


def _list_candidates(
    accelerators: ListedAccelerators, name: str, instance: str
) -> Iterator[NamedAccelerator]:
    where = instance.lower()
    for base, cores in _parse_name(name):
        for rule in load_rules():
            fits = base in rule.names and rule.accelerator_id in accelerators.labels_gb
            if not fits or (cores and not rule.cores_per_device):
                continue
            if rule.instances and not any(fnmatchcase(where, pattern) for pattern in rule.instances):
                continue
            if cores % (rule.cores_per_device or 1) == 0:
                yield NamedAccelerator(
                    rule.accelerator_id, cores // (rule.cores_per_device or 1) or 1, rule.doubt
                )
        if not cores and base in accelerators.ids:
            yield NamedAccelerator(accelerators.ids[base])


def _parse_name(name: str) -> Iterator[tuple[str, int]]:
    """``name`` as it is, and as a slice of so many cores (tpu-v3-32)."""
    yield normalize_part_name(name), 0
    if cut := _SLICE.match(name.strip()):
        yield normalize_part_name(cut[1]), int(cut[2])


def build_accelerators(rows: Mapping[str, tuple[float | None, tuple[str, ...]]]) -> ListedAccelerators:
    """Accelerators by plain names, from label and names of each id; a name of two of them means neither."""
    owners: dict[str, set[str]] = {}
    for row_id, (_, names) in rows.items():
        for name in (row_id, *names):
            owners.setdefault(normalize_part_name(name), set()).add(row_id)
    ids = {name: next(iter(owning)) for name, owning in owners.items() if len(owning) == 1}
    return ListedAccelerators(ids, {row_id: label for row_id, (label, _) in rows.items()})
