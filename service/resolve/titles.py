"""Titles of catalog rows, as people read and type them."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from service.resolve.accelerator_names import AcceleratorRows
from service.resolve.catalog import CatalogView
from service.resolve.names import NamedRows

CatalogRows = Literal["models", "accelerators", "offers", "sites", "tariffs", "grids"]
MOST_NAME_CHARACTERS: Final = 200


def list_titles(catalog: CatalogView, noun: CatalogRows) -> dict[str, str]:
    """Returns the names of the rows of a resource by their ids, in the order of the names."""
    rows: Mapping[str, Any] = getattr(catalog, noun)
    if not isinstance(rows, NamedRows):
        return {row_id: row_id for row_id in sorted(rows)}
    titles = {row_id: entry.title or row_id for row_id, entry in rows.entries.items()}
    return dict(sorted(titles.items(), key=lambda one: one[1].casefold()))


def list_suggestions(catalog: CatalogView, noun: CatalogRows) -> list[str]:
    """Returns the names that a field proposes: those of the rows, then those of instances of clouds."""
    titles = list(list_titles(catalog, noun).values())
    if noun == "accelerators" and isinstance(catalog.accelerators, AcceleratorRows):
        return [*titles, *sorted(catalog.accelerators.list_instance_types().values())]
    return titles


def get_title(catalog: CatalogView, noun: CatalogRows, name: str) -> str:
    """Returns the name of the row that ``name`` is a whole name of, else ``name``."""
    rows: Mapping[str, Any] = getattr(catalog, noun)
    if not isinstance(rows, NamedRows):
        return name
    row_id = rows.get_id(name)
    if row_id is None:
        return name
    row = rows[name]
    # An instance and a slice are not called by the name of their accelerators.
    if getattr(row, "instance_type", None) is not None or getattr(row, "named_count", 1) != 1:
        return name
    return rows.entries[row_id].title or name


def find_titled_id(catalog: CatalogView, noun: CatalogRows, text: str) -> str:
    """Returns the id of the row whose title is ``text``, or ``text`` for the catalog to read."""
    wanted = text.casefold()
    found = (row_id for row_id, title in list_titles(catalog, noun).items() if title.casefold() == wanted)
    return next(found, text)
