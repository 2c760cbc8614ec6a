"""Rows of one owner with all their names, and the indexes by which they are found."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from service.formats.names import normalize_name, split_words

_FORMS: Final = ("names", "spellings", "normal_names", "keys")
"""Members of a row that indexes are kept of."""


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
    version: int = 1
    keys: tuple[tuple[str, Hashable], ...] = ()
    """Values, each after its kind, that rows are looked up by beside their names."""


def list_spellings(name: str) -> set[str]:
    """Returns ``name`` without case, as it is and with the separators of node labels for its spaces."""
    plain = name.casefold()
    return {plain, plain.replace(" ", "-"), plain.replace(" ", "_")}


def build_named_row(
    row_id: str,
    aliases: Iterable[str],
    row: object,
    title: str | None = None,
    traits: Iterable[str] = (),
    *,
    shown: str = "",
    version: int = 1,
    keys: Iterable[tuple[str, Hashable]] = (),
) -> NamedRow:
    """Returns a row with its names. It has words if a title is given; people see it as ``shown``."""
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
        title=shown,
        version=version,
        keys=tuple(dict.fromkeys(keys)),
    )


Index = Mapping[Hashable, tuple[str, ...]]
"""Ids of rows, in order, by a form of their names or a key."""


class RowLayer:
    """Rows of one owner, in the order of their ids. A layer never changes: a change makes another."""

    __slots__ = ("entries", "indexes")

    def __init__(self, rows: Iterable[NamedRow] = ()) -> None:
        self.entries: Mapping[str, NamedRow] = {}
        self.indexes: Mapping[str, Index] = {form: {} for form in _FORMS}
        self._add_changes({row.id: row for row in rows})

    def apply_changes(self, changed: Mapping[str, NamedRow | None]) -> "RowLayer":
        """Returns the layer with rows added or replaced; None removes one. Other rows are not looked at."""
        layer = RowLayer()
        layer.entries, layer.indexes = self.entries, self.indexes
        layer._add_changes(changed)
        return layer

    def _add_changes(self, changed: Mapping[str, NamedRow | None]) -> None:
        before = [self.entries[row_id] for row_id in changed if row_id in self.entries]
        after = [row for row in changed.values() if row is not None]
        entries = {**self.entries, **{row.id: row for row in after}}
        for row_id in changed.keys() - {row.id for row in after}:
            entries.pop(row_id, None)
        is_longer = any(row.id not in self.entries for row in after)
        # Ids alone are sorted in a fifth of the time.
        self.entries = {row_id: entries[row_id] for row_id in sorted(entries)} if is_longer else entries
        self.indexes = {
            form: _change_index(index, form, before, after) for form, index in self.indexes.items()
        }


def _change_index(index: Index, form: str, before: Iterable[NamedRow], after: Iterable[NamedRow]) -> Index:
    """Returns an index without the rows ``before`` and with those ``after``."""
    removed, added = _list_ids(form, before), _list_ids(form, after)
    moved = {key for key in removed.keys() | added.keys() if removed.get(key) != added.get(key)}
    if not moved:
        return index
    changed = dict(index)
    for key in moved:
        left = removed.get(key, ())
        ids = [row_id for row_id in changed.pop(key, ()) if row_id not in left]
        if ids or key in added:
            changed[key] = tuple(sorted([*ids, *added.get(key, ())]))
    return changed


def _list_ids(form: str, rows: Iterable[NamedRow]) -> dict[Hashable, set[str]]:
    found: dict[Hashable, set[str]] = {}
    for row in rows:
        for key in getattr(row, form):
            found.setdefault(key, set()).add(row.id)
    return found
