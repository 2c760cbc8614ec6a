"""Names of accelerators: parts as tools print them, node labels, instance types of clouds, slices of TPUs."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from service.formats.instances import list_slice_families
from service.formats.names import VENDOR_WORDS, find_nearest, normalize_name, normalize_part_name, split_words
from service.resolve.names import MOST_NEAREST, FoundRow, NamedRows, NameRemark, NoRow
from service.resolve.row_layers import NamedRow, RowLayer

_PARTITION: Final = re.compile(r"\bMIG\b|(?<![a-z0-9])[0-9]+[gc]\.[0-9]+gb(?![a-z0-9])", re.IGNORECASE)
_SHARED: Final = re.compile(r"[-_ ]SHARED$", re.IGNORECASE)
_SIZE: Final = re.compile(r"[0-9]+gb?")
_SLICE: Final = re.compile(
    rf"(?:(?:google |cloud )*tpu[-_ ]?)?({'|'.join(list_slice_families())})-([0-9]{{1,6}})", re.IGNORECASE
)
_MACHINE: Final = re.compile(r"\b(?:macbook[ -](?:pro|air)|mac[ -](?:studio|mini|pro)|imac)\b", re.IGNORECASE)
"""Machines that several chips come in, whose words chips have too."""
_FILLERS: Final = frozenset({"gpu", "gpus", "tensor", "core", "accelerator", "graphics", "card", "chip"})
"""Words of a product's full name that no part differs by."""

_PARTITIONED: Final = NoRow(
    code="PARTITIONED_DEVICE",
    detail="the name is that of a part of an accelerator, such as a MIG instance: name the whole accelerator,"
    " or give the figures of the part as a specification",
)
_SHARED_REMARK = NameRemark(
    "SHARED_DEVICE", "the name is that of a device that several share: the answer is for the whole device"
)

Instances = Mapping[str, Mapping[str, Any]]
"""Accelerators with the system of an instance, by id, by the normal form of the instance's name."""


