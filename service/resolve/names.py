"""Rows of a catalog by every name that a question may call them by.

A name is read as it is written, then without case, then in its normal form. A name that fits several rows is
refused with them, and one that fits none with the nearest.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from service.formats.names import find_nearest, normalize_name, split_words
from service.planning.errors import PlanningError

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


def list_spellings(name: str) -> set[str]:
    """Returns ``name`` without case, as it is and with the separators of node labels for its spaces."""
    plain = name.casefold()
    return {plain, plain.replace(" ", "-"), plain.replace(" ", "_")}


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row with its names, the id first, prepared for comparison."""

    id: str
    names: tuple[str, ...]
    row: Any
    spellings: tuple[str, ...]
    normal_names: tuple[str, ...]
    words: frozenset[str] = frozenset()
    """Words of its names and its title, for resources whose names may be incomplete."""
    traits: frozenset[str] = frozenset()
    """Words that describe the row and do not name it, such as 80gb or pcie."""
    title: str = ""
    """Name of the row for people."""


def build_named_row(
    row_id: str, aliases: Iterable[str], row: object, title: str | None = None, traits: Iterable[str] = ()
) -> NamedRow:
    """Returns a row with its names. It has words if a title is given."""
    names = (row_id, *aliases)
    described = frozenset(word for trait in traits for word in split_words(trait))
    return NamedRow(
        id=row_id,
        names=names,
        row=row,
        spellings=tuple({spelling for name in names for spelling in list_spellings(name)}),
        normal_names=tuple({normal for name in names if (normal := normalize_name(name))}),
        words=frozenset() if title is None else described.union(*map(split_words, (*names, title))),
        traits=described,
    )


_Index = Mapping[str, tuple[str, ...]]
"""Ids of rows by a form of their names."""


def build_index(layers: Sequence[Iterable[NamedRow]], forms: Callable[[NamedRow], Iterable[str]]) -> _Index:
    """Returns the ids of rows by form of name. A name of a later layer hides that of the layers before."""
    index: dict[str, tuple[str, ...]] = {}
    for layer in layers:
        own: dict[str, dict[str, None]] = {}
        for entry in layer:
            for form in forms(entry):
                own.setdefault(form, {})[entry.id] = None
        index.update((form, tuple(ids)) for form, ids in own.items())
    return index


class NamedRows(Mapping[str, _Row]):
    """Rows of one resource that are found by any name. Iteration yields their ids.

    ``layers`` are the shipped rows and those of the tenant, whose names come first.
    """

    reads_normal_forms = True
    """True if a name in its normal form is enough to find a row."""

    def __init__(self, *layers: Sequence[NamedRow]) -> None:
        self.entries: Mapping[str, NamedRow] = {entry.id: entry for layer in layers for entry in layer}
        seen = [[entry for entry in layer if self.entries[entry.id] is entry] for layer in layers]
        self._rows: dict[str, _Row] = {row_id: entry.row for row_id, entry in self.entries.items()}
        self._exact = {name: entry.id for layer in seen for entry in layer for name in entry.names}
        self._written = build_index(seen, lambda entry: entry.spellings)
        self._normal = build_index(seen, lambda entry: entry.normal_names)
        self._remembered: dict[str, FoundRow[_Row] | NoRow] = {}

    def __getitem__(self, name: str) -> _Row:
        """Returns the row called ``name``. Raises KeyError for a name that is unknown or ambiguous."""
        if name in self._rows:
            return self._rows[name]
        found = self._recall(name)
        if isinstance(found, NoRow):
            raise KeyError(name)
        return found.row

    def __iter__(self) -> Iterator[str]:
        """Iterates over the ids of the rows."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return len(self._rows)

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
        if name in self._exact:
            return self.select([self._exact[name]])
        ids = self._written.get(name.casefold())
        if not ids and self.reads_normal_forms:
            ids = self._normal.get(normalize_name(name))
        return self.select(ids) if ids else None

    def _interpret(self, name: str) -> FoundRow[_Row] | NoRow:
        """Returns the row that ``name`` stands for, though no row has it as a name."""
        return NoRow(self.list_fitting(name))

    def select(self, ids: Sequence[str], remark: NameRemark | None = None) -> FoundRow[_Row] | NoRow:
        """Returns the row of the only id."""
        return FoundRow(ids[0], self._rows[ids[0]], remark) if len(ids) == 1 else NoRow(ids)

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
