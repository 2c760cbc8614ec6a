"""Names of the catalog rows that a quote rests on."""

from collections.abc import Mapping, Sequence
from typing import Any


class RowNames:
    """Names of rows by their kind and id; a row without a name is called by its id."""

    def __init__(self, inputs: Sequence[Mapping[str, Any]]) -> None:
        self._names = {(row["kind"], row["id"]): row["row"].get("name") for row in inputs}
        self._at = {(row["kind"], row["pointer"].split("/", 3)[-1]): row["id"] for row in inputs}

    def get_name(self, kind: str, row_id: str) -> str:
        """Returns the name of a row."""
        return str(self._names.get((kind, row_id)) or row_id)

    def get_name_at(self, kind: str, path: str, given: str) -> str:
        """Returns the name of the row that a member of the question refers to, else what is given there."""
        row_id = self._at.get((kind, path))
        return given if row_id is None else self.get_name(kind, row_id)