class AcceleratorRows(NamedRows[Any]):
    """Accelerators by id, alias, the words of their names, and the instance types that they come in."""

    # A name in another spelling than the printed ones may fit several parts: NVIDIA A100 80GB fits two.
    reads_normal_forms = False

    def __init__(
        self, *layers: RowLayer | Iterable[NamedRow], list_instances: Callable[[], Instances]
    ) -> None:
        super().__init__(*layers)
        self._list_instances = list_instances

    @cached_property
    def _instances(self) -> Instances:
        """Instances by name, listed at the first name that is neither an id nor an alias."""
        return self._list_instances()

    def _interpret(self, name: str) -> FoundRow[Any] | NoRow:
        if _PARTITION.search(name):
            return _PARTITIONED
        if _SHARED.search(name):
            found = self._recall(_SHARED.sub("", name))
            return found if isinstance(found, NoRow) else found._replace(remark=_SHARED_REMARK)
        if written := _SLICE.fullmatch(name):
            return self._select_slice(*written.groups())
        normal = normalize_part_name(name)
        if ids := [
            row_id for row_id in self._list_ids("normal_names", normal) if normalize_name(row_id) == normal
        ]:
            return self.select(ids[-1:])
        named = self._list_ids("normal_names", normalize_name(name))
        fitting = self._select_plainest(sorted({*named, *self.list_fitting(name)}))
        if fitting:
            return self.select(fitting, None if named else self._build_remark(name, fitting[0]))
        held = self._instances.get(normalize_part_name(name))
        return NoRow(self._list_family(name)) if held is None else self._select_instance(held)

    def _select_plainest(self, ids: list[str]) -> list[str]:
        """Returns the part that all others are variants of, as RTX 3090 of RTX 3090 Ti; else all."""
        words = {row_id: set(split_words(row_id)) for row_id in ids}
        return [one for one in ids if all(words[one] <= others for others in words.values())] or ids

    def _select_instance(self, held: Mapping[str, Any]) -> FoundRow[Any] | NoRow:
        if not held:
            return _PARTITIONED
        return FoundRow(*next(iter(held.items()))) if len(held) == 1 else NoRow(tuple(held))

    def _select_slice(self, generation: str, number: str) -> FoundRow[Any] | NoRow:
        """Returns the accelerator of a slice of TPUs, which counts as many as it has."""
        family = list_slice_families()[generation.casefold()]
        chips = family.count_chips(int(number))
        if chips is None:
            detail = f"there is no such slice: the number of {generation}-{number} counts {family.describe()}"
            return NoRow(code="UNKNOWN_SLICE", detail=detail)
        found = self._recall(family.accelerator_id)
        if isinstance(found, NoRow):
            return found
        detail = f"the name is that of a slice of {chips} chips; accelerator_count counts chips"
        return FoundRow(found.id, found.row.name_slice(chips), NameRemark("SLICE_NAMED", detail))

    def list_instance_types(self) -> dict[str, str]:
        """Returns the names of the instance types, by their normal form."""
        return {
            normal: known.instance_type
            for normal, held in self._instances.items()
            for known in held.values()
            if known.instance_type
        }

    def _list_nearest(self, name: str) -> list[str]:
        """Returns the ids and instance types that are most like ``name``."""
        types = self.list_instance_types()
        ids = {normal: row_id for normal, held in self._normal.items() for row_id in held}
        named = types | ids
        return list(dict.fromkeys(named[near] for near in find_nearest(name, named, 2 * MOST_NEAREST)))[
            :MOST_NEAREST
        ]

    def _build_remark(self, name: str, row_id: str) -> NameRemark | None:
        """Returns the remark that ``name`` has fewer words than any name of the row."""
        words = _list_telling_words(name)
        if any(_list_telling_words(whole) <= words for whole in self.entries[row_id].names):
            return None
        detail = f"the name is incomplete and is read as {row_id}; a variant is named in full"
        return NameRemark("NAME_COMPLETED", detail)

    def list_fitting(self, name: str) -> list[str]:
        """Returns the ids of the parts that have every word of ``name``, one of which tells parts apart.

        Alternatives, as in MI250X / MI250, fit together. A word that no id has, such as v5, may be the
        beginning of several.
        """
        if len(alternatives := name.split(" / ")) > 1:
            return sorted({row_id for each in alternatives for row_id in self.list_fitting(each)})
        words = _list_telling_words(name)
        fitting = {
            entry.id
            for entry in self.entries.values()
            if words <= entry.words and any(map(_tells_parts, words - entry.traits))
        }
        if any(not any(map(_tells_parts, words & set(split_words(row_id)))) for row_id in fitting):
            fitting.update(self._list_family(name))
        return sorted(fitting)

    def _list_family(self, name: str) -> list[str]:
        """Returns the ids of the parts whose words begin with those of ``name``, as MI300X with MI300."""
        words = _list_telling_words(name)
        return sorted(
            entry.id
            for entry in self.entries.values()
            if any(not _SIZE.fullmatch(word) for word in words - entry.traits)
            and all(_begins_word(word, entry.words) for word in words)
        )


def _list_telling_words(name: str) -> frozenset[str]:
    return frozenset(split_words(_MACHINE.sub("", name))) - VENDOR_WORDS - _FILLERS


def _tells_parts(word: str) -> bool:
    """Returns true if ``word`` tells parts apart: it has a digit and is no size of a memory."""
    return any(letter.isdigit() for letter in word) and not _SIZE.fullmatch(word)


def _begins_word(beginning: str, words: Iterable[str]) -> bool:
    """Returns true if a word is ``beginning``, or continues it with letters after a digit or the reverse."""
    return any(
        word == beginning
        or (word.startswith(beginning) and word[len(beginning)].isdigit() != beginning[-1].isdigit())
        for word in words
    )
