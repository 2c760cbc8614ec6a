"""Rows of a catalog by every name that a question may call them by.

A name is read as it is written, then without case, then in its normal form. A name that fits several rows is
refused with them, and one that fits none with the nearest.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

from service.formats.names import find_nearest, normalize_name, split_words
from service.planning.errors import PlanningError
from service.resolve.row_layers import NamedRow, RowLayer

_Row = TypeVar("_Row")

MOST_CANDIDATES = 10
"""Most rows that a refusal lists."""
MOST_NEAREST = 3
"""Most rows that a refusal of an unknown name proposes."""
_MOST_REMEMBERED = 512


class NameRemark(NamedTuple):
    """A warning about the way in which a name was read."""

    code: str
    detail: str


class FoundRow(NamedTuple, Generic[_Row]):
    """The row that a name stands for, and how it was read if that needs saying."""

    id: str
    row: _Row
    remark: NameRemark | None = None


class NoRow(NamedTuple):
    """Reason why a name stands for no row: the rows that it fits, or a detail."""

    fitting: Sequence[str] = ()
    detail: str = ""
    code: str = "UNKNOWN_REFERENCE"


class NamedRows(Mapping[str, _Row]):
    """Rows of one resource that are found by any name. Iteration yields their ids.

    ``layers`` are the shipped rows and those of the tenant, whose names come first.
    """

    reads_normal_forms = True
    """True if a name in its normal form is enough to find a row."""

    def __init__(self, *layers: RowLayer | Iterable[NamedRow]) -> None:
        self.layers = tuple(layer if isinstance(layer, RowLayer) else RowLayer(layer) for layer in layers)
        self._remembered: dict[str, FoundRow[_Row] | NoRow] = {}

    @cached_property
    def entries(self) -> Mapping[str, NamedRow]:
        """Rows with their names, by id."""
        return {row_id: entry for layer in self.layers for row_id, entry in layer.entries.items()}

    def __getitem__(self, name: str) -> _Row:
        """Returns the row called ``name``. Raises KeyError for a name that is unknown or ambiguous."""
        entry = self.find_entry(name)
        if entry is not None:
            row: _Row = entry.row
            return row
        found = self._recall(name)
        if isinstance(found, NoRow):
            raise KeyError(name)
        return found.row

    def __iter__(self) -> Iterator[str]:
        """Iterates over the ids of the rows."""
        return iter(self.entries)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self.entries)

    def find_entry(self, row_id: str) -> NamedRow | None:
        """Returns the row of an id with its names."""
        found = (layer.entries.get(row_id) for layer in reversed(self.layers))
        return next((entry for entry in found if entry is not None), None)

    def list_of_key(self, kind: str, value: Hashable) -> dict[str, _Row]:
        """Returns the rows that have a value as a key of a kind, by id."""
        return {
            row_id: layer.entries[row_id].row
            for place, layer in enumerate(self.layers)
            for row_id in self._list_seen(place, "keys", (kind, value))
        }

    def list_key_values(self, kind: str) -> list[Any]:
        """Returns the values that rows have as keys of a kind, in the order of the first row of each."""
        firsts: dict[Hashable, tuple[int, str]] = {}
        for place, layer in enumerate(self.layers):
            for key in layer.indexes["keys"]:
                if isinstance(key, tuple) and key[0] == kind:
                    seen = next(iter(self._list_seen(place, "keys", key)), None)
                    if seen is not None:
                        firsts.setdefault(key[1], (place, seen))
        return sorted(firsts, key=firsts.__getitem__)

    def _list_seen(self, place: int, form: str, value: Hashable) -> Iterable[str]:
        """Yields the ids of the rows of a layer that have a form of name and that no later layer hides."""
        ids, later = self.layers[place].indexes[form].get(value, ()), self.layers[place + 1 :]
        return (row_id for row_id in ids if not any(row_id in layer.entries for layer in later))

    def _list_ids(self, form: str, value: Hashable) -> tuple[str, ...]:
        """Returns the ids of the rows with a form of name. A name of a later layer hides those before."""
        found = (tuple(self._list_seen(place, form, value)) for place in reversed(range(len(self.layers))))
        return next(filter(None, found), ())

    @cached_property
    def _normal(self) -> Mapping[str, tuple[str, ...]]:
        """Ids by the normal form of names, which takes as long as there are rows."""
        index: dict[str, tuple[str, ...]] = {}
        for place, layer in enumerate(self.layers):
            own: dict[str, list[str]] = {}
            for row_id, entry in layer.entries.items():
                if not any(row_id in later.entries for later in self.layers[place + 1 :]):
                    for normal in entry.normal_names:
                        own.setdefault(normal, []).append(row_id)
            index.update((normal, tuple(ids)) for normal, ids in own.items())
        return index

    def find(self, name: str) -> FoundRow[_Row]:
        """Returns the row called ``name``. Raises :class:`PlanningError` if it is unknown or ambiguous."""
        found = self._recall(name)
        if isinstance(found, NoRow):
            raise self._build_refusal(name, found)
        return found

    def get_id(self, name: str) -> str | None:
        """Returns the id of the row that ``name`` is a whole name of; None if it is read with a remark."""
        found = self._recall(name)
        return found.id if isinstance(found, FoundRow) and found.remark is None else None

    def _recall(self, name: str) -> FoundRow[_Row] | NoRow:
        found = self._remembered.get(name)
        if found is None:
            found = self._read(name) or self._interpret(name)
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[name] = found
        return found

    def _read(self, name: str) -> FoundRow[_Row] | NoRow | None:
        """Returns the row that has ``name`` among its names; None if none has."""
        if ids := self._list_ids("names", name):
            return self.select(ids[-1:])
        ids = self._list_ids("spellings", name.casefold())
        if not ids and self.reads_normal_forms:
            ids = self._list_ids("normal_names", normalize_name(name))
        return self.select(ids) if ids else None

    def _interpret(self, name: str) -> FoundRow[_Row] | NoRow:
        """Returns the row that ``name`` stands for, though no row has it as a name."""
        return NoRow(self.list_fitting(name))

    def select(self, ids: Sequence[str], remark: NameRemark | None = None) -> FoundRow[_Row] | NoRow:
        """Returns the row of the only id."""
        return FoundRow(ids[0], self[ids[0]], remark) if len(ids) == 1 else NoRow(ids)

    def list_fitting(self, name: str) -> list[str]:
        """Returns the ids of rows that have every word of ``name`` as a part of one of their names."""
        words = [normalize_name(word) for word in split_words(name)]
        fitting = {
            row_id
            for normal, ids in self._normal.items()
            if words and all(word in normal for word in words)
            for row_id in ids
        }
        return sorted(fitting)

    def list_proposals(self, name: str) -> list[str]:
        """Returns the names that may be meant by one that stands for no row, or for several."""
        found = self._recall(name)
        if not isinstance(found, NoRow) or found.code != NoRow().code:
            return []
        if len(found.fitting) > 1:
            return sorted(found.fitting)[:MOST_CANDIDATES]
        return list(found.fitting or self._list_nearest(name))

    def _build_refusal(self, name: str, found: NoRow) -> PlanningError:
        """Returns the refusal of a name that fits several rows, or else none."""
        if len(found.fitting) > 1:
            listed = ", ".join(self.list_proposals(name))
            more = len(found.fitting) - MOST_CANDIDATES
            detail = f"the name fits several rows: {listed}" + (f" and {more} more" if more > 0 else "")
            return PlanningError("AMBIGUOUS_REFERENCE", "", detail)
        detail = found.detail or "the catalog has no row with this id or alias"
        nearest = self.list_proposals(name)
        said = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        return PlanningError(found.code, "", detail + said)

    def _list_nearest(self, name: str) -> list[str]:
        nearest = find_nearest(name, self._normal, 2 * MOST_NEAREST)
        ids = dict.fromkeys(row_id for normal in nearest for row_id in self._normal[normal])
        return list(ids)[:MOST_NEAREST]
