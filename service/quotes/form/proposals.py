"""Names that may be meant by one that the catalog does not know, each with the address that asks with it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from service.kit.http.html import Form
from service.quotes.form.fields import FIELDS
from service.quotes.form.links import build_address
from service.resolve.catalog import CatalogView
from service.resolve.names import NamedRows
from service.resolve.titles import get_title

_LISTED: Final = re.compile(r"(; did you mean .*\?|: .*)$")
"""Ids that a refusal of a name lists, which links replace."""


class ProposedName(NamedTuple):
    """Name of a row for people, and the address of the question with it."""

    title: str
    address: str


def list_proposals(
    form: Form, wrong: Mapping[str, str], catalog: CatalogView
) -> dict[str, list[ProposedName]]:
    """Returns proposals for the fields whose names were refused, by field."""
    found = {name: _list_of_field(form, name, catalog) for name in ("model", "accelerator") if name in wrong}
    return {name: proposals for name, proposals in found.items() if proposals}


def _list_of_field(form: Form, name: str, catalog: CatalogView) -> list[ProposedName]:
    noun = FIELDS[name].rows
    rows = getattr(catalog, noun or "", None)
    if noun is None or not isinstance(rows, NamedRows):
        return []
    addresses = {
        row: build_address({**form, name: row}) for row in rows.list_proposals(form.get(name, "").strip())
    }
    return [ProposedName(get_title(catalog, noun, row), to) for row, to in addresses.items() if to]


def remove_listed_names(wrong: Mapping[str, str], proposed: Sequence[str]) -> dict[str, str]:
    """Returns error texts without the ids that links show by their names."""
    return {name: _LISTED.sub("", text) if name in proposed else text for name, text in wrong.items()}
