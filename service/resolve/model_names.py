"""Names of models: ids, repositories of the hub, and their tuned and quantised siblings."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from service.formats.checkpoints import (
    CheckpointName,
    StoredForm,
    is_mirror,
    read_checkpoint_name,
    split_model_name,
)
from service.formats.names import normalize_name, split_words
from service.resolve.names import FoundRow, NamedRows, NameRemark, NoRow
from service.resolve.row_layers import NamedRow, RowLayer

_DENSE: Final = frozenset({"attention", "feed_forward", "normalization", "block"})

_TAG: Final = re.compile(r"[^:/]+:[0-9.]+[bm](?:-[a-z0-9.]+)*", re.IGNORECASE)
"""A tag of the Ollama library that states a size and no file type."""
_TAGGED: Final = StoredForm(
    "GGUF Q4_K_M", {"quant_method": "gguf", "file_type": "q4_k_m"}, is_dense_only=False
)
_CLOSED: Final = re.compile(
    r"(?:[a-z]+/)?(?:(?:chat)?gpt-?(?:3\.5|4|5)|o[134](?:-|$)|claude|gemini|grok-?[3-9]|nova-)", re.IGNORECASE
)
_CLOSED_DETAIL: Final = (
    "the layers of this model are not published, so that only its provider serves it;"
    " GET /v1/token-prices lists what providers charge"
)

_TUNED: Final = NameRemark(
    "SIBLING_ASSUMED",
    "the name is read as a sibling, tuned or dated otherwise, of a row with the same layers; its longest"
    " context may differ",
)
_COPIED: Final = NameRemark(
    "SIBLING_ASSUMED", "the name is read as a copy of the checkpoint of the same name in the catalog"
)


class _Sibling(NamedTuple):
    """A published checkpoint of a row: its name without words of tuning, those words, and its owner."""

    row_id: str
    tuned: frozenset[str]
    owner: str


class ModelRows(NamedRows[Any]):
    """Models by id, alias, the repository's name without its owner, and the names of siblings."""

    def __init__(
        self, *layers: RowLayer | Iterable[NamedRow], store: Callable[[Any, StoredForm], Any]
    ) -> None:
        super().__init__(*layers)
        self._store = store

    def list_fitting(self, name: str) -> list[str]:
        """Returns the ids of models that have every word of ``name``."""
        words = frozenset(split_words(name))
        return sorted(entry.id for entry in self.entries.values() if words and words <= entry.words)

    def _read(self, name: str) -> FoundRow[Any] | NoRow | None:
        """Returns the row that has ``name`` among its names; one with a tag of Ollama as Ollama stores it."""
        found = super()._read(name)
        if not isinstance(found, FoundRow) or not _TAG.fullmatch(name) or not found.row.profile.generates:
            return found
        detail = (
            f"the name is read as {found.id} with weights stored as {_TAGGED.name},"
            " the usual type of the Ollama library; another one is stated by its ending"
        )
        stored = self._store(found.row, _TAGGED)
        return FoundRow(found.id, stored, NameRemark("FORMAT_FROM_NAME", detail))

    def _interpret(self, name: str) -> FoundRow[Any] | NoRow:
        read = read_checkpoint_name(name)
        base = self._find_base(read)
        if base is None or (isinstance(base, NoRow) and not base.fitting):
            if _CLOSED.match(name):
                return NoRow(detail=_CLOSED_DETAIL, code="MODEL_NOT_PUBLISHED")
            return NoRow(self.list_fitting(name), read.refusal)
        if isinstance(base, NoRow):
            return base
        if read.refusal:
            return NoRow((base.id,), read.refusal)
        return base if read.form is None else self._store_as(base, read.form)

    def _find_base(self, read: CheckpointName) -> FoundRow[Any] | NoRow | None:
        """Returns the row of a model that a checkpoint is, or was made from."""
        is_made_from = read.form is not None or bool(read.refusal)
        ids = self._list_ids("keys", ("tail", normalize_name(read.model)))
        if ids and (is_made_from or not read.owner):
            return self.select(ids)
        if ids and is_mirror(read.owner):
            return self.select(ids, _COPIED)
        return self._find_tuned(read, by_anyone=is_made_from or not read.owner or is_mirror(read.owner))

    def _find_tuned(self, read: CheckpointName, *, by_anyone: bool) -> FoundRow[Any] | NoRow | None:
        """Returns the row whose published checkpoint differs from the name by the fewest words of tuning."""
        base, tuned = split_model_name(read.model)
        near = [
            (len(tuned ^ sibling.tuned), sibling.row_id)
            for sibling in self._list_siblings(normalize_name(base))
            if by_anyone or sibling.owner == read.owner
        ]
        if not near:
            return None
        least = min(near)[0]
        return self.select(sorted({row_id for distance, row_id in near if distance == least}), _TUNED)

    def _list_siblings(self, base: str) -> Iterator[_Sibling]:
        """Yields the names that differ from ``base`` by words of tuning."""
        for row_id in self.list_of_key("base", base):
            entry = self.find_entry(row_id)
            for name in () if entry is None else entry.names:
                parts = _read_parts(name)
                if parts.base == base:
                    yield _Sibling(row_id, parts.tuned, parts.owner)

    def _store_as(self, base: FoundRow[Any], form: StoredForm) -> FoundRow[Any] | NoRow:
        if form.is_dense_only and not _is_dense(base.row.architecture["layers"]):
            detail = (
                "the layers that such a checkpoint leaves wide are not known: send its config.json, or name"
                " the model that it was made from, and the format as workload.weight_format"
            )
            return NoRow((base.id,), detail)
        detail = f"the name is read as {base.id} with weights stored as {form.name}, as its ending states"
        return FoundRow(base.id, self._store(base.row, form), NameRemark("FORMAT_FROM_NAME", detail))


def list_model_keys(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the keys of a model: its names without owner, and those without words of tuning."""
    for parts in map(_read_parts, names):
        yield from (("tail", parts.model), ("base", parts.base))


class _NameParts(NamedTuple):
    """The owner in a name of a row, and the normal forms of its model and of that without words of tuning."""

    owner: str
    model: str
    base: str
    tuned: frozenset[str]


@lru_cache(maxsize=8192)
def _read_parts(name: str) -> _NameParts:
    """Returns the parts of a name of a row, whose ending counts only if it states 16 bits."""
    read = read_checkpoint_name(name)
    is_plain = read.form is not None and read.form.quantization_config is None
    model = read.model if is_plain else name.rpartition("/")[2]
    base, tuned = split_model_name(model)
    return _NameParts(read.owner, normalize_name(model), normalize_name(base), tuned)


def _is_dense(layers: Sequence[Mapping[str, Any]]) -> bool:
    """Returns true if all layers are of attention and plain feed-forward."""
    return all(layer["kind"] in _DENSE and _is_dense(layer.get("layers", ())) for layer in layers)
